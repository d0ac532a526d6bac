"""A soak: hours of real jobs on real clusters while everything is killed at random (`make soak`)."""
