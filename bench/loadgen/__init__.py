"""How fast one core makes the planned input."""
