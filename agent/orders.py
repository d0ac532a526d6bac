"""Reads standing orders: `orders.yaml` of the person, and of the site below it; both checked with their lines.

The person's stands in the config folder, the site's in the folders of XDG_CONFIG_DIRS (by default /etc/xdg), of which
the first that has one counts. With WATCHKEEPER_HOME the default folder is left out, so that a set-up of one's own is
its own.

Never: a value of a key in them (what looks like one is refused unread); a fault without its line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from agent.paths import APP, HOME_VARIABLE, config_dir
from agent.yamlfile import Document, Loc, UserFileError, read_document, validate
from states.credentials import find_credentials, is_secret
from states.orders import Layer, Orders, Standing, faults

FILE = "orders.yaml"
WHAT = "the standing orders"
SITE_FOLDERS = "/etc/xdg"


class Loaded(NamedTuple):
    """The orders in force, and where each value stands: {dotted name: (value, file:line)} of both layers."""

    standing: Standing
    sources: dict[str, tuple[Any, str]]


def load_orders(env: Mapping[str, str]) -> Loaded:
    """Both layers as they are in force. Raises UserFileError with every fault of the first file that has any."""
    layers: dict[Layer, Orders] = {}
    sources: dict[str, tuple[Any, str]] = {}
    files: tuple[tuple[Layer, Path | None], ...] = (("site", site_file(env)), ("person", person_file(env)))
    for layer, file in files:
        if file is not None and file.exists():
            document = read_document(file, what=WHAT)
            layers[layer] = checked_orders(document, layer)
            sources |= dict(_values(document))
    return Loaded(Standing(**layers), sources)


def read_orders(file: Path, layer: Layer = "person") -> Orders:
    """One file, checked as it would be in its place. Raises UserFileError with every fault and its line."""
    return checked_orders(read_document(file, what=WHAT), layer)


def checked_orders(document: Document, layer: Layer) -> Orders:
    """The orders of a document. Raises UserFileError: what the form refuses, then what the rules forbid."""
    if carrying := list(_credentials(document)):
        raise UserFileError(*carrying)
    orders = validate(document, Orders)
    wrong = [f"{_label(document, place)}: {fault}" for place, fault in faults(orders, layer)]
    if orders.quiet_hours is not None and not _is_zone(orders.quiet_hours.zone):
        where = _label(document, ("quiet_hours", "zone"))
        wrong.append(f"{where}: there is no time zone {orders.quiet_hours.zone!r}; write it as Europe/Zurich")
    if wrong:
        raise UserFileError(*wrong)
    return orders


def person_file(env: Mapping[str, str]) -> Path:
    """Where the person's own orders stand; it need not be there."""
    return config_dir(env) / FILE


def site_file(env: Mapping[str, str]) -> Path | None:
    """The site's orders that count, or None."""
    folders = env.get("XDG_CONFIG_DIRS") or ("" if env.get(HOME_VARIABLE) else SITE_FOLDERS)
    found = (Path(folder) / APP / FILE for folder in folders.split(":") if folder.startswith("/"))
    return next((file for file in found if file.is_file()), None)


def _credentials(document: Document) -> Iterator[str]:
    """B4: by name and by value, and never repeated."""
    for place, value in _leaves(document.data, ()):
        if isinstance(value, str) and (is_secret(str(place[-1]), value) or find_credentials(value)):
            yield f"{_label(document, place)}: that looks like a credential; keys are set by `wk key set NAME`"


def _is_zone(name: str) -> bool:
    try:
        return bool(ZoneInfo(name).key)
    except (KeyError, ValueError, OSError):
        return False


def _label(document: Document, place: Loc) -> str:
    """`file:line` of a place, or of the nearest thing above it that has a line."""
    known = (document.labels[place[:n]] for n in range(len(place), -1, -1) if place[:n] in document.labels)
    return next(known, WHAT)


def _values(document: Document) -> Iterator[tuple[str, tuple[Any, str]]]:
    for place, value in _leaves(document.data, ()):
        yield ".".join(map(str, place)), (value, _label(document, place))


def _leaves(value: Any, place: Loc) -> Iterator[tuple[Loc, Any]]:
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = list(inside)
    for name, item in found:
        yield from _leaves(item, (*place, name))
    if not found and place:
        yield place, value
