"""A figure of 0 is left to the cluster's own default; a cluster without one refuses it before anything is stored."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.service import Refusal
from agent.store import Store
from states.spec import Request
from tests.agent.fakes import Desk


@pytest.mark.parametrize("figure", ["cpu", "memory_mib"])
def test_zero_is_refused_where_there_is_no_default(tmp_path: Path, figure: str) -> None:
    store = Store("sqlite://")
    store.create_schema()
    desk = Desk(store, tmp_path)
    request = Request.model_validate({"command": ["true"], figure: 0})
    with pytest.raises(Refusal, match=r"own default.*give a figure"):
        desk.service.delegate(request, workspace=str(tmp_path))
    assert store.live_ids() == []
    store.close()
