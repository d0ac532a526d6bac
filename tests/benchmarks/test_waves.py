"""That the benchmark of waves measures what it says: every job is looked at, by calls that do not grow with them."""

from __future__ import annotations

import pytest

from tests.benchmarks.waves import KINDS, cost


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_wave_looks_at_every_job_by_the_calls_of_one(kind: str) -> None:
    one, many = (cost(KINDS[kind], jobs) for jobs in (1, 40))
    assert (one.looked_at, many.looked_at) == (1, 40)
    assert many.calls == one.calls > 0
