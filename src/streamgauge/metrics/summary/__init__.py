"""Figures of a trial: online and final, by operator and over time."""
