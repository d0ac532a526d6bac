"""The figures as a table: `python -m tests.benchmarks`. They measure and fail nothing.

Never: a threshold.
"""

from __future__ import annotations

from tests.benchmarks import chat, lifecycles, machine, memory, turns, waves


def main() -> None:
    """Print each figure as it is taken."""
    for module in (machine, turns, memory, lifecycles, waves, chat):
        for figure in module.figures():
            print(f"{figure.what:<52} {figure.value:>12,.1f} {figure.unit}", flush=True)


if __name__ == "__main__":
    main()
