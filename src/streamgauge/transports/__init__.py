"""How events reach the system under test and how results come back."""
