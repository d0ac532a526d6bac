"""What people already have, as a request: a batch script, a submit line of another tool, a manifest.

`recognise` says what it is, `convert` what it becomes. Both are pure: text in, data out; a file that is named inside
is read by a function that the caller gives.

Never: run anything; submit anything; drop a word without a note.
"""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from pathlib import PurePath

from agent.native import kubernetes, lines, ray, rjob, sbatch
from agent.native.converted import CLUSTER_OF, IN_WORDS, Converted, Kind, ReadText
from agent.yamlfile import UserFileError

__all__ = ["CLUSTER_OF", "IN_WORDS", "Converted", "Kind", "convert", "recognise"]

YAML = (".yaml", ".yml", ".json")


def recognise(text: str = "", *, path: PurePath | None = None, argv: Sequence[str] = ()) -> Kind | None:
    """What a text (of the file `path`), or the words of a command, are. None for anything else, as a request file."""
    if argv:
        return lines.kind_of(argv)
    suffix = path.suffix if path is not None else ""
    if kubernetes.recognised(text):
        return "kubernetes"
    if suffix in YAML:
        return None
    if sbatch.recognised(text, suffix):
        return "sbatch"
    return lines.kind_in(text)


def _nothing(path: str) -> str | None:
    return None


def convert(
    text: str = "",
    *,
    path: str = "",
    argv: Sequence[str] = (),
    args: Sequence[str] = (),
    read: ReadText = _nothing,
    executable: bool = False,
    home: str = "",
) -> Converted:
    """The request that a text or the words of a command become.

    path: of the text's file, as messages name it. home: folder from which relative paths of scripts are meant. args:
    words behind a batch script. read: text of a file that is named inside (a script of `sbatch`, a runtime
    environment), None if it cannot be read. executable: the batch script can be run by itself. Raises UserFileError
    with everything that is wrong, also for what `recognise` does not know.
    """
    kind = recognise(text, path=PurePath(path) if path else None, argv=argv)
    if kind == "kubernetes":
        return kubernetes.from_manifest(text, where=path or "the manifest")
    if kind == "sbatch" and not argv and sbatch.recognised(text, PurePath(path).suffix):
        script = posixpath.join(home, path or "script.sh")
        return sbatch.from_script(text, where=path, path=script, args=args, executable=executable)
    if args:
        raise UserFileError(
            f"{path}: words behind `--` are those of a batch script, and this is none; leave them out"
        )
    if argv:
        return _of_words(lines.the_words(argv), read, executable, home)
    line = lines.the_line(text, where=path or "the text")
    made = _of_words(line.words, read, executable, home)
    return made._replace(notes=(*made.notes, *line.notes))


def _of_words(words: Sequence[str], read: ReadText, executable: bool, home: str) -> Converted:
    kind = lines.kind_of(words)
    if kind == "rjob":
        return rjob.from_line(words)
    if kind == "ray":
        return ray.from_line(words, read=read)
    return sbatch.from_line(words, read=read, executable=executable, home=home)
