"""OBSERVED: results received, times counted, processes watched."""
