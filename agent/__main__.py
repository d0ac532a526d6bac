"""`wk`, `watchkeeper` and `python -m agent`: hands the words of the command line to `agent.cli`.

Never: an import that `wk --help` does not need.
"""

from __future__ import annotations

import sys


def main() -> None:
    """The console script. Ends the process with the command's exit code."""
    from agent.cli import run

    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
