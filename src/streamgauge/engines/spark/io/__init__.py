"""Sources and sinks of Spark: Flight, Kafka, event batching."""
