"""A document as one HTML file."""
