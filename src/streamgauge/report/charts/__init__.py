"""Pictures in reports."""
