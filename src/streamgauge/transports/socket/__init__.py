"""Lines of text over sockets of the loopback, one connection for each generator: what Spark's own receivers take."""
