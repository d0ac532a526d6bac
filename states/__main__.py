"""`python -m states`: the machine as a mermaid diagram; `python -m states table`: as text; `check`: its lint.

Never: anything else; this is for reading the machine, not for running it.
"""

from __future__ import annotations

import sys

from states.check import findings
from states.diagram import mermaid, read_aloud


def main(arguments: list[str]) -> int:
    """Exit code 1 when `check` finds something, 2 on an unknown word."""
    match arguments:
        case [] | ["diagram"]:
            print(mermaid())
        case ["table"]:
            print(read_aloud())
        case ["check"]:
            found = findings()
            print("\n".join(found) or "the table is whole")
            return 1 if found else 0
        case _:
            print("usage: python -m states [diagram|table|check]", file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
