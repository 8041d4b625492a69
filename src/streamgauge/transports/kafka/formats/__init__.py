"""The formats of the messages of a program of the user's own: JSON, CSV, text, Avro."""
