"""CHOSEN: one file per workload: its streams, its flow, its parameters. Written in flow only, for every engine."""
