"""The prompts: text files with a version and a schema, read by `agent/prompt.py` as package data.

Never: code; a prompt that is changed without a new version (README.md lists them).
"""
