"""The default transport: Arrow Flight, in memory, one endpoint beside each generator; needs nothing else."""
