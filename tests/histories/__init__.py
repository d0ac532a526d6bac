"""Histories that releases wrote, as `wk export` gave them: later versions still read and decide them alike."""
