"""What the programs share: rows of the table, runs of the command, drain rates; and what `make demo` runs."""
