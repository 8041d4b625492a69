"""The base of every package: errors, units, schemas, lineage columns, the run's clock, plugin options."""
