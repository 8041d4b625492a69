"""The SUT's process for Structured Streaming: micro-batch and real-time mode."""
