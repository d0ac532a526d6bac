"""The keys of a person: who may read them, where they lie, what is refused (RULES B1, B2, B4, B6).

Never: a real credential, or the keyring of the person who runs the tests.
"""

from __future__ import annotations

import importlib
import json
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent import secrets as module
from agent.paths import config_dir, data_dir, private, state_dir
from agent.secrets import KNOWN, Secrets, SecretsError, advice

VALUE = "Zq7KdvT2mLp9xRw4K"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "config" / "keys"


@pytest.fixture
def store(folder: Path) -> Secrets:
    return Secrets(folder, env={})


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


# --- set, get, forget ---------------------------------------------------------------------------------------


def test_a_key_is_kept_for_its_owner_only(store: Secrets, folder: Path) -> None:
    assert store.set("HF_TOKEN", VALUE) == "file"
    assert store.get("HF_TOKEN") == VALUE
    assert mode_of(folder) == 0o700
    assert {path.name: mode_of(path) for path in folder.iterdir()} == {"keys.json": 0o600, "lock": 0o600}


def test_a_loose_umask_changes_nothing(store: Secrets, folder: Path) -> None:
    before = os.umask(0)
    try:
        store.set("HF_TOKEN", VALUE)
    finally:
        os.umask(before)
    assert (mode_of(folder), mode_of(folder / "keys.json")) == (0o700, 0o600)


def test_another_process_sees_the_change(store: Secrets, folder: Path) -> None:
    other = Secrets(folder, env={})
    assert other.get("HF_TOKEN") is None
    store.set("HF_TOKEN", VALUE)
    assert other.get("HF_TOKEN") == VALUE
    assert other.forget("HF_TOKEN") is True
    assert store.get("HF_TOKEN") is None
    assert store.forget("HF_TOKEN") is False


def test_writers_at_the_same_time_lose_nothing(folder: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from agent.secrets import Secrets\n"
        "for n in range(5): Secrets(Path(sys.argv[1]), env={}).set(f'{sys.argv[2]}_{n}', 'value-of-it')"
    )
    root = Path(__file__).parents[2]
    writers = [
        subprocess.Popen([sys.executable, "-c", program, str(folder), name], cwd=root)
        for name in ("A", "B", "C")
    ]
    assert [writer.wait(timeout=60) for writer in writers] == [0, 0, 0]
    assert len(Secrets(folder, env={}).names()) == 15


def test_the_environment_is_the_lower_source(folder: Path) -> None:
    store = Secrets(folder, env={"HF_TOKEN": "from-env-1", "ANTHROPIC_API_KEY": "from-env-2", "PATH": "/bin"})
    assert (store.get("HF_TOKEN"), store.source("HF_TOKEN")) == ("from-env-1", "environment")
    assert store.names() == ["ANTHROPIC_API_KEY"]
    store.set("HF_TOKEN", VALUE)
    assert (store.get("HF_TOKEN"), store.source("HF_TOKEN")) == (VALUE, "file")
    assert store.values() == {"HF_TOKEN": VALUE, "ANTHROPIC_API_KEY": "from-env-2"}
    assert store.source("PATH_TO_X") is None


def test_nothing_prints_a_value(store: Secrets) -> None:
    store.set("HF_TOKEN", VALUE)
    assert VALUE not in f"{store!r} {store} {store.names()} {vars(store)}"


def test_each_known_key_says_where_it_is_found_and_how_it_is_set() -> None:
    for name in KNOWN:
        assert f"wk key set {name}" in advice(name)
        assert KNOWN[name].where in advice(name)


# --- refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value", ["", "  ", f"{VALUE}\n", f"a\n{VALUE}", f"{VALUE}\0", f"{VALUE}\x1b[0m", VALUE * 2000]
)
def test_a_value_that_is_no_key_is_refused_and_not_repeated(store: Secrets, folder: Path, value: str) -> None:
    with pytest.raises(SecretsError) as caught:
        store.set("HF_TOKEN", value)
    assert VALUE not in str(caught.value)
    assert not folder.exists()


@pytest.mark.parametrize("name", ["", "hf_token", "1ST", "A-B", "A B", "A=" + VALUE, "Ä"])
def test_a_name_must_be_that_of_a_variable(store: Secrets, name: str) -> None:
    with pytest.raises(SecretsError, match="capitals") as caught:
        store.set(name, "some-value")
    assert VALUE not in str(caught.value)


def test_a_malformed_charged_group_is_refused_when_it_is_set(store: Secrets) -> None:
    with pytest.raises(SecretsError, match="namespace:group") as caught:
        store.set("BRAINPP_CHARGED_GROUP", "lab-quiet")
    assert "lab-quiet" not in str(caught.value)
    store.set("BRAINPP_CHARGED_GROUP", "lab-a:train")


def test_a_file_that_others_can_read_is_refused_with_the_cure(store: Secrets, folder: Path) -> None:
    store.set("HF_TOKEN", VALUE)
    (folder / "keys.json").chmod(0o640)
    for read in (lambda: store.get("HF_TOKEN"), store.names, lambda: store.set("B", "some-value")):
        with pytest.raises(SecretsError, match=r"chmod 600 .*keys\.json"):
            read()
    (folder / "keys.json").chmod(0o600)
    folder.chmod(0o755)
    with pytest.raises(SecretsError, match="chmod 700"):
        store.get("HF_TOKEN")


def test_a_link_is_not_followed(store: Secrets, folder: Path, tmp_path: Path) -> None:
    private(folder)
    (tmp_path / "elsewhere").write_text("{}")
    (folder / "keys.json").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(SecretsError, match="plain file"):
        store.get("HF_TOKEN")


def test_a_damaged_file_is_said_so_and_kept(store: Secrets, folder: Path) -> None:
    store.set("HF_TOKEN", VALUE)
    (folder / "keys.json").write_text(json.dumps({"values": VALUE}))
    with pytest.raises(SecretsError, match="damaged") as caught:
        store.set("B", "some-value")
    assert VALUE not in str(caught.value)
    assert VALUE in (folder / "keys.json").read_text()


# --- the keyring --------------------------------------------------------------------------------------------

DESKTOP = {"DBUS_SESSION_BUS_ADDRESS": "unix:path=/nowhere", "DISPLAY": ":0"}


@pytest.fixture
def ring(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """A keyring of the test's own, chosen as a person chooses one; gives what it holds."""
    core = pytest.importorskip("keyring.core")
    monkeypatch.setattr(core, "_keyring_backend", None)
    held: dict[str, str] = {}
    core.set_keyring(ring_of(held))
    return held


def ring_of(held: dict[str, str], *, answers: Callable[[], object] = bool) -> Any:
    from keyring.backend import KeyringBackend

    class Ring(KeyringBackend):
        priority = 9

        def get_password(self, service: str, username: str) -> str | None:
            answers()
            return held.get(username)

        def set_password(self, service: str, username: str, password: str) -> None:
            held[username] = password

        def delete_password(self, service: str, username: str) -> None:
            del held[username]

    return Ring()


def test_a_working_keyring_holds_the_value_and_the_file_only_its_name(
    folder: Path, ring: dict[str, str]
) -> None:
    store = Secrets(folder, env=DESKTOP)
    assert store.set("HF_TOKEN", VALUE) == "keyring"
    assert VALUE not in (folder / "keys.json").read_text()
    assert ring == {"HF_TOKEN": VALUE}
    assert (store.get("HF_TOKEN"), store.source("HF_TOKEN"), store.names()) == (
        VALUE,
        "keyring",
        ["HF_TOKEN"],
    )
    assert store.values() == {"HF_TOKEN": VALUE}
    assert Secrets(folder, env={}, keyring="off").set("HF_TOKEN", "a-new-value") == "file"
    assert ring == {}
    assert store.get("HF_TOKEN") == "a-new-value"
    store.set("HF_TOKEN", VALUE)
    assert store.forget("HF_TOKEN") is True
    assert ring == {}


def test_without_a_desktop_the_keyring_is_not_asked(folder: Path, ring: dict[str, str]) -> None:
    bus_only = {"DBUS_SESSION_BUS_ADDRESS": "unix:path=/nowhere"}
    assert Secrets(folder, env=bus_only).set("HF_TOKEN", VALUE) == "file"
    assert Secrets(folder, env=DESKTOP, keyring="off").set("HF_TOKEN", VALUE) == "file"
    assert ring == {}


def test_a_keyring_that_never_answers_is_given_up(
    folder: Path, ring: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import keyring

    over = threading.Event()
    keyring.set_keyring(ring_of(ring, answers=over.wait))
    monkeypatch.setattr(module, "KEYRING_WAIT_S", 0.1)
    try:
        assert Secrets(folder, env=DESKTOP).set("HF_TOKEN", VALUE) == "file"
        with pytest.raises(SecretsError, match="keyring: off"):
            Secrets(folder, env=DESKTOP, keyring="on").set("HF_TOKEN", VALUE)
    finally:
        over.set()


@pytest.mark.parametrize("backend", ["fail", "null"])
def test_a_keyring_that_keeps_nothing_is_none(folder: Path, ring: dict[str, str], backend: str) -> None:
    import keyring

    keyring.set_keyring(importlib.import_module(f"keyring.backends.{backend}").Keyring())
    assert Secrets(folder, env=DESKTOP).set("HF_TOKEN", VALUE) == "file"
    with pytest.raises(SecretsError, match="keyring: off"):
        Secrets(folder, env=DESKTOP, keyring="on").set("HF_TOKEN", VALUE)


def test_a_keyring_that_went_away_is_said_by_name(folder: Path, ring: dict[str, str]) -> None:
    Secrets(folder, env=DESKTOP).set("HF_TOKEN", VALUE)
    ring.clear()
    later = Secrets(folder, env={})
    with pytest.raises(SecretsError, match="HF_TOKEN was put into the keyring"):
        later.get("HF_TOKEN")
    assert later.values() == {}


# --- folders ------------------------------------------------------------------------------------------------


def test_the_folders_follow_xdg_and_one_variable_moves_all(tmp_path: Path) -> None:
    assert config_dir({"HOME": "/h"}) == Path("/h/.config/watchkeeper")
    assert state_dir({"HOME": "/h", "XDG_STATE_HOME": "/s"}) == Path("/s/watchkeeper")
    assert data_dir({"HOME": "/h", "XDG_DATA_HOME": "not/absolute"}) == Path("/h/.local/share/watchkeeper")
    own = {"HOME": "/h", "XDG_CONFIG_HOME": "/c", "WATCHKEEPER_HOME": str(tmp_path)}
    assert [f(own) for f in (config_dir, state_dir, data_dir)] == [
        tmp_path / k for k in ("config", "state", "data")
    ]


def test_new_folders_are_private_and_old_ones_are_left(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    made = private(tmp_path / "a" / "b")
    assert [mode_of(made), mode_of(made.parent), mode_of(tmp_path)] == [0o700, 0o700, 0o755]
