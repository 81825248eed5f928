"""One module per noun: maps rows, nothing else."""
