"""Killed at every instant that matters, and carried on."""
