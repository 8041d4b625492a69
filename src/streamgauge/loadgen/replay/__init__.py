"""Users' data files as input: reading, columns, key dictionaries and fitting."""
