"""Apache Flink's DataStream API, on a cluster in the JVM of the job, over Kafka."""
