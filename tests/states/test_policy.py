"""The numbers: layered, each knowing where it came from; a wrong one is refused with the layer's name."""

from __future__ import annotations

import re

import pytest

from states.policy import Policy, PolicyError, layered


def test_a_higher_layer_wins_and_each_number_knows_its_layer() -> None:
    policy, origin = layered([("the site", {"poll_s": 30, "report_s": 60}), ("the request", {"poll_s": 5})])
    assert (policy.poll_s, policy.report_s, policy.look_s_max) == (5, 60, 1800)
    assert (origin["poll_s"], origin["report_s"], origin["look_s_max"]) == (
        "the request",
        "the site",
        "built-in",
    )


def test_an_unknown_number_is_refused_with_the_nearest() -> None:
    with pytest.raises(PolicyError, match=r"the site: .*'pol_s' \(did you mean 'poll_s'\?\)"):
        layered([("the site", {"pol_s": 3})])


@pytest.mark.parametrize("value", [0, -1, "soon"])
def test_a_value_out_of_range_is_refused_with_its_layer(value: object) -> None:
    with pytest.raises(PolicyError, match="the request: poll_s"):
        layered([("the site", {"poll_s": 5}), ("the request", {"poll_s": value})])


def test_every_number_has_its_unit_in_its_name() -> None:
    units = re.compile(r"_(s(_\w+)?|max|cadences|lines|hours|repeats|steps|loops)$")
    bare = {name for name in Policy.model_fields if not units.search(name)}
    assert bare == {"looks_per_cadence"}


def test_the_seeds_own_numbers_stand() -> None:
    """E2, E4, E6."""
    policy = Policy()
    assert (policy.log_lines, policy.look_s_max, policy.hung_s) == (200, 1800, 3600)
