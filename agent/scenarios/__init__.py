"""Scenarios: stories in YAML played against the real loop on a virtual clock. The front is `agent/scenario.py`.

Never: product code that only a scenario uses on the side of the loop itself.
"""
