"""The surface for chat agents: the service as tools of the Model Context Protocol, on stdio and streamable HTTP.

Never: a way round the service; a tool that shows or takes a credential.
"""
