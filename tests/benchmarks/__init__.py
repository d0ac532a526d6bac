"""Figures, printed by `make bench`. They measure and fail nothing: a slow machine is not a wrong program."""
