"""SHOWN: run folders, plots, the one-file report and what the terminal prints; nothing here measures or judges."""
