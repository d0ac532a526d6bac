"""Messages in English and Chinese, each in its world, are read as a person means them; and no text makes an act."""

from __future__ import annotations

import itertools
import time

import pytest

from states.chat import Context, Understood, understand
from tests.states.chat.phrases import WORLDS, Phrase, phrases

SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
GENTLE = ("english.txt", "chinese.txt")


def read(world: str, message: str) -> Understood:
    return understand(message, WORLDS[world])


def is_as_meant(phrase: Phrase, said: Understood) -> bool:
    asks = phrase.ask == "?"
    as_asked = phrase.ask == "~" or said.ask_back is asks
    answers = bool(said.reply) or not said.ask_back
    return said.intent in phrase.intents and as_asked and answers and not (said.is_act and asks)


@pytest.mark.parametrize("table", GENTLE)
def test_a_message_is_read_as_it_is_meant(table: str) -> None:
    told = [(phrase, read(phrase.world, phrase.message)) for phrase in phrases(table)]
    assert len(told) > 200
    assert [(phrase, said) for phrase, said in told if not is_as_meant(phrase, said)] == []


def test_what_orders_nothing_does_nothing() -> None:
    told = [(phrase, read(phrase.world, phrase.message)) for phrase in phrases("no_acts.txt")]
    assert len(told) > 50
    assert [(phrase, said) for phrase, said in told if said.is_act] == []


# --- what an act is carried out on ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("world", "message", "slots"),
    [
        ("two", "seg-unet-2 looks dead, kill it please", {"job": "seg-unet-2"}),
        ("two", "stop GPT-MINI-3", {"job": "gpt-mini-3"}),
        ("two", "don't stop seg-unet-2, stop gpt-mini-3", {"job": "gpt-mini-3"}),
        ("two", "别停 seg-unet-2, 停掉 gpt-mini-3", {"job": "gpt-mini-3"}),
        ("two", "stop gpt-mini-3 and seg-unet-2", {"job": "gpt-mini-3,seg-unet-2"}),
        ("alike", "kill gpt-mini-3", {"job": "gpt-mini-3"}),
        ("alike", "kill the queued one", {"job": "gpt-mini-4"}),
        ("mixed", "delete seg-unet-2 and bleu-eval-9", {"job": "seg-unet-2,bleu-eval-9"}),
        ("mixed", "bleu-eval-9 is useless, delete it", {"job": "bleu-eval-9"}),
        ("mixed", "stop gpt-mini-3, then delete it", {"job": "gpt-mini-3"}),
        ("q", "the second one please", {"question": "Q-7", "option": 2}),
        ("q2", "1 for both please", {"question": "Q-7,Q-8", "option": 1}),
        ("q2", "Q-8: 2", {"question": "Q-8", "option": 2}),
        ("qimg", "use reg.lab/a/b:2", {"question": "Q-9", "value": "reg.lab/a/b:2"}),
        ("qdl", "it is at /mnt/data/laion", {"question": "Q-10", "option": 2, "value": "/mnt/data/laion"}),
        ("failed", "run it once more", {"again_of": "seg-unet-2"}),
    ],
)
def test_an_act_is_about_what_was_named(world: str, message: str, slots: dict[str, object]) -> None:
    said = read(world, message)
    assert said.is_act, said
    assert said.slots == slots


@pytest.mark.parametrize(
    ("message", "slots"),
    [
        ("run `python t.py --lr 1e-4` on 8 gpus", {"gpu": 8, "command": "python t.py --lr 1e-4"}),
        ("run bash a.sh with 2 nodes of 8 cards each", {"gpu": 8, "replicas": 2, "command": "bash a.sh"}),
        ("两机 16 卡跑 bash a.sh", {"gpu": 8, "replicas": 2, "command": "bash a.sh"}),
        ("launch bash a.sh; also mount /mnt/x", {"command": "bash a.sh", "mounts": "/mnt/x"}),
        ("run this:\n```bash\nset -e\nbash a.sh\n```\n4 cards", {"gpu": 4, "command": "set -e\nbash a.sh"}),
        ("run conf/sft.yaml in the idle lane", {"lane": "idle", "request": "conf/sft.yaml"}),
        (
            "run bash a.sh, image reg.lab/a/b:2, priority 7, bill it to nlp-gpu",
            {"command": "bash a.sh", "image": "reg.lab/a/b:2", "priority": 7, "group": "nlp-gpu"},
        ),
    ],
)
def test_a_run_takes_what_was_given(message: str, slots: dict[str, object]) -> None:
    said = read("none", message)
    assert said.is_act, said
    assert said.slots == slots


def test_what_a_run_does_not_take_over_is_said() -> None:
    assert "overnight" in read("none", "run bash a.sh on 2 gpus overnight").reply


def test_what_only_the_person_can_settle_is_asked_in_one_message() -> None:
    said = read("none", "run my training on 8 gpus")
    assert (said.intent, said.ask_back, said.slots) == ("run", True, {"gpu": 8})
    assert all(word in said.reply for word in ("command", "image", "data", "GPUs", "group"))


def test_nothing_to_do_is_no_act() -> None:
    for world, message in (
        ("done", "stop it now"),
        ("mixed", "stop seg-unet-2"),
        ("one", "delete no-such-run-5"),
    ):
        said = read(world, message)
        assert said.moot, said
        assert not said.is_act
        assert said.reply
    late = read("qclosed", "2")
    assert (late.intent, late.is_act) == ("answer", False)


def test_a_preview_submits_nothing() -> None:
    assert not read("none", "dry run: bash a.sh on 8 gpus").is_act


# --- credentials ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("world", "message"),
    [
        ("none", f"my token is {SECRET}"),
        ("none", f"run python a.py --token {SECRET} on 8 gpus"),
        ("none", f"run `HF_TOKEN={SECRET} python a.py`"),
        ("qnet", f"http://bob:{SECRET}@proxy.lab:3128"),
        ("q", f"1 and by the way the password is {SECRET}"),
        ("none", f"记住 token={SECRET} 用于 sft"),
        ("one", f"stop gpt-mini-3, api_key={SECRET}"),
    ],
)
def test_a_credential_is_never_repeated_or_used(world: str, message: str) -> None:
    said = read(world, message)
    assert not said.is_act
    assert SECRET not in said.model_dump_json()
    assert said.slots == {"refused": "credential"}
    assert "wk key set" in said.reply


def test_words_about_tokens_are_no_credential() -> None:
    said = read("none", "run python a.py --max_tokens 512 --tokenizer /mnt/tok")
    assert said.is_act
    assert said.slots["command"].endswith("/mnt/tok")


# --- any text ------------------------------------------------------------------------------------------------------

ORDERS = ("stop", "kill", "delete", "run `bash a.sh`", "停掉", "删除", "submit", "option 2", "2", "again")
BESIDE = (
    "",
    "it",
    "gpt-mini-3",
    "seg-unet-2",
    "if",
    "not",
    "don't",
    "Q-7",
    "?",
    "now",
    "了吧",
    "别",
    "both",
    "8 gpus",
    "*",
    ".",
    "or",
)


@pytest.mark.parametrize("world", sorted(WORLDS))
def test_an_act_has_its_verb_and_its_object(world: str) -> None:
    context = WORLDS[world]
    for order, beside in itertools.product(ORDERS, BESIDE):
        for message in (f"{order} {beside}", f"{beside} {order}"):
            said = understand(message, context)
            if not said.is_act:
                continue
            if "stop" in said.intent:
                assert set(said.slots["job"].split(",")) <= set(context.live), message
                assert order in ("stop", "kill", "停掉"), message
            if "delete" in said.intent:
                assert order in ("delete", "删除"), message
                assert all(name in message for name in said.slots["job"].split(",")), message
            if said.intent == "answer":
                assert said.slots["question"].split(",")[0] in {question.id for question in context.open}, (
                    message
                )
            if beside in ("if", "not", "don't", "?", "别", "or"):
                # `don't stop` and `not submit` choose an option that lets things be.
                assert said.intent == "answer", message
                (question,) = (one for one in context.open if one.id == said.slots["question"])
                assert "stop" not in question.options[said.slots["option"] - 1].texts, message


@pytest.mark.parametrize(
    "piece",
    ["了吧", "好的", "please ", "stop ", "a-b-", ". ", "\n", "don't ", "the the ", "停", "1 ", "谢谢"],
)
@pytest.mark.parametrize("end", ["", "x"])
def test_a_long_message_costs_no_time(piece: str, end: str) -> None:
    began = time.process_time()
    for chars in (400, 1990, 50_000):
        understand(piece * (chars // len(piece)) + end, WORLDS["q"])
    assert time.process_time() - began < 5


def test_what_was_pasted_is_asked_about() -> None:
    assert read("one", "step 1 loss 2.0\n" * 400 + "stop it").ask_back
    assert understand("", Context()).ask_back
