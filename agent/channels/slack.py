"""Slack, outbound: a thread per run, buttons for the options of a question; what came is found again by its metadata.

A message carries its parcel's id as metadata. When no answer came, the conversation is read from then on, and only
what is not there is sent again.

Never: text of a run as markup (a log may hold anything); the web client's own retries, which would double a message.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from functools import cached_property
from typing import Any
from urllib.error import URLError

from agent.channel_settings import SlackSettings
from agent.channels.base import Asked, ChannelError, Parcel, Unsure
from states.questions import option_text
from states.words.rows import asks

EVENT = "watchkeeper_delivery"
ACTION = "wk_answer"
"""Buttons of answers: `wk_answer:<number of the option>`."""
SECTION_MAX = 2900
BLOCKS_TEXT_MAX = 4
"""Sections of text of one message; what is longer is cut, and is in the inbox."""
PAGE = 200
PAGES_MAX = 10
OVERLAP_S = 60.0


class SlackChannel:
    """One conversation of one workspace."""

    threads = True

    def __init__(
        self, name: str, settings: SlackSettings, *, bot_token: str, timeout_s: float = 10.0
    ) -> None:
        self.name, self.settings = name, settings
        self._token, self._timeout_s = bot_token, timeout_s

    def send(self, parcel: Parcel) -> str:
        answer = self._call(
            "chat.postMessage",
            channel=self.settings.conversation,
            text=f"{self._call_for(parcel)} {escaped(parcel.title)}".strip(),
            blocks=blocks_of(parcel, self._call_for(parcel)),
            metadata={"event_type": EVENT, "event_payload": {"id": parcel.id}},
            unfurl_links=False,
            unfurl_media=False,
            **({"thread_ts": parcel.thread, "reply_broadcast": parcel.loud} if parcel.thread else {}),
        )
        return str(answer["ts"])

    def find(self, parcel: Parcel, since: datetime) -> str | None:
        found = self._found(parcel.id, since, "conversations.history")
        if found is None and parcel.thread:
            found = self._found(parcel.id, since, "conversations.replies", ts=parcel.thread)
        return found

    def _call_for(self, parcel: Parcel) -> str:
        """The mention that makes it interrupt."""
        whom = self.settings.mention
        return "" if not whom or not parcel.loud else f"<!{whom}>" if whom.islower() else f"<@{whom}>"

    def _found(self, key: str, since: datetime, method: str, **where: str) -> str | None:
        """Where the message with this key stands, page by page. Raises Unsure when that takes too many."""
        cursor = ""
        for _ in range(PAGES_MAX):
            page = self._call(
                method,
                channel=self.settings.conversation,
                oldest=f"{since.timestamp() - OVERLAP_S:.6f}",
                include_all_metadata=True,
                limit=PAGE,
                **where,
                **({"cursor": cursor} if cursor else {}),
            )
            for message in page.get("messages", ()):
                if message.get("metadata", {}).get("event_payload", {}).get("id") == key:
                    return str(message["ts"])
            cursor = str(page.get("response_metadata", {}).get("next_cursor") or "")
            if not cursor:
                return None
        raise Unsure("the conversation is too long to find out whether it arrived")

    def test(self) -> str:
        who = self._call("auth.test")
        here = self._call("conversations.info", channel=self.settings.conversation)
        name = here.get("channel", {}).get("name") or self.settings.conversation
        return f"known as {who.get('user', '?')} in {who.get('team', '?')}, and may see #{name}"

    def shown(self) -> str:
        return f"Slack {self.settings.conversation}"

    def _call(self, method: str, **arguments: Any) -> Mapping[str, Any]:
        from slack_sdk.errors import SlackApiError

        packed = {
            name: json.dumps(value, ensure_ascii=False) if isinstance(value, (list, dict)) else value
            for name, value in arguments.items()
        }
        try:
            answer = self._client.api_call(method, params=packed)
            return dict(answer.data)
        except SlackApiError as error:
            raise ChannelError(f"Slack answered {_code(error)} to {method}") from None
        except URLError as error:
            refused = isinstance(error.reason, (ConnectionRefusedError, OSError)) and not isinstance(
                error.reason, (TimeoutError, ConnectionResetError)
            )
            kind = ChannelError if refused else Unsure
            raise kind(f"no connection to Slack: {type(error.reason).__name__}") from None
        except (OSError, ValueError) as error:
            raise Unsure(f"no answer from Slack to {method}: {type(error).__name__}") from None

    @cached_property
    def _client(self) -> Any:
        from slack_sdk import WebClient

        return WebClient(
            token=self._token,
            base_url=self.settings.base_url,
            timeout=int(self._timeout_s),
            retry_handlers=[],
        )


def _code(error: Any) -> str:
    answer = error.response
    code = answer.get("error") if hasattr(answer, "get") else None
    return str(code or "an error")


# --- what a message looks like -----------------------------------------------------------------------------


def blocks_of(parcel: Parcel, mention: str = "") -> list[dict[str, Any]]:
    """Whom it calls, sections of plain text, then a row of buttons for each question."""
    blocks: list[dict[str, Any]] = []
    if mention:
        blocks.append({"type": "context", "elements": [{"type": "mrkdwn", "text": mention}]})
    blocks += [_section(piece) for piece in pieces(parcel.text)]
    for one in parcel.asked:
        if len(parcel.asked) > 1:
            blocks.append(_section(f"{one.question.id}: {asks(one.job, one.question)}"[:SECTION_MAX]))
        blocks.append(_buttons(one))
    if parcel.link:
        blocks.append(
            {"type": "context", "elements": [{"type": "mrkdwn", "text": f"<{parcel.link}|{parcel.run}>"}]}
        )
    return blocks


def pieces(text: str) -> list[str]:
    """The text in parts that a section may hold, broken at lines where that can be."""
    found: list[str] = []
    rest = text.strip() or "-"
    while rest and len(found) < BLOCKS_TEXT_MAX:
        if len(rest) <= SECTION_MAX:
            return [*found, rest]
        at = rest.rfind("\n", 1, SECTION_MAX)
        at = at if at > 0 else SECTION_MAX
        found.append(rest[:at])
        rest = rest[at:].lstrip("\n")
    return [*found[:-1], found[-1][: SECTION_MAX - 2] + " …"]


def _section(text: str) -> dict[str, Any]:
    return {"type": "section", "text": {"type": "plain_text", "text": text, "emoji": False}}


def _buttons(one: Asked) -> dict[str, Any]:
    question = one.question
    buttons = []
    for number, option in enumerate(question.template.options, start=1):
        label = f"{number} {option_text(option, one.job.language)}"
        button: dict[str, Any] = {
            "type": "button",
            "action_id": f"{ACTION}:{number}",
            "value": f"{question.id}|{option.key}",
            "text": {"type": "plain_text", "text": label[:75], "emoji": False},
        }
        if option == question.default:
            button["style"] = "primary"
        buttons.append(button)
    return {"type": "actions", "block_id": f"wk:{question.id}"[:255], "elements": buttons}


def escaped(text: str) -> str:
    """As Slack wants it in mrkdwn, so that no text of a run becomes a mention or a link."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
