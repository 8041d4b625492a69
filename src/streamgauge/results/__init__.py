"""Typed models of everything that a result file holds."""
