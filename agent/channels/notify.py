"""Feishu, DingTalk, WeCom, mail, ntfy and others, outbound by Apprise; a question carries a signed link for each of
its answers back to the page.

Apprise tells that a send failed, and not whether it arrived all the same, and knows no key: see `find`.

Never: the URL in a log, an error or on the page (it holds the password), but as Apprise blanks it.
"""

from __future__ import annotations

import logging
from datetime import datetime
from functools import cached_property
from typing import Any

from agent.channels.base import ChannelError, Parcel, Unsure

TEXT_MAX = 4000
"""Characters of a body; services cut or refuse more."""
ANSWER = {"en": "Answer here until {until}: {url}", "zh": "在 {until} 之前点此回答: {url}"}
OPEN = {"en": "The run: {url}", "zh": "任务: {url}"}


class AppriseChannel:
    """One Apprise URL. timeout_s: for connecting, and for the answer."""

    threads = False

    def __init__(self, name: str, *, url: str, timeout_s: float, language: str = "en") -> None:
        self.name = name
        self._url, self._timeout_s, self._language = url, timeout_s, language

    def send(self, parcel: Parcel) -> str:
        self._notify(parcel.title, body_of(parcel, self._language), loud=parcel.loud)
        return ""

    def find(self, parcel: Parcel, since: datetime) -> str | None:
        raise Unsure("Apprise cannot tell what has arrived")

    def test(self) -> str:
        self._notify("Watchkeeper", "This is a test: messages arrive here.", loud=False)
        return "a test was sent; see that it arrived"

    def shown(self) -> str:
        try:
            return str(self._service.url(privacy=True))
        except ChannelError as error:
            return str(error)

    @cached_property
    def _service(self) -> Any:
        import apprise

        logging.getLogger("apprise").setLevel(logging.CRITICAL)  # its lines may hold the URL
        options = f"cto={self._timeout_s:g}&rto={self._timeout_s:g}"
        joined = f"{self._url}{'&' if '?' in self._url else '?'}{options}"
        asset = apprise.AppriseAsset(app_id="Watchkeeper", app_desc="Watchkeeper", app_url="")
        made = apprise.Apprise.instantiate(joined, asset=asset, suppress_exceptions=True)
        if made is None:
            raise ChannelError("its key holds no URL that Apprise knows; set it again by `wk key set`")
        return made

    def _notify(self, title: str, body: str, *, loud: bool) -> None:
        import apprise

        kind = apprise.NotifyType.WARNING if loud else apprise.NotifyType.INFO
        bundle = apprise.Apprise()
        bundle.add(self._service)
        if not bundle.notify(body=body, title=title, notify_type=kind, body_format=apprise.NotifyFormat.TEXT):
            raise ChannelError(f"{self.shown()} did not take it")


def body_of(parcel: Parcel, language: str) -> str:
    """The text, bounded, with the links below it, which are never cut."""
    links = [
        ANSWER[language].format(until=f"{one.question.answer_by:%Y-%m-%d %H:%M %Z}", url=one.link)
        for one in parcel.asked
        if one.link
    ]
    if parcel.link:
        links.append(OPEN[language].format(url=parcel.link))
    room = TEXT_MAX - sum(len(line) + 1 for line in links)
    text = parcel.text if len(parcel.text) <= room else parcel.text[: max(room - 2, 0)] + " …"
    return "\n".join([text, *links])
