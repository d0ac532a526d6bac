"""Lint of a job's command and of the scripts it starts: what would lose, double, leak or waste a run (C11, C12).

`lint.py` is the door. Each concern has a file of its own and reads the same facts: units and runs of the walk.

Never: run, import or download anything that is judged; touch a file.
"""
