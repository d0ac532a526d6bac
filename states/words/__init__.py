"""What reports are worded with, in both languages; the front door is `states/reports.py`.

Never: a decision.
"""
