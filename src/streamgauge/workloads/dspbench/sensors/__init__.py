"""Applications on sensors, machines and vehicles."""
