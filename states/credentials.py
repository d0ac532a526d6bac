"""What looks like a credential in a command, an environment, an argument or any text, and the charged group.

Two kinds of judgement: by NAME (`HF_TOKEN=...`, `--api-key ...`, `"password": "..."`, a header, a URL with
a password) and by SHAPE (tokens of known issuers, JWT, PEM, two bare 32-hex strings side by side). Both give
spans, so that a caller can refuse (RULES B4, B6) or redact (WISHES 18) without copying the value. What only
talks about tokens (`max_tokens=4096`, `--key-column text`, `$TOKEN`, a digest, a path) is left alone.

All patterns are linear: repeats are bounded or possessive, and one name looks at a bounded stretch behind it.

Never: repeat a value in a message or a result; touch anything but the text it was given.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Literal, NamedTuple


class Pair(NamedTuple):
    """A namespace and the quota group inside it that a job is billed to."""

    namespace: str
    group: str


class MalformedGroups(ValueError):
    """The charged-group setting cannot be read. The message says what to do and never repeats the value."""


class Finding(NamedTuple):
    """One credential in a text: `kind` is its name as written or its shape, `text[start:end]` the value."""

    kind: str
    start: int
    end: int


Strength = Literal["strong", "medium", "weak"]
"""What a name says: strong = any value counts, medium = letters and digits, weak = only an opaque one."""

# --- the charged group --------------------------------------------------------------------------------------

_PAIR = re.compile(r"([A-Za-z0-9][\w.-]{0,127})\s*[:：]\s*([A-Za-z0-9][\w.-]{0,127})", re.ASCII)


def groups(value: str) -> tuple[Pair, ...]:
    """The pairs of BRAINPP_CHARGED_GROUP, `namespace:group,namespace:group`; the first is the default.

    RULES B2. Repeats are folded. Raises MalformedGroups, which names the entry by its place only.
    """
    entries = [entry.strip() for entry in re.split(r"[,，]", value) if entry.strip()]
    advice = "write namespace:group,namespace:group in one value, the default pair first"
    if not entries:
        raise MalformedGroups(f"BRAINPP_CHARGED_GROUP is empty: {advice}")
    pairs: dict[Pair, None] = {}
    for place, entry in enumerate(entries, start=1):
        match = _PAIR.fullmatch(entry)
        if match is None:
            where = f"entry {place} of {len(entries)}"
            raise MalformedGroups(f"BRAINPP_CHARGED_GROUP: {where} is not namespace:group; {advice}")
        pairs[Pair(match[1], match[2])] = None
    return tuple(pairs)


def find_pair(pairs: tuple[Pair, ...], group: str) -> Pair | None:
    """The configured pair that a named `group` (or `namespace:group`) means; None if none (RULES B3)."""
    namespace, _, name = group.strip().rpartition(":")
    return next((p for p in pairs if p.group == name and namespace in ("", p.namespace)), None)


# --- names --------------------------------------------------------------------------------------------------

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_NAME_CHARS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-."
_PLAIN_SECRETS = ("password", "passwd", "passphrase", "passcode", "sshpass", "pwd", "secret", "credential")
_JOINED = ("apikey", "accesskey", "secretkey", "privatekey", "authkey", "signingkey", "accountkey")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_KEY_KINDS = _words(
    "access account admin anthropic api app auth aws azure cipher client comet consumer crypt dashscope"
    " deepseek deploy encrypt encryption gcp gemini github gitlab google hf hmac huggingface jwt licence"
    " license master minio neptune openai oss private s secret server service session shared signature"
    " signing ssh ssl storage subscription swanlab tls tos wandb webhook"
)
_DATA_KEYS = _words(
    "answer arg batch cache chat column config count data dataset dict embed feature field foreign group hash"
    " hot id image index input item join json label log loss map message meta metric model name num output"
    " parent partition prim primary prompt public query question ref response reward row sample score sort"
    " source state step target task text url video"
)
_MODEL_TOKENS = _words(
    "a add audio begin bos cls context decoder end eof eos first image img last mask max min n new next no"
    " num of one output pad per placeholder prev prompt sep skip special split start stop tag think total unk"
    " video vision vocab word"
)
_LOGINS = _words("admin db ftp http imap login mail mysql pg postgres proxy rabbitmq redis root smtp user")


@lru_cache(maxsize=4096)
def _strength(name: str) -> Strength | None:
    """What the name alone says; None if it names no credential."""
    words = [word.lower() for word in _WORD.findall(name)]
    if len(words) > 1 and words[-1] == "value":
        words.pop()
    if len(words) > 1 and words[-1] == "id" and (words[-2].endswith("secret") or "access" in "".join(words)):
        words.pop()
    if not words:
        return None
    last, before = words[-1], frozenset(words[:-1])
    if last.endswith((*_PLAIN_SECRETS, *_JOINED, "credentials")) or (last == "pass" and before & _LOGINS):
        return "strong"
    if last.endswith("token"):
        return "weak" if before & _MODEL_TOKENS else "strong"
    if last in ("key", "keys"):
        shouted = name.isupper() and bool(before) and last == "key" and not before & _DATA_KEYS
        return "strong" if before & _KEY_KINDS or shouted else "weak"
    if last in ("ak", "sk"):
        return "medium"
    return "weak" if last in ("pass", "tokens", "secrets", "passwords", "auth") else None


# --- values -------------------------------------------------------------------------------------------------

_VARIABLE = re.compile(r"\$\w+|\$\{\w+(?:[:?+%#/^,@][^}]*)?\}|\$\([^)]*\)?|`[^`]*`|\$\{\{[^}]*\}\}", re.ASCII)
_DEFAULTED = re.compile(r"\$\{\w+:?[-=]([^}]*)\}", re.ASCII)
_PLACEHOLDER = re.compile(
    r"\[redacted(?::[^\]\s]*)?\][])}]*|<[^>]*>?|\\u003c.*|(?:hf_|sk-|ghp_|glpat-)[.xX*…]*"
    r"|\{\{.*|\{\w*\}|%\w*%|%\(?\w*\)?s|[xX*.•·…_#?=-]+|your(?:[-_ ].*)?"
    r"|(?:insert|put|replace|change|fill|enter)[-_ ]?(?:it|me|with|your|here|in)?(?:[-_ ].*)?"
    r"|none|null|nil|true|false|yes|no|on|off|auto|default|empty|dummy|example|redacted|hidden|masked|todo|tbd"
    r"|str|string|int|bytes|bool|any|optional|required|missing|invalid|expired|incorrect|denied|unset|undefined"
    r"|not|is|was|and|or|for|in|of|to|from|the|with|unexpected|error|failed|ok|fine|ask|refuse|could_not",
    re.IGNORECASE,
)
_PATH = re.compile(r"(?:~|\.{0,2}|\$\w+|\$\{\w+\})/|[A-Za-z]:\\|[a-z][a-z0-9+]{1,12}://")
_FILE = re.compile(r"[\w./-]{1,200}\.(?:json|pem|key|txt|ya?ml|env|crt|pub|toml|ini|cfg|conf|py|sh)")
_CODE = re.compile(r"[A-Za-z_][\w.]{0,80}+[(\[]|[A-Za-z_]+(?:\.[A-Za-z_]+)+\Z", re.ASCII)
_NUMBER = re.compile(r"[-+]?[\d._,]+(?:[eE][-+]?\d+)?[kKmMbB%s]?")
_DIGEST = re.compile(
    r"(?i:(?:sha\d+[:-]|md5[:-])?[0-9a-f]{7,128}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})"
)


def _mixed(value: str) -> bool:
    return any(c.isdigit() for c in value) and any(c.isalpha() for c in value)


def _opaque(value: str) -> bool:
    """One unbroken piece of at least 16 characters with upper case, lower case and digits, and no digest."""
    if _DIGEST.fullmatch(value):
        return False
    return any(
        len(piece) >= 16 and _mixed(piece) and piece.upper() != piece != piece.lower()
        for piece in re.split(r"[-_./+=:]", value)
    )


def _stands_for_another(value: str) -> bool:
    """A variable, a placeholder, a redaction mark or an empty value: nothing is given away."""
    value = value.strip().strip("\"'")
    defaulted = _DEFAULTED.fullmatch(value)
    if defaulted:
        return _stands_for_another(defaulted[1])
    if not any(c.isalnum() for c in _VARIABLE.sub("", value)):
        return True
    return any(_PLACEHOLDER.fullmatch(v) for v in (value, value.rstrip(".,;:!?)]}")))


def _is_path(value: str) -> bool:
    if _FILE.fullmatch(value):
        return True
    base64_like = value.count("/") <= 2 and "." not in value and _opaque(value.replace("/", ""))
    return _PATH.match(value) is not None and not (base64_like and len(value) >= 32)


def is_secret(name: str, value: str) -> bool:
    """Whether `value`, given under `name` (of a variable, flag or field), is a credential (RULES B4)."""
    strength, value = _strength(name), value[:512]  # what is longer is judged by its beginning
    if strength is None or _stands_for_another(value) or _is_path(value):
        return False
    if strength == "weak":
        return _opaque(value)
    if strength == "medium":
        return len(value) >= 8 and _mixed(value)
    last = _WORD.findall(name)[-1].lower()
    folded = value.lower().replace("-", "_")
    if folded == last or folded.endswith("_" + last):  # `token=hf_token`: the name of a variable
        return False
    return not (last.endswith(("token", "pass")) and (len(value) < 3 or _NUMBER.fullmatch(value)))


# --- by name, in running text -------------------------------------------------------------------------------

_KEYWORD = re.compile(
    r"key|token|secret|passw|passphrase|passcode|sshpass|pwd|credential|_pass(?![a-z])"
    r"|(?<![a-z0-9])(?:ak|sk|auth)(?![a-z0-9])",
    re.IGNORECASE | re.ASCII,
)
_TRIGGERS = ("key", "token", "secret", "pass", "pwd", "credential", "ak", "sk", "auth")
_NAME_REST = re.compile(r"[A-Za-z0-9_.-]{0,64}+")
_SEPARATOR = re.compile(
    r"""(?P<closing>\\?["'`]\]?)?
    (?: (?P<pair>[\s,]{1,80}+\\?["']?[Vv]alue\\?["']?[ \t]{0,9}[:=][ \t]{0,9})
      | (?P<assign>[ \t]{0,9}(?:=>|:=|:-|==?|[:：＝]|%3[DdAa])(?:[ \t][|>][-+]?(?:\n|[ \t])[ \t]{0,40}|[ \t]{0,9}))
      | (?P<said>[ \t]{1,9}(?:is|was)[ \t]{1,9}|[ \t]{0,9}[是为][ \t]{0,9})
      | (?P<comma>(?(closing),|(?!))[ \t]{0,9})
      | (?P<space>[ \t]{1,9}|\n[ \t]{0,40}-[ \t]) )""",
    re.VERBOSE,
)
_VALUE = re.compile(
    r"""(?:[bfru$]{1,2}(?=\\?["']))?
    (?: \\"(?P<a>(?:[^"\\\n]|\\(?!")[^\n]){0,2048}+)\\"
      | "(?P<b>(?:[^"\\\n]|\\[^\n]){0,2048}+)"
      | \\'(?P<c>[^'\\\n]{0,2048}+)\\'
      | '(?P<d>[^'\n]{0,2048}+)'
      | (?P<bare>(?:\$\{[^}\n]{0,200}\}|\$\([^)\n]{0,200}\)|\{\{[^}\n]{0,80}\}\}|\[redacted:[^\]\s]{1,80}\]
          |<[^>\n]{0,80}>|[^\s"'`;&|<>,，。；、）${\[]{1,256}+|[${\[]
          |,(?![\s"',]|[\w.-]{1,40}[=:]|$)){1,8}+) )""",
    re.VERBOSE,
)
_TAIL = re.compile(r"""[^\s"'`;&|<>,，。；、）]*+""")
_WORDS_FOLLOW = re.compile(r"[ \t]+[A-Za-z]")


def _label(name: str) -> str:
    """The name to show: as written, unless it is long or could be a value itself."""
    name = name.strip("-._")
    return name if 0 < len(name) <= 48 and not _opaque(name) else "secret"


def _separator_kind(separator: re.Match[str]) -> str:
    return next(kind for kind in ("pair", "assign", "said", "comma", "space") if separator[kind] is not None)


def _given(name: str, separator: re.Match[str], value: str, *, bare: bool, words_follow: bool) -> bool:
    """Whether the value behind this separator is a credential given, and not talk about one."""
    kind, spaced = _separator_kind(separator), separator[0].endswith((" ", "\t"))
    if bare and (_CODE.match(value) or (value[0] in "-[{(" and (spaced or kind != "assign"))):
        return False
    if kind == "said" or (kind in ("space", "comma") and not name.startswith("-")):
        # `the token is ...` and `TOKEN ...` are mostly followed by prose: only what no word looks like.
        known = len(value) == 32 or not _DIGEST.fullmatch(value)
        return (
            len(value) >= (6 if kind == "said" else 16) and _mixed(value) and known and is_secret(name, value)
        )
    if bare and spaced and kind == "assign" and value.replace("_", "").isalpha():
        prose = ":" in separator[0] and words_follow
        code = "=" in separator[0] and _WORD.findall(name)[-1].lower().endswith("token")
        if prose or code:
            return False
    return is_secret(name, value)


def _by_name(text: str) -> Iterator[Finding]:
    done = 0
    for hit in _KEYWORD.finditer(text):
        if hit.start() < done:
            continue
        head = text[max(done, hit.start() - 64) : hit.start()]
        start = hit.start() - (len(head) - len(head.rstrip(_NAME_CHARS)))
        rest = _NAME_REST.match(text, hit.end())
        done = rest.end() if rest else hit.end()
        name = text[start:done]
        separator = _SEPARATOR.match(text, done) if _strength(name) else None
        value = _VALUE.match(text, separator.end()) if separator else None
        if separator is None or value is None:
            continue
        bare = value.lastgroup == "bare"
        begin, end = value.span(value.lastgroup or 0)
        end = _balanced(text, begin, end) if bare else end
        words_follow = _WORDS_FOLLOW.match(text, end) is not None
        if _given(name, separator, text[begin:end], bare=bare, words_follow=words_follow):
            tail = _TAIL.match(text, end) if bare and end - begin >= 256 else None
            done = tail.end() if tail else end
            yield Finding(_label(name), begin, done)


def _balanced(text: str, start: int, end: int) -> int:
    """The end of a bare value without closing brackets that were opened before it."""
    opened = {")": "(", "]": "[", "}": "{"}
    for _ in range(4):
        if end - start > 1 and text[end - 1] in opened and opened[text[end - 1]] not in text[start:end]:
            end -= 1
    return end


# --- by shape -----------------------------------------------------------------------------------------------

_EDGE = r"(?<![A-Za-z0-9])"
_ARGUMENT = r"['\"]?([^\s'\"]{1,256}+)"
_SHAPES: tuple[tuple[str, str, str], ...] = (
    # kind, the words of which one must be there (so that clean text costs little), the pattern
    ("huggingface-token", "hf_", _EDGE + r"hf_[A-Za-z0-9]{16,}+"),
    ("api-key", "sk- gsk_ nvapi-", r"(?<![\w-])(?:sk-|gsk_|nvapi-)(?=[A-Za-z_-]{0,99}\d)[\w-]{16,}+"),
    ("github-token", "gh", _EDGE + r"gh[pousr]_[A-Za-z0-9]{16,}+"),
    ("github-token", "github_pat_", _EDGE + r"github_pat_\w{20,}+"),
    ("gitlab-token", "glpat-", _EDGE + r"glpat-[\w.-]{12,}+"),
    ("slack-token", "xox xapp-", _EDGE + r"(?:xox[a-z]|xapp)-[A-Za-z0-9-]{10,}+"),
    ("slack-webhook", "hooks.slack.com", r"hooks\.slack\.com/(?:services|workflows)/([\w/-]{16,}+)"),
    ("aws-access-key", "AKIA ASIA", _EDGE + r"A[KS]IA[A-Z0-9]{16}(?![A-Za-z0-9])"),
    ("aliyun-access-key", "LTAI", _EDGE + r"LTAI[A-Za-z0-9]{12,30}(?![A-Za-z0-9])"),
    ("google-key", "AIza ya29.", r"(?<![\w-])(?:AIza[\w-]{30,}+|ya29\.[\w-]{20,}+)"),
    ("package-token", "npm_ pypi-", _EDGE + r"(?:npm_[A-Za-z0-9]{30,}+|pypi-[\w-]{30,}+)"),
    ("jwt", "eyJ", r"(?<![\w-])eyJ[\w-]{6,}+\.[\w-]{6,}+\.[\w-]{6,}+"),
    ("url-password", "://", r"""://[^\s/:@"'<>\[]{0,128}:([^\s/"'<>]{1,256})@(?!sha\d)"""),
    ("url-token", "://", r"://([A-Za-z0-9_-]{16,256}+)@"),
    ("url-signature", "ignature= sig=", r"[?&;](?:X-\w+-Signature|Signature|sig)=([\w%+/=-]{16,512}+)"),
    ("element", "</", r"(?i:<(?:password|passwd|secret|token|apikey|api_key)>)([^<\s]{1,256}+)</"),
    (
        "authorization",
        "uthorization UTHORIZATION",
        r"""(?i:authorization)\\?["']?[ \t]{0,9}[:=][ \t]{0,9}\\?["']?[ \t]{0,9}"""
        r"""(?i:bearer|basic|token|apikey|digest)[ \t]{1,9}([^\s"'`\\<>]{1,4096}+)""",
    ),
    ("bearer-token", "earer EARER", r"(?<![A-Za-z])(?i:bearer)[ \t]{1,9}([A-Za-z0-9._~+/=-]{12,}+)"),
    (
        "login",
        "curl wget",
        r"(?:curl|wget) [^\n|;&]{0,300}?(?<=\s)(?:-u[ =]?|--user[ =])['\"]?[^\s:\[\]]{1,64}:" + _ARGUMENT,
    ),
    ("login", "sshpass", r"sshpass[ \t]{1,9}-p[ \t]{0,9}" + _ARGUMENT),
    ("login", "docker podman", r"(?:docker|podman) login [^\n|;&]{0,300}?(?<=\s)-p[ \t]{1,9}" + _ARGUMENT),
    ("login", "wandb", r"wandb login(?:[ \t]{1,9}--[\w=:/.-]{1,80}){0,4}[ \t]{1,9}([A-Za-z0-9-]{20,}+)"),
    (
        "password",
        "密码 口令 密钥 秘钥 令牌",
        r"""(?:密码|口令|密钥|秘钥|令牌)[ \t]{0,9}(?:[:：=＝]|是|为)?[ \t]{0,9}["'“]?([!-~]{6,256}+)""",
    ),
)
_COMPILED = tuple((kind, words.split(), re.compile(pattern, re.ASCII)) for kind, words, pattern in _SHAPES)
_PEM_BEGIN = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_PEM_END = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_HEX_PAIR = re.compile(r"(?<![^\W_])[\dA-Fa-f]{32}(?:(?:[\W_]|\\[nrt]){1,16}[\dA-Fa-f]{32})+(?![^\W_])", re.A)
_BASE64 = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{24,}+={0,2}")
_BASE64_MAX = 65_536
"""Characters of one base64 run that are decoded; a longer one is data, not a name and a value."""


def _by_shape(text: str) -> Iterator[Finding]:
    for kind, triggers, pattern in _COMPILED:
        if not any(trigger in text for trigger in triggers):
            continue
        for match in pattern.finditer(text):
            value = match[pattern.groups]
            if kind in ("bearer-token", "password", "url-token") and not _mixed(value):
                continue
            if not _stands_for_another(value):
                yield Finding(kind, *match.span(pattern.groups))
    yield from _pem(text)
    if any(c in text for c in "0123456789"):
        yield from (Finding("hex-pair", *match.span()) for match in _HEX_PAIR.finditer(text))


def _pem(text: str) -> Iterator[Finding]:
    done = 0
    while "PRIVATE KEY" in text and (begin := _PEM_BEGIN.search(text, done)):
        end = _PEM_END.search(text, begin.end())
        done = end.end() if end else len(text)
        yield Finding("private-key", begin.start(), done)


def _by_base64(text: str) -> Iterator[Finding]:
    """Best effort: a run of base64 that holds a name and its value, or a token of a known shape."""
    for match in _BASE64.finditer(text):
        run = match[0][:_BASE64_MAX].rstrip("=").replace("-", "+").replace("_", "/")
        try:
            plain = binascii.a2b_base64(run + "=" * (-len(run) % 4)).decode("utf-8")
        except ValueError:
            continue
        if any(True for _ in _by_name(plain)) or any(True for _ in _by_shape(plain)):
            yield Finding("base64", *match.span())


def find_credentials(text: str) -> tuple[Finding, ...]:
    """Every credential in the text, in order and without overlap; empty for clean text.

    Offsets are characters; the time is linear in the length. A finding that touches another is joined with it
    under the kind of the first (RULES B4 and B6, WISHES 18, RJOB 6).
    """
    lowered = text.lower()
    named = _by_name(text) if any(trigger in lowered for trigger in _TRIGGERS) else iter(())
    return joined([*named, *_by_shape(text), *_by_base64(text)])


def joined(findings: list[Finding]) -> tuple[Finding, ...]:
    """Findings in order, the overlapping ones made one."""
    out: list[Finding] = []
    for finding in sorted(findings, key=lambda f: (f.start, -f.end)):
        if out and finding.start < out[-1].end:
            out[-1] = out[-1]._replace(end=max(out[-1].end, finding.end))
        else:
            out.append(finding)
    return tuple(out)
