"""Stage times by execution mode."""
