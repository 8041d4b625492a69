"""A road map and vehicles' GPS traces."""
