"""This machine: child processes with lifelines, Java, jars, scratch folders, locks, CPU and memory."""
