"""The inner rooms of reading a log; the front doors are `text`, `progress`, `causes`, `digest`, `verdict` above.

Never: an import of the machine.
"""
