"""Channels: how messages of the inbox reach people elsewhere, and how answers come back.

    inbox -> deliveries (rows) -> a post per channel -> Slack, Apprise, webhook

Every channel reads the same rows and calls the same service; what a chat message asks for is told by `states/chat`.

Never: a decision about a run; an import of a channel's library before a channel of its kind is used.
"""
