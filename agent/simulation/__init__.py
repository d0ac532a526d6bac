"""Worlds drawn by lot from a seed: stories with faults, played by the scenarios' own loop.

The front is `agent/simulate.py`.

Never: a check, a loop or a store of its own; what a seed finds must be a story that anyone can play.
"""
