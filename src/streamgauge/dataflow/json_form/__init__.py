"""The JSON form of a dataflow, which engines outside Python read: writing, reading and its JSON Schema."""
