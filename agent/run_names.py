"""What a run is called when its request does not say, and whose a caller's key is.

Never: a name that tells what the work is for (that is `states/kinds_of_work.py`).
"""

from __future__ import annotations

import re
from pathlib import Path

from states.spec import Request


def name_of(request: Request) -> str:
    """The name of a request that states none: its script's, or that of the job it is to watch."""
    if request.existing is not None:
        return request.existing.name or request.existing.cluster_job_id
    words = [
        word for word in " ".join(request.command).replace("/", " ").split() if word.endswith((".py", ".sh"))
    ]
    return Path(words[0]).stem if words else Path(request.command[0]).stem


def safe_name(text: str) -> str:
    """A name that a run may have, made of any job's."""
    safe = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:24].rstrip("-")
    return safe if safe[:1].isalpha() else f"job-{safe}".rstrip("-")


def own_key(person: str, key: str) -> str:
    """A key that a person gave for a repeat: theirs alone. Neither another person's key nor one of our own (an
    effect's id, a child's) is ever met by it; "" stays "", which is no key."""
    return f"by:{person}:{key}" if key else ""
