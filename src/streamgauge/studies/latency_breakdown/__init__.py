"""Where a record's time goes, stage by stage."""
