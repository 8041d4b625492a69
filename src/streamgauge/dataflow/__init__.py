"""The engine-neutral dataflow of a workload: nodes, builder, schema, lineage and reach."""
