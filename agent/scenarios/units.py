"""What the fields of a story are made of: durations, counts, names of calls, effects and rules.

Never: a field of its own.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from states.effects import EFFECTS
from states.rulebook import RULES

EFFECT_KINDS = tuple(effect.model_fields["kind"].default for effect in EFFECTS)
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_SPAN = re.compile(r"(\d+(?:\.\d+)?)(ms|[smhd])")


def seconds(value: object) -> object:
    """`1h30m`, `90s`, `5` -> seconds. Raises ValueError with an example."""
    if not isinstance(value, str):
        return value
    parts = _SPAN.findall(value)
    if not parts or "".join(number + unit for number, unit in parts) != value.strip():
        raise ValueError(f"{value!r} is not a duration; write it as 30s, 5m, 2h, 1h30m or plain seconds")
    return sum(float(number) * _UNITS[unit] for number, unit in parts)


def _listed(value: object) -> object:
    return (value,) if isinstance(value, str) else value


Seconds = Annotated[float, BeforeValidator(seconds)]
Texts = Annotated[tuple[str, ...], BeforeValidator(_listed)]
Bound = Annotated[str, Field(pattern=r"^(==|<=|>=|<|>)? ?\d+$"), BeforeValidator(str)]
"""How often: `1`, `<= 3`, `>= 2`."""
Op = Literal["capacity", "submit", "find", "observe", "list", "logs", "events", "stop", "delete", "predict"]
EffectKind = Annotated[str, AfterValidator(lambda value: _effect(value))]
Rule = Annotated[str, BeforeValidator(lambda value: _rule(value))]


def _rule(value: object) -> object:
    if isinstance(value, str) and value not in RULES:
        raise ValueError(f"there is no rule {value!r}; they run from A1 to I5")
    return value


def _effect(value: str) -> str:
    if value not in EFFECT_KINDS:
        raise ValueError(f"there is no effect {value!r}; they are: {', '.join(EFFECT_KINDS)}")
    return value
