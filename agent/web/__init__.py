"""The page and the HTTP API of `wk serve`: a thin shell around the application service.

Never: logic about a run; a line that is not redacted; a script or a style inside a page.
"""
