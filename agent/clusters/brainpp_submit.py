"""One `rjob submit` and its answer: accepted as what, refused, or not known; and whether it was made as asked.

The name that it reports counts, whatever the exit status: a job may be created and the tool still fail (RJOB 7).

Never: say refused unless the words leave no doubt that nothing was created; send twice.
"""

from __future__ import annotations

import zlib
from pathlib import Path

from agent.clusters import brainpp_argv, wrapper
from agent.clusters.base import ClusterError, Refused, Submission, Unclear, Unreachable
from agent.clusters.brainpp_argv import Site
from agent.clusters.brainpp_cli import Cli, NotHere
from agent.clusters.brainpp_notes import Note, Notes
from agent.clusters.brainpp_parse import created, plain
from agent.clusters.brainpp_reads import Reads, at
from agent.clusters.brainpp_words import ALREADY_THERE, PASSING, PROXY, refusal
from agent.clusters.local_time import now
from agent.clusters.run import Ran
from states.credentials import Pair
from states.spec import Spec

VERIFY_S = 15.0
"""Time-out of the look at the created object."""
RETRY_AFTER_S = 60.0


class Submits:
    """Submits, and what only looks as if it did. wrapped: the wrapper runs around each command."""

    def __init__(
        self, cli: Cli, reads: Reads, notes: Notes, site: Site, *, wrapped: bool, timeout_s: float
    ) -> None:
        self._cli, self._reads, self._notes, self._site = cli, reads, notes, site
        self._wrapped, self._timeout_s = wrapped, timeout_s

    def submit(self, submission: Submission, pair: Pair) -> tuple[str, str]:
        """(metadata name, note). Raises Refused: there is no job. Unclear, Unreachable: there may be one."""
        argv = self.argv(submission, pair)
        self._cli.keys()
        if self._wrapped:
            self._stage(submission.spec)
        self._write_note(pair, submission)
        try:
            ran = self._cli.rjob(argv, pair.namespace, timeout_s=self._timeout_s)
            name = created(f"{ran.stdout}\n{ran.stderr}", submission.name)
            if not name:
                raise self._turned_down(ran, submission.spec)
        except (Refused, NotHere) as error:
            self._notes.drop(pair.namespace, submission.name)
            raise error if isinstance(error, Refused) else Refused(str(error)) from None
        notes = [self._difference(pair, name, submission.spec)]
        if name != submission.name:
            notes.append(f"the platform named it {name}, although a name was given")
        if ran.rc != 0:
            notes.append(
                f"rjob ended with status {ran.rc} although the job was created: {self._cli.words(ran)}"
            )
        return name, "; ".join(filter(None, notes))

    def argv(
        self, submission: Submission, pair: Pair, *, only: str = "", hide_values: bool = False
    ) -> list[str]:
        """The words of the call. Raises Refused."""
        brainpp_argv.check(submission)
        script = script_path(submission.spec.workspace) if self._wrapped else ""
        return brainpp_argv.submit_argv(
            submission, pair, self._site, script=script, only=only, hide_values=hide_values
        )

    def only(self, flag: str, submission: Submission, pair: Pair) -> str:
        """What a submit with `flag`, which creates nothing, says. The values of variables do not leave for it."""
        argv = self.argv(submission, pair, only=flag, hide_values=True)
        ran = self._cli.rjob(argv, pair.namespace, timeout_s=self._timeout_s)
        if ran.rc != 0:
            raise self._turned_down(ran, submission.spec)
        return plain(f"{ran.stdout}\n{ran.stderr}").strip()

    def _stage(self, spec: Spec) -> None:
        try:
            wrapper.stage(spec.workspace)
        except OSError as error:
            said = f"the workspace {spec.workspace} cannot be written from here: {error.strerror}"
            raise Refused(
                f"{said}; make it, give another one, or set `wrapper: false` for this cluster"
            ) from None

    def _turned_down(self, ran: Ran, spec: Spec) -> ClusterError:
        """No job was reported: refused where the words leave no doubt, else it may be there."""
        text, words = plain(f"{ran.stdout}\n{ran.stderr}"), self._cli.words(ran)
        said = refusal(text, ran.rc, asked=brainpp_argv.asked(spec)) if ran.rc != 0 else None
        if said is not None:
            return Refused(f"Brain++ refused it: {words}", cause=said.cause, retryable=said.retryable)
        if ALREADY_THERE.search(text):
            return Unclear(f"a job of that name is there already: {words}")
        if PROXY.search(text):
            return Unreachable(
                f"a proxy stands between rjob and the cluster; proxies are not passed on: {words}"
            )
        if PASSING.search(text):
            return Unreachable(f"Brain++ did not take it now: {words}", retry_after_s=RETRY_AFTER_S)
        return Unclear(f"rjob reported no created job (status {ran.rc}): {words}")

    def _write_note(self, pair: Pair, submission: Submission) -> None:
        spec = submission.spec
        note = Note(
            name=submission.name,
            workspace=spec.workspace,
            owner=submission.owner,
            fingerprint=submission.fingerprint,
            submitted_at=now(),
            lane=spec.lane,
            replicas=spec.replicas,
            wrapped=self._wrapped,
            time_limit_s=spec.time_limit_s,
        )
        try:
            self._notes.put(pair.namespace, submission.name, note)
        except OSError as error:
            raise Refused(
                f"nothing was sent: what belongs to the job cannot be written down: {error}"
            ) from None

    def _difference(self, pair: Pair, name: str, spec: Spec) -> str:
        """What of the created object is not as it was asked (RJOB 8); "" if it is. Never fails a submit."""
        try:
            objects = self._reads.objects(pair.namespace, [name], timeout_s=VERIFY_S)
        except ClusterError as error:
            return f"priority and group of the created job could not be checked: {error}"
        made = next((item for item in objects if at(item, "metadata", "name") == name), None)
        if made is None:
            return "priority and group of the created job could not be checked: it is not listed yet"
        group = str(at(made, "metadata", "labels", "quotagroup.brainpp.cn/quotagroup") or "")
        told = [("group", pair.group.replace("_", "-"), group.replace("_", "-"))]
        if spec.lane == "normal":
            priority = at(made, "metadata", "annotations", "volcano.brainpp.cn/priority")
            told.append(("priority", str(spec.priority), str(priority or "")))
        odd = [f"{what} {has} instead of {asked}" for what, asked, has in told if has not in ("", asked)]
        return f"the created job has {' and '.join(odd)}" if odd else ""


def script_path(workspace: str) -> str:
    """Where `wrapper.stage` puts the script, without putting it there."""
    checksum = zlib.crc32(wrapper.SCRIPT.read_bytes())
    return str(Path(workspace) / wrapper.FOLDER / f"wrapper-{checksum:08x}.sh")
