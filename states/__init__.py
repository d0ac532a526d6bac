"""What should happen next: the pure machine. See `table.py` for the whole lifecycle on one page.

Never: a clock, I/O, randomness, the environment, or an import of `agent`.
"""
