"""Pictures of what is read as text: a terminal, a chat, drawn as SVG by Rich when `WATCHKEEPER_PICTURES=1`.

Never: a text that no test has seen; a font or a script from elsewhere.
"""

from __future__ import annotations

import io
import os
import re
from pathlib import Path

from rich.console import Console
from rich.text import Text

PICTURES = os.environ.get("WATCHKEEPER_PICTURES") == "1"  # read before a test has a home of its own
DOCS = Path(__file__).parent.parent / "docs" / "pictures"
_FROM_ELSEWHERE = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
COLUMNS = 96


def picture(name: str, title: str, text: str, *, scrub: dict[str, str] | None = None) -> None:
    """Draw `docs/pictures/<name>.svg`. scrub: texts of this machine, and what is shown instead."""
    if not PICTURES:
        return
    for real, shown in (scrub or {}).items():
        text = text.replace(real, shown)
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi(text))
    svg = _FROM_ELSEWHERE.sub("", console.export_svg(title=title, unique_id=name))
    DOCS.mkdir(exist_ok=True)
    lines = (line.rstrip() for line in svg.splitlines())
    (DOCS / f"{name}.svg").write_text("\n".join(lines) + "\n", encoding="utf-8")
