"""A Slurm batch script, or an `sbatch` line, as a request.

The command is the script itself, so its modules, its `srun` and its variables stay as they are; what its `#SBATCH`
lines ask for becomes the request's figures, and every other option is passed to sbatch as it is. What Watchkeeper
finds a job and its log by (name, folder, output) is its own, and is noted.

Never: a change of the script; an option below its first command (Slurm does not read it either).
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence

from agent.native import sbatch_figures
from agent.native.converted import Building, Converted, ReadText
from agent.native.sbatch_options import Option, has_directives, of_script, of_words
from agent.yamlfile import UserFileError

SUFFIXES = (".sbatch", ".slurm")
OWN_LOG = "Watchkeeper keeps the log below the workspace (`wk logs`)"
WITHOUT_MEANING: Mapping[str, str] = {
    "output": OWN_LOG,
    "error": f"{OWN_LOG}, both streams in one file",
    "open-mode": OWN_LOG,
    "comment": "Watchkeeper keeps the run's mark there",
    "parsable": "the id is read either way",
    "quiet": "sbatch's words are read either way",
    "verbose": "sbatch's words are read either way",
    "wait": "`wk run` stays until the end, and --detach does not",
    "test-only": "that is a question, not a submit; preflight asks it",
    "help": "that submits nothing",
    "usage": "that submits nothing",
    "version": "that submits nothing",
    "clusters": "the cluster is chosen by `cluster`",
    "uid": "a run is its owner's",
    "gid": "a run is its owner's",
}
IGNORED = frozenset({"job-name", "chdir", *WITHOUT_MEANING})
"""Options of a script that say nothing of what the job is given."""
WORTH_SAYING: Mapping[str, str] = {
    "array": "its tasks are watched as one run with counts",
    "dependency": "it waits for that in the queue; `singleton` holds nothing back, as each attempt has its own name",
    "hold": "it waits until somebody releases it",
    "requeue": "Slurm may start it again under the same id",
}


def recognised(text: str, suffix: str) -> bool:
    """A script with `#SBATCH` lines that count, or one that is named like a batch script."""
    return has_directives(text) or (suffix in SUFFIXES and text.startswith("#!"))


def from_script(
    text: str,
    *,
    path: str,
    where: str = "",
    args: Sequence[str] = (),
    executable: bool = False,
    line: Sequence[Option] = (),
) -> Converted:
    """A script's request. path: as the command names it; where: as messages do. args: words behind it. executable: it
    can be run by itself. line: options of the `sbatch` line that named it. Raises UserFileError for what sbatch would
    refuse."""
    built = Building("sbatch")
    own = of_script(text, where=where or path)
    _options(built, [*own, *line], bare=IGNORED.issuperset(option.name for option in own))
    built.request["command"] = [*([] if executable else _interpreter(text)), path, *args]
    return built.done()


def from_line(words: Sequence[str], *, read: ReadText, executable: bool = False, home: str = "") -> Converted:
    """`sbatch [options] SCRIPT [words]`, or `sbatch --wrap=...`. read: gives the script's text. home: folder from
    which its path is meant.

    Raises UserFileError for a line without a script that can be read.
    """
    options, rest = of_words(words[1:], where="sbatch", of_line=True)
    wrapped = next((option.value for option in reversed(options) if option.name == "wrap"), None)
    if wrapped is not None:
        built = Building("sbatch")
        _options(built, [option for option in options if option.name != "wrap"], bare=True)
        built.request["command"] = wrapped
        return built.done()
    if not rest:
        raise UserFileError(
            "sbatch: it names no script; write one that came by `<<` to a file, and give that"
        )
    text = read(rest[0])
    if text is None:
        raise UserFileError(f"sbatch: the script {rest[0]!r} cannot be read; check the path")
    path = posixpath.join(home, rest[0])
    return from_script(text, where=rest[0], path=path, args=rest[1:], executable=executable, line=options)


def _options(built: Building, options: Sequence[Option], *, bare: bool) -> None:
    given = {option.name: option for option in options}
    if "job-name" in given:
        built.name(given["job-name"].value or "")
    if "chdir" in given:
        built.request["workspace"] = given["chdir"].value
    _group(built, given)
    sbatch_figures.put(built, given, bare=bare)
    own = sbatch_figures.TAKEN | {"job-name", "chdir", "account", "partition"}
    for name, option in given.items():
        if name in WITHOUT_MEANING:
            built.note(f"{option.word} is left out: {WITHOUT_MEANING[name]}")
        elif name not in own:
            built.keep(option.word)
            if name in WORTH_SAYING:
                built.note(f"{option.word}: {WORTH_SAYING[name]}")


def _group(built: Building, given: Mapping[str, Option]) -> None:
    """An account, and the partition it is asked in, are what `group` means on Slurm: `account/partition`."""
    account = (given["account"].value or "") if "account" in given else ""
    partition = (given["partition"].value or "") if "partition" in given else ""
    if "," in partition or "/" in account:  # several partitions: where there is room is for Slurm to say
        for name in ("account", "partition"):
            if name in given:
                built.keep(given[name].word, backing="group")
    elif account or partition:
        built.request["group"] = f"{account}/{partition}" if partition else account


def _interpreter(text: str) -> list[str]:
    """The words of the script's first line: `/bin/bash -l`."""
    return text.partition("\n")[0].removeprefix("#!").split() or ["sh"]
