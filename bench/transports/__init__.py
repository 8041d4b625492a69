"""How fast events go from a generator to a reader, without an engine."""
