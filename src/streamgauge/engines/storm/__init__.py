"""Storm's spouts and bolts, on a local cluster in the JVM of the job, over Kafka."""
