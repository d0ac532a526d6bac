"""The inner rooms of reading a log; their front doors are `text`, `progress`, `causes`, `digest` and `verdict` one floor up.

Never: an import of the machine.
"""
