"""The engine of known capacity with planted faults: it proves the instrument."""
