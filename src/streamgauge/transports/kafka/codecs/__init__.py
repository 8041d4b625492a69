"""How a message carries a row: compact, Avro, JSON."""
