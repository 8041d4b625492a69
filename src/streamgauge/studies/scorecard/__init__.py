"""Scorecards: systems rated by criteria, from the cells of matrices."""
