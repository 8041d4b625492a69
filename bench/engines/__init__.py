"""Hand-written jobs of one query beside ours: what the common library of the engines on the JVM costs."""
