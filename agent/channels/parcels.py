"""Which deliveries go together, and what they say: one loud message, or several quiet ones as a few lines.

What is told aloud of a run brings along what was being gathered of it, so that nothing older comes after it. A
question that was closed meanwhile is not asked any more.

Never: a text that was not redacted when it came into the inbox; a parcel that changes its key between two tries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agent.channels.base import Asked, Parcel
from agent.channels.links import Links
from agent.deliveries import Waiting
from agent.store import Store
from states.job import Job
from states.questions import Language
from states.words.wording import plain

TITLE_MAX = 140
LINES_MAX = 20
"""Lines of a gathered parcel; what is more is counted."""

WORDS: Mapping[Language, Mapping[str, str]] = {
    "en": {
        "updates": "{count} updates",
        "before": "Before:",
        "more": "and {count} more",
        "again": "(Again: it is not known whether this arrived before.)",
    },
    "zh": {
        "updates": "{count} 条动态",
        "before": "此前:",
        "more": "另有 {count} 条",
        "again": "(重发: 无法确认上一次是否送达)",
    },
}


@dataclass(frozen=True)
class Packer:
    """Makes parcels for one channel. gathers: whether routine comes together; else each message is a parcel of its
    own. public_url: of the page, "" for none."""

    channel: str
    threads: bool
    store: Store
    links: Links
    language: Language = "en"
    public_url: str = ""
    gathers: bool = True

    def together(self, waiting: Sequence[Waiting]) -> list[list[Waiting]]:
        """The groups that are sent, oldest first; where routine is gathered, what interrupts goes before it."""
        begun: dict[str, list[Waiting]] = {}
        loud: dict[str, list[Waiting]] = {}
        quiet: dict[str, list[Waiting]] = {}
        for one in waiting:
            if one.parcel:
                begun.setdefault(one.parcel, []).append(one)
            elif one.loud or not self.gathers:
                loud[one.id] = [one]
            else:
                quiet.setdefault(one.job_id if self.threads else "", []).append(one)
        for group in loud.values():
            run = group[0].job_id
            for gathered in list(quiet.values()):
                of_run = [one for one in gathered if run and one.job_id == run]
                group += of_run
                gathered[:] = [one for one in gathered if one not in of_run]
        return [group for kind in (begun, loud, quiet) for group in kind.values() if group]

    def packed(
        self, group: Sequence[Waiting], key: str, *, thread: str = "", again: bool = False
    ) -> Parcel | None:
        """What is sent for a group; None: nothing of it needs to be said any more."""
        jobs = {one.job_id: self.store.load(one.job_id) for one in group if one.job_id}
        still = [one for one in group if self._is_still_meant(one, jobs)]
        if not still:
            return None
        head = next((one for one in still if one.loud), None)
        runs = {one.job_id for one in still}
        run = next(iter(runs)) if len(runs) == 1 else ""
        rest = [one for one in still if one is not head]
        text = self._text(head, rest, again)
        main = head or still[-1]
        return Parcel(
            id=key,
            run=run,
            at=main.at,
            loud=head is not None,
            title=self._title(head, rest),
            text=text,
            kind=main.kind if head or len(still) == 1 else "updates",
            stage=main.stage if head or len(still) == 1 else "",
            asked=self._asked(head, jobs),
            thread=thread,
            link=f"{self.public_url}/runs/{run}" if self.public_url and run else "",
        )

    def _is_still_meant(self, one: Waiting, jobs: Mapping[str, Job]) -> bool:
        if one.kind != "question" or not one.numbers:
            return True
        return any(question.number in one.numbers for question in jobs[one.job_id].open_questions)

    def _asked(self, head: Waiting | None, jobs: Mapping[str, Job]) -> tuple[Asked, ...]:
        if head is None or head.kind != "question":
            return ()
        job = jobs[head.job_id]
        open_here = [question for question in job.open_questions if question.number in head.numbers]
        return tuple(
            Asked(job, one, self.links.url(one.id, by=self.channel, until=one.answer_by)) for one in open_here
        )

    def _title(self, head: Waiting | None, rest: Sequence[Waiting]) -> str:
        if head is None and len(rest) > 1:
            return WORDS[self.language]["updates"].format(count=len(rest))
        return plain(_line(head or rest[0]), TITLE_MAX)

    def _text(self, head: Waiting | None, rest: Sequence[Waiting], again: bool) -> str:
        words = WORDS[self.language]
        first = [words["again"]] if again else []
        if head is None and len(rest) == 1:
            return "\n".join([*first, rest[0].text])
        lines = [f"{one.at:%H:%M} {_line(one)}" for one in rest[-LINES_MAX:]]
        if len(rest) > LINES_MAX:
            lines.append(words["more"].format(count=len(rest) - LINES_MAX))
        if head is None:
            return "\n".join([*first, *lines])
        return "\n".join([*first, head.text, *(["", words["before"], *lines] if lines else [])])


def _line(one: Waiting) -> str:
    """The first line of a message, with the run's id in it."""
    first = one.text.partition("\n")[0]
    return first if not one.job_id or one.job_id in first else f"{one.job_id}: {first}"
