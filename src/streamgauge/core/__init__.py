"""What every package stands on: errors, units, schemas, lineage columns, the run's clock, plugin options."""
