"""The synthetic engine: known capacity and planted faults, for the self-test."""
