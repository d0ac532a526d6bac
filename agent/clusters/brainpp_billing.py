"""Whom a job is billed to and where it lives: one namespace:group pair of the person's own setting (RULES B2, B3).

Never: show which pairs are configured; pick a namespace without its group.
"""

from __future__ import annotations

from collections.abc import Sequence

from agent.clusters.base import Refused
from agent.clusters.brainpp_cli import GROUP, Cli
from agent.secrets import advice
from states.credentials import MalformedGroups, Pair, find_pair, groups


def pairs(cli: Cli) -> tuple[Pair, ...]:
    """The configured pairs, the default first. Raises Refused with how to set them."""
    value = cli.setting(GROUP)
    if not value:
        raise Refused(f"nothing was sent to Brain++: {GROUP} is not set. {advice(GROUP)}")
    try:
        return groups(value)
    except MalformedGroups as error:
        raise Refused(str(error)) from None


def pair_of(cli: Cli, group: str) -> Pair:
    """The default pair for "", else the configured one that is named. Raises Refused for any other."""
    configured = pairs(cli)
    pair = find_pair(configured, group) if group else configured[0]
    if pair is None:
        said = f"the group {group!r} is not one of your configured pairs; nothing was sent"
        raise Refused(f"{said}. Leave `group` out to use the default pair, or add it to {GROUP}.")
    return pair


def namespaces(cli: Cli) -> Sequence[str]:
    """Each namespace of the pairs once, the default's first."""
    return tuple(dict.fromkeys(pair.namespace for pair in pairs(cli)))
