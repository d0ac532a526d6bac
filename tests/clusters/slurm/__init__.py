"""A real Slurm for the tests, started on this machine in a folder of its own."""
