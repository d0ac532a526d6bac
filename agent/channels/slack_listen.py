"""Slack, inbound: buttons, the slash command, mentions and replies in a run's thread, by Bolt in socket mode.

One thread with a loop of its own holds the socket; what is asked is done in worker threads, so that an
acknowledgement never waits for it. Slack sends an event again that it thinks lost: each has a key, and is done once.

Never: a secret in a log; an answer for somebody whose role does not cover it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
from collections.abc import Callable
from threading import Event, Thread
from typing import Any

from agent.channel_settings import SlackSettings
from agent.channels.chat import Chat
from agent.channels.slack import ACTION, escaped
from agent.deliveries import Deliveries
from agent.people import Role

log = logging.getLogger(__name__)

COMMAND = re.compile(r"/(?:wk|watchkeeper)")
MENTION = re.compile(r"<@[A-Z0-9]+>")
REPLY_MAX = 3500
AGAIN_S = 15.0
"""Pause before the socket is tried again when it could not be opened at all."""
END_S = 5.0


class SlackEar:
    """Listens for one Slack channel."""

    def __init__(
        self,
        name: str,
        settings: SlackSettings,
        chat: Chat,
        deliveries: Deliveries,
        *,
        bot_token: str,
        app_token: str,
    ) -> None:
        self.name, self._settings, self._chat, self._deliveries = name, settings, chat, deliveries
        self._bot_token, self._app_token = bot_token, app_token
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ended: asyncio.Event | None = None
        self._thread = Thread(target=self._run, name=f"slack-{name}", daemon=True)
        self.connected = Event()
        """Set once the socket was open."""

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """End the socket; what is under way is finished."""
        if self._loop is not None and self._ended is not None:
            self._loop.call_soon_threadsafe(self._ended.set)
            self._thread.join(END_S)

    def _run(self) -> None:
        try:
            asyncio.run(self._listen())
        except Exception:
            log.exception("the socket of %s ended", self.name)

    async def _listen(self) -> None:
        from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler

        self._loop, self._ended = asyncio.get_running_loop(), asyncio.Event()
        app = self._app()
        while not self._ended.is_set():
            handler: Any = AsyncSocketModeHandler(app, self._app_token, web_client=app.client)
            try:
                await handler.connect_async()
                self.connected.set()
                await self._ended.wait()
            except Exception as error:
                log.warning("the socket of %s cannot be opened: %s", self.name, type(error).__name__)
                await self._wait(AGAIN_S)
            finally:
                await handler.close_async()

    async def _wait(self, seconds: float) -> None:
        assert self._ended is not None
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._ended.wait(), seconds)

    def _app(self) -> Any:
        from slack_bolt.async_app import AsyncApp
        from slack_sdk.web.async_client import AsyncWebClient

        client = AsyncWebClient(token=self._bot_token, base_url=self._settings.base_url)
        app = AsyncApp(client=client, token=self._bot_token, logger=_quiet_logger())
        app.action(re.compile(f"^{ACTION}:"))(self._pressed)
        app.command(COMMAND)(self._command)
        app.event("app_mention")(self._mentioned)
        app.event("message")(self._message)
        return app

    def role_of(self, user: str) -> Role | None:
        """What a person of this workspace may do."""
        given = self._settings.roles.get(user, self._settings.others)
        return None if given == "none" else Role(given)

    # --- what comes in -------------------------------------------------------------------------------------

    async def _pressed(self, ack: Any, body: dict[str, Any], client: Any) -> None:
        """A button of a question."""
        await ack()
        action = body["actions"][0]
        question, _, option = str(action["value"]).rpartition("|")
        user, where = str(body["user"]["id"]), body["channel"]["id"]
        message = body.get("message", {})
        thread = message.get("thread_ts") or message.get("ts")
        value = await asyncio.to_thread(self._chat.wants_value, question, option)
        if value:
            said = f"{question}: reply here with the {value}, as `{option} <{value}>`."
        else:
            key = f"slack:{action.get('action_ts', '')}:{user}"
            by = f"slack:{user}"
            said = await self._asked(
                self._chat.press, question, option, by=by, role=self.role_of(user), key=key
            )
        await self._say(client, where, thread, said)

    async def _command(self, ack: Any, command: dict[str, Any], respond: Any) -> None:
        """`/wk how is digits doing`: told to who asked alone."""
        await ack()
        said = await self._heard(
            str(command.get("text", "")),
            str(command["user_id"]),
            f"slack:{command.get('trigger_id', '')}",
            "",
        )
        await respond(text=escaped(said)[:REPLY_MAX], response_type="ephemeral")

    async def _mentioned(self, event: dict[str, Any], client: Any) -> None:
        await self._hear(event, client)

    async def _message(self, event: dict[str, Any], client: Any) -> None:
        """A reply in a thread of ours, or a message to us alone. What mentions us comes as a mention too."""
        text = str(event.get("text", ""))
        if event.get("bot_id") or event.get("subtype") or MENTION.match(text.strip()):
            return
        ours = event.get("channel_type") == "im"
        if not ours and event.get("thread_ts"):
            ours = bool(await asyncio.to_thread(self._run_at, str(event["thread_ts"])))
        if ours:
            await self._hear(event, client)

    async def _hear(self, event: dict[str, Any], client: Any) -> None:
        thread = str(event.get("thread_ts") or "")
        run = await asyncio.to_thread(self._run_at, thread) if thread else ""
        text = MENTION.sub(" ", str(event.get("text", ""))).strip()
        key = f"slack:{event.get('channel', '')}:{event.get('ts', '')}"
        said = await self._heard(text, str(event.get("user", "")), key, run)
        await self._say(client, event["channel"], thread or event.get("ts"), said)

    async def _heard(self, text: str, user: str, key: str, run: str) -> str:
        plain = text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
        return await self._asked(
            self._chat.said, plain, by=f"slack:{user}", role=self.role_of(user), key=key, run=run
        )

    async def _asked(self, do: Callable[..., str], *given: Any, **more: Any) -> str:
        """What came of it, done in a thread; who asked is told of a failure too."""
        try:
            return await asyncio.to_thread(do, *given, **more)
        except Exception:
            log.exception("what was asked in %s could not be done", self.name)
            return "That did not work, and nothing was changed by it. Try again in a moment; `wk doctor` looks why."

    async def _say(self, client: Any, where: str, thread: str | None, said: str) -> None:
        if said:
            text = escaped(said)[:REPLY_MAX]
            await client.chat_postMessage(channel=where, thread_ts=thread, text=text, unfurl_links=False)

    def _run_at(self, place: str) -> str:
        return self._deliveries.run_at(self.name, place)


def _quiet_logger() -> logging.Logger:
    """Bolt tells of every event it does not know, with its whole body."""
    quiet = logging.getLogger("watchkeeper.slack")
    quiet.setLevel(logging.ERROR)
    return quiet
