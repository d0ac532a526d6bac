"""The tools of the page are loaded by who asks first, and whoever asks gets an answer."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI

from agent.mcp import mount
from tests.mcp.conftest import Served, listening


def test_the_page_alone_does_not_load_them() -> None:
    look = "import sys; import agent.web.server, agent.mcp.mount; print('mcp' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "False"


@pytest.mark.parametrize("fails", ["as they are made", "as their sessions begin"])
def test_where_they_cannot_be_loaded_it_is_said(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    from agent.mcp import http

    make = http.tools

    def broken(*given: Any, **more: Any) -> Any:
        if fails == "as they are made":
            raise RuntimeError("a package is broken")
        made = make(*given, **more)
        monkeypatch.setattr(made.server.session_manager, "run", lambda: 1 / 0)
        return made

    monkeypatch.setattr(http, "tools", broken)
    web = FastAPI()
    mount.mount(web, served.app.service, served.people, workspace=tmp_path)
    with listening(web) as url:
        answers = [httpx2.post(f"{url}{mount.PATH}", json={}, timeout=20) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [503, 503]
    assert "could not be loaded" in answers[0].text
