"""The channels of `config.yaml`: what each kind wants to know, with every secret given as the name of a key.

An address of a channel holds its password as a rule, so it is a key too: `wk key set NAME` stores it, and the
settings say the name. So the file can be shown and shared.

Never: an address or a token itself; an import of what only a channel in use needs.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from states.routing import Rule, Wants

Role = Literal["none", "read", "answer", "operate"]
"""What somebody may do from a channel; `agent.people.Role` and nothing at all."""


def _key_name(text: str) -> str:
    if not re.fullmatch(r"[A-Z][A-Z0-9_]*", text):
        raise ValueError(
            "is the name of a key in capitals, as TEAM_URL; store the value itself by `wk key set TEAM_URL`"
        )
    return text


KeyName = Annotated[str, AfterValidator(_key_name)]


class _Channel(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    wants: Wants = "all"
    """all, must-not-miss (what interrupts, and questions), or questions."""
    group_s: float = Field(default=900.0, ge=0, le=86_400)
    """Routine messages of so many seconds come as one; 0: each by itself."""
    quiet: bool = True
    """Whether the quiet hours of the standing orders hold here."""

    @property
    def rule(self) -> Rule:
        return Rule(wants=self.wants, group_s=self.group_s, quiet=self.quiet)


class SlackSettings(_Channel):
    """Slack in socket mode: a thread per run, buttons for options, a slash command, free text."""

    kind: Literal["slack"]
    conversation: str = Field(pattern=r"^[CDG][A-Z0-9]{2,}$")
    """The conversation's id, as C0123456789."""
    bot_token: KeyName = "SLACK_BOT_TOKEN"
    """Name of the key with the bot's token (xoxb-...)."""
    app_token: KeyName = "SLACK_APP_TOKEN"
    """Name of the key with the app's token (xapp-...)."""
    others: Role = "answer"
    """What somebody in the conversation may do who is not named in `roles`."""
    roles: dict[str, Role] = Field(default_factory=dict)
    """By the user's id, as U0123456789."""
    mention: str = Field(default="", pattern=r"^(here|channel|U[A-Z0-9]{2,})?$")
    """Whom a message calls that must not be missed: here, channel, or a user's id."""
    base_url: str = "https://slack.com/api/"


class AppriseSettings(_Channel):
    """Feishu, DingTalk, WeCom, mail, ntfy and whatever else Apprise has a URL for; outbound."""

    kind: Literal["apprise"]
    url: KeyName
    """Name of the key with the Apprise URL."""
    timeout_s: float = Field(default=10.0, gt=0, le=60)


class WebhookSettings(_Channel):
    """A program: signed messages to it (where it has a URL), signed answers from it."""

    kind: Literal["webhook"]
    secret: KeyName
    """Name of the key with the shared secret (whsec_ and Base64, or any text)."""
    url: KeyName | None = None
    """Name of the key with the address that messages are posted to; without one it only sends."""
    role: Role = "answer"
    """What it may do here."""
    group_s: float = Field(default=0.0, ge=0, le=86_400)
    quiet: bool = False
    timeout_s: float = Field(default=10.0, gt=0, le=60)


ChannelSettings = Annotated[SlackSettings | AppriseSettings | WebhookSettings, Field(discriminator="kind")]
