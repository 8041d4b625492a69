"""Processes of ours: children with lifelines, Java, CPU affinity, memory and disk of this machine."""
