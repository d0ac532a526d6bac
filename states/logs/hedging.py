"""What the wording of a line says about its standing: does it state that something happened, or only speak of it?

Advice, suppositions, options and configuration are never evidence (corpus finding 3). A line below error level,
or one that announces another try, tells of a trouble that its process lived through.

Never: look at more than one line; decide what a line means.
"""

from __future__ import annotations

import re

from states.logs.shapes import per_shape, shape

BEFORE_CHARS = 240
"""How far before a match a word of advice still governs it."""

_SUPPOSES = re.compile(
    r"\b(?:(?:may|might|can|could|would|will) "
    r"(?:be|also|have|lead|cause|result|encounter|fail|need|see|run|get|not)"
    r"|[Cc]onsider|[Ii]f (?:you|your|the|this|it|there|not|reserved|needed)"
    r"|[Tt]o (?:avoid|prevent|troubleshoot|fix|debug)|[Ii]n case (?:of|you)|[Ii]n order to"
    r"|[Pp]ossibl[ey]|[Pp]otential(?:ly)?|[Ll]ikely|[Uu]sually|[Pp]revents?|[Pp]lease (?:try|make sure|check)"
    r"|[Ff]or example|such as|[Hh]int|[Tt]ip|[Ss]uggest|[Rr]ecommend|[Uu]nless|instead of"
    r"|[Tt]ry (?:to|setting|using|reducing)|[Ee]nsure|[Ww]hether)\b"
)
_USAGE = re.compile(
    r"\s{0,16}(?:usage: |--?[a-zA-Z][\w-]{0,60}(?:[ ,=\[]|$)|\+{1,4} (?!.{0,200}(?:not found|No such)))"
)
_DUMP = re.compile(r"(?:Namespace\(|[Aa]rguments?[:=] ?[({]|[Cc]onfig(?:uration)?[:=] ?[({]|args: )")
_CAN_BE_IGNORED = re.compile(
    r"(?:can|may|should) be (?:safely )?ignored|safe to ignore|ignor(?:e this|ing this)"
)
_DOES_WITHOUT = re.compile(
    r"[Ff]all(?:ing|s)? ?back|[Uu]sing (?:the )?defaults?\b|[Ss]kipping (?:import|optional)"
    r"|from scratch|[Ss]tarting fresh"
    r"|[Ff]or (?:the )?(?:best|better|optimal) performance"
)
_MILD = re.compile(
    r"^.{0,120}?(?<!NCCL )(?:\b(?:DEBUG|INFO|WARN|WARNING|[Ww]arning|NOTICE)\b|\[[IWD]\])"
    r"(?!.{0,120}\b(?:ERROR|FATAL|CRITICAL)\b)"
    r"|^[IW]\d{4} \d\d:|[Rr]etrying|[Ww]ill (?:be )?retr|[Tt]rying again|[Rr]econnecting|\b[Rr]etry \d{1,4}/\d"
)
_AGAIN = re.compile(
    r"[Rr]etrying|[Tt]rying (?:again|to resume)|[Rr]estarting|[Aa]ttempt \d{1,4} (?:of|failed)"
    r"|[Ww]ill (?:be )?re(?:try|start)|重试|重启"
)
_RESTART = re.compile(r"[Rr]estart|重启")
_INFORMS = re.compile(r"^.{0,100}?(?<!NCCL )\b(?:INFO|DEBUG)\b")
_SHELL = re.compile(
    r"\S{0,200}?(?:bash|sh|slurm_script|job_script)(?:\[\d{1,9}\])?: "
    r"|(?:/\S{1,80}/)?(?:mkdir|rm|cp|mv|ls|cat|cd|tar|ln|chmod|chown|touch|find|which|fatal|module|kill): "
)
_LOGGED = re.compile(r"^.{0,120}?(?:\b(?:ERROR|CRITICAL|FATAL|[Ee]rror)\b|\])[\s:\]|>-]{1,12}")


def of_shell(text: str) -> bool:
    """Is it a complaint of a shell or of a small tool? A script goes on after it, unless told otherwise."""
    return _SHELL.match(text) is not None


def supposed(text: str, start: int) -> bool:
    """Is what stands at `start` only advised, supposed, done without, or printed as an option?"""
    of = shape(text)
    return _passed_over(of) or _led_in(of[max(0, start - BEFORE_CHARS) : start])


@per_shape
def _led_in(before: str) -> bool:
    return _SUPPOSES.search(before) is not None or _DUMP.search(before) is not None


@per_shape
def _passed_over(of: str) -> bool:
    return bool(_USAGE.match(of) or _CAN_BE_IGNORED.search(of) or _DOES_WITHOUT.search(of))


@per_shape
def _mild(of: str) -> bool:
    return _MILD.search(of) is not None


@per_shape
def _again(of: str) -> bool:
    return _AGAIN.search(of) is not None


@per_shape
def _informs(of: str) -> bool:
    return _INFORMS.search(of) is not None


def mild(text: str) -> bool:
    """Is the line below error level, or does it announce another try? NCCL's WARN is an error by its manual."""
    return _mild(shape(text))


def tries_again(text: str) -> bool:
    """Does the line announce that the same is done once more?"""
    return _again(shape(text))


def restarts(text: str) -> bool:
    """Does it say that the whole process is started once more?"""
    return _RESTART.search(text) is not None


def informs(text: str) -> bool:
    """Is it a line of a logger at its informing level?"""
    return _informs(shape(text))


def after_logger(text: str) -> str | None:
    """What follows a logger's error-level prefix; None if there is no such prefix."""
    head = _LOGGED.match(text)
    return text[head.end() :] if head else None
