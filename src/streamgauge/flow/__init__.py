"""What is asked: the dataflow of a workload as engine-neutral data, its expressions, its lineage and its reach."""
