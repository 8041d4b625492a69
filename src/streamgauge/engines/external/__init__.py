"""The engine `external`: a program of the user's own that reads and writes Kafka."""
