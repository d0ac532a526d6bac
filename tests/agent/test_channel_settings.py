"""Channels in the settings: names of keys and never their values, each fault with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.channel_settings import AppriseSettings, SlackSettings, WebhookSettings
from agent.settings import Settings, load_settings
from agent.yamlfile import UserFileError
from states.routing import Rule


def loaded(folder: Path, text: str) -> Settings:
    file = folder / "config" / "config.yaml"
    file.parent.mkdir(exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return load_settings({"HOME": str(folder), "WATCHKEEPER_HOME": str(folder)})


def test_each_kind_is_read(tmp_path: Path) -> None:
    found = loaded(
        tmp_path,
        "channels:\n"
        "  team: {kind: slack, conversation: C0123, roles: {U1: operate}}\n"
        "  phone: {kind: apprise, url: PHONE_URL, wants: must-not-miss}\n"
        "  ci: {kind: webhook, url: CI_URL, secret: CI_SECRET}\n",
    ).channels
    assert [type(one) for one in found.values()] == [SlackSettings, AppriseSettings, WebhookSettings]
    assert found["phone"].rule == Rule(wants="must-not-miss", group_s=900, quiet=True)
    assert found["ci"].rule == Rule(
        wants="all", group_s=0, quiet=False
    )  # a program wants each, and sleeps never


@pytest.mark.parametrize(
    ("channel", "said"),
    [
        ("{kind: apprise, url: 'ntfy://secret@host/topic'}", "wk key set"),
        ("{kind: webhook, url: CI_URL}", "secret"),
        ("{kind: slack, conversation: '#runs'}", "conversation"),
        ("{kind: slack, conversation: C0123, role: read}", "roles"),
        ("{kind: pigeon}", "slack"),
        ("{kind: apprise, url: A, wants: everything}", "must-not-miss"),
    ],
)
def test_a_fault_has_its_line_and_a_way_out(tmp_path: Path, channel: str, said: str) -> None:
    with pytest.raises(UserFileError) as caught:
        loaded(tmp_path, f"workers: 2\nchannels:\n  mine: {channel}\n")
    assert f"{tmp_path}/config/config.yaml:3" in str(caught.value)
    assert said in str(caught.value)
    assert "secret@host" not in str(caught.value)


def test_the_page_needs_a_whole_address(tmp_path: Path) -> None:
    assert loaded(tmp_path, "public_url: https://wk.example/x/\n").public_url == "https://wk.example/x"
    with pytest.raises(UserFileError, match="must begin with https"):
        loaded(tmp_path, "public_url: wk.example\n")
