"""Each kind of report as a document, built once from its result."""
