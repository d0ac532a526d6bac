"""Every preflight check of a process, by the names of `states.preflight.CHECKS`, gathered in one place.

Never: a check of its own; what each looks at is in `agent/perform/checks*.py`.
"""

from __future__ import annotations

from collections.abc import Mapping

from agent.perform.checks import checks, from_library
from agent.perform.checks_assets import assets
from agent.perform.checks_environment import environment
from agent.perform.checks_figures import figure_checks
from agent.perform.checks_lint import lint_check
from agent.perform.checks_packages import packages
from agent.ports import CheckFunction
from agent.secrets import Secrets
from agent.staging.assets import Measure


def every_check(secrets: Secrets, *, measure: Measure | None = None) -> Mapping[str, CheckFunction]:
    """All of them. measure: asks a server how large a download is; None where no network may be touched."""
    return {
        **checks(secrets),
        **figure_checks(),
        "request": lint_check,
        "environment": lambda job, ports: environment(
            job, ports, lambda: from_library(job, ports, "environment", "C6")
        ),
        "packages": packages,
        "assets": lambda job, ports: assets(job, ports, measure),
    }
