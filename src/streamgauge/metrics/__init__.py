"""Every number made of a trial's log."""
