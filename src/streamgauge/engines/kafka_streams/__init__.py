"""Kafka Streams' DSL, in one JVM with as many threads as cores, over Kafka."""
