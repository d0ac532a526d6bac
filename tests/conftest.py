"""What every test has: a home of its own, no network beyond this machine, a way to wait for real processes.

Under tests/states the outside is refused altogether: sockets, processes, sleeping, written files, the clock.
The machine takes none of them, and a test of it that needs one tests something else.

Never: a fixture that stands in for product code. Builders live beside the tests that use them.
"""

from __future__ import annotations

import gc
import ipaddress
import os
import random
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import settings

Value = TypeVar("Value")

ROOT = Path(__file__).parent.parent
STATES = ROOT / "tests" / "states"

# The same examples on every machine, and no deadline: a busy machine is not a failure.
settings.register_profile("house", derandomize=True, deadline=None, database=None, print_blob=True)
settings.load_profile("house")

pytest.register_assert_rewrite("tests.clusters.contract")


# --- a home of its own -------------------------------------------------------------------------------------


@pytest.fixture(autouse=True, scope="session")
def _nobody_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test reads or writes the settings, the store or the keys of the person who runs it."""
    with pytest.MonkeyPatch.context() as patch:
        settle_in(patch, tmp_path_factory.mktemp("home"))
        yield


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home of this test alone; the XDG folders are below it."""
    folder = tmp_path / "home"
    folder.mkdir(mode=0o700)
    settle_in(monkeypatch, folder)
    return folder


def settle_in(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """Point HOME and the XDG folders into the folder, and drop every setting and key of the person's own."""
    for name in list(os.environ):
        if name.startswith(("WATCHKEEPER_", "ANTHROPIC_")):
            patch.delenv(name)
    patch.setenv("HOME", str(folder))
    for kind in ("CONFIG", "DATA", "STATE", "CACHE"):
        patch.setenv(f"XDG_{kind}_HOME", str(folder / kind.lower()))
    runtime = folder / "run"
    runtime.mkdir(mode=0o700, exist_ok=True)
    patch.setenv("XDG_RUNTIME_DIR", str(runtime))


# --- beside each other -------------------------------------------------------------------------------------

LONG = (
    "slurm", "ray", "test_browser", "test_machine", "tests/cli/", "tests/replicas/", "tests/channels/", "tests/mcp/",
    "tests/security/", "test_kills", "test_simulation", "kubernetes",
)  # fmt: skip
"""What takes longest is begun first, so that no worker is left with it at the end."""


ENGINES = ("slurm", "ray", "kubernetes")
HAVE_THEIR_OWN = ("test_slurm_accounting.py", "test_slurm_others.py")
"""Files that start an engine of their own: a second unit beside the shared one, one after the other."""


def unit_of(nodeid: str) -> str:
    """What stays together in one worker: a file, or all files of one engine, which is started once."""
    path = nodeid.partition("::")[0]
    if path.endswith(HAVE_THEIR_OWN):
        return "slurm with accounting"
    return next((word for word in ENGINES if f"/test_{word}" in path or f"/clusters/{word}/" in path), path)


REAL = (
    "tests/clusters/slurm/", "tests/clusters/ray/", "tests/replicas/", "test_browser", "_on_a_real_",
    "tests/channels/test_one_history.py", "tests/soak/",
)  # fmt: skip
"""Suites that start a scheduler, a database server, a browser, many real jobs; so does what runs on PostgreSQL."""


def is_real(item: pytest.Item) -> bool:
    """Whether the test stands on a real engine, which `make test-real` runs."""
    on = (
        item.callspec.params.values()
        if isinstance(item, pytest.Function) and hasattr(item, "callspec")
        else ()
    )
    postgres = "postgresql" in on or "postgres_url" in getattr(item, "fixturenames", ())
    return postgres or any(word in item.nodeid for word in REAL)


WORLDS = ("tests/agent/test_simulation",)
"""Suites that play worlds drawn from seeds, and break what guards them; `make test-worlds` runs these."""


def pytest_itemcollected(item: pytest.Item) -> None:
    """Marked as it is found, before marks are chosen by (`-m`)."""
    if is_real(item):
        item.add_marker("real")
    if item.nodeid.startswith(WORLDS):
        item.add_marker("worlds")


def pytest_collection_finish() -> None:
    """Seven thousand tests and what they import live to the end: the collector of garbage need not walk them."""
    gc.collect()
    gc.freeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The long ones first; the order is the same in every worker."""

    def rank(item: pytest.Item) -> int:
        unit = unit_of(item.nodeid)
        return next((place for place, word in enumerate(LONG) if word in unit), len(LONG))

    items.sort(key=rank)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Not by marks (`xdist_group`): with pytest 9.2 they are silently without effect."""
    from xdist.scheduler import LoadScopeScheduling

    class ByUnit(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return unit_of(nodeid)

    return ByUnit(config, log)


# --- waiting for what is real ------------------------------------------------------------------------------


@pytest.fixture
def eventually() -> Callable[..., Any]:
    """`eventually(look, within_s=20)`: look until it gives something true, and return that.

    For real processes and threads only, which end when they end. Fails when the time is over, and says what
    was seen last.
    """

    def wait(look: Callable[[], Value], within_s: float = 60.0) -> Value:
        until = time.monotonic() + within_s
        while not (seen := look()):
            if time.monotonic() > until:
                pytest.fail(f"not within {within_s:g} s; last seen: {seen!r}")
            time.sleep(0.01)
        return seen

    return wait


# --- the outside is refused --------------------------------------------------------------------------------

_pure = False
"""True while a test of states/ runs."""

REFUSED_TO_STATES = (
    "socket.",
    "subprocess.Popen",
    "os.system",
    "os.exec",
    "os.fork",
    "os.posix_spawn",
)


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    """An audit hook sees what no patched name hides; it cannot be taken out again, only be quiet."""
    if event == "socket.connect" and not is_here(arguments[1]):
        raise PermissionError(f"a test wanted {arguments[1]!r}; serve it on this machine instead")
    if not _pure:
        return
    if event.startswith(REFUSED_TO_STATES):
        raise PermissionError(f"a test of states/ used {event}; states/ touches nothing")
    if event == "open" and set(arguments[1] or "") & set("wax+"):
        raise PermissionError(f"a test of states/ wrote {arguments[0]!r}; states/ touches nothing")


def is_here(address: object) -> bool:
    """A Unix socket, or an address of this machine's loopback."""
    if not isinstance(address, tuple) or address[0] in {"localhost", ""}:
        return True
    try:
        return ipaddress.ip_address(address[0]).is_loopback
    except ValueError:
        return False


sys.addaudithook(_watch)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Around each test of states/: refuse whatever would make a decision depend on more than its event."""
    global _pure
    if STATES not in item.path.parents:
        return (yield)
    with pytest.MonkeyPatch.context() as patch:
        for module, names in ((time, ("time", "time_ns", "monotonic", "sleep")), (uuid, ("uuid1", "uuid4"))):
            for name in names:
                patch.setattr(module, name, refused(f"{module.__name__}.{name}"))
        patch.setattr(random, "random", refused("random.random"))
        _pure = True
        try:
            return (yield)
        finally:
            _pure = False


def refused(name: str) -> Callable[..., Any]:
    """What stands in for a clock or for chance while a test of states/ runs."""

    def refuse(*_: object, **__: object) -> Any:
        raise PermissionError(f"a test of states/ asked {name}; time and chance come with the event")

    return refuse
