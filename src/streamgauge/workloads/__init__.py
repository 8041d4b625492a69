"""The workloads: streams, dataflow, parameters and the rule for a right answer, written once for every engine."""
