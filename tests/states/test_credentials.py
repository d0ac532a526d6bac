"""What is taken for a credential, what is not, and the charged group (RULES B2 to B4, B6; WISHES 18; RJOB 6).

Never: a real credential. Every value is made up, and in pieces, so that no scanner trips on it.
"""

from __future__ import annotations

import base64

import pytest

from states.credentials import MalformedGroups, Pair, find_credentials, find_pair, groups, is_secret

WORD = "Zq7Kd" + "vT2mLp9xRw4K"  # what a generated password looks like
HEX_A = "0f1e2d3c4b5a6978" + "8796a5b4c3d2e1f0"
HEX_B = "a1b2c3d4e5f60718" + "293a4b5c6d7e8f90"
DIGEST = "sha256:" + "9f86d081884c7d65" * 4
COMMIT = "3d5a1f0c9e8b7a6d" + "5c4b3a291807f6e5d4c3b2a1"[:24]


def found(text: str) -> list[str]:
    return [text[f.start : f.end] for f in find_credentials(text)]


# --- the charged group -------------------------------------------------------------------------------------


def test_the_first_pair_is_the_default_and_repeats_are_folded() -> None:
    pairs = groups(" lab-a:train , lab-b:eval,lab-a:train,")
    assert pairs == (Pair("lab-a", "train"), Pair("lab-b", "eval"))


@pytest.mark.parametrize(
    "value", ["", " , ", "train", "lab-a:", ":train", "a:b:c", "lab a:train", "a:b,quiet-thing"]
)
def test_a_malformed_group_says_what_to_write_and_never_the_value(value: str) -> None:
    with pytest.raises(MalformedGroups) as caught:
        groups(value)
    message = str(caught.value)
    assert "namespace:group,namespace:group" in message
    assert not [word for word in ("quiet-thing", "lab a", "train") if word in message]


def test_a_named_group_brings_its_namespace() -> None:
    pairs = groups("lab-a:train,lab-b:eval,lab-c:eval")
    assert find_pair(pairs, "eval") == Pair("lab-b", "eval")
    assert find_pair(pairs, "lab-c:eval") == Pair("lab-c", "eval")
    assert find_pair(pairs, "lab-a:eval") is None
    assert find_pair(pairs, "other") is None


# --- found by name -----------------------------------------------------------------------------------------

BY_NAME = [
    "HF_TOKEN={}",
    "export WANDB_API_KEY={}",
    "export WANDB_API_KEY='{}'",
    "env AWS_SECRET_ACCESS_KEY={} python train.py",
    "AWS_ACCESS_KEY_ID={}",
    "OSS_SK={} OSS_AK=$AK",
    "--ak {} run",
    "python run.py --hf-token {} --epochs 3",
    'python run.py --api-key="{}"',
    "python run.py --api_key={} && echo done",
    "bash -c 'export SECRET={}; python x.py'",
    "password: {}",
    "db_password = '{}'",
    "DB_PASS={}",
    "PGPASSWORD={} psql",
    '{{"accessKey": "{}"}}',
    '{{"a": 1, "clientSecret":"{}", "b": 2}}',
    r'curl -d "{{\"token\": \"{}\"}}" host',
    'os.environ["HF_TOKEN"] = "{}"',
    'os.environ.setdefault("HF_TOKEN", "{}")',
    '["--token", "{}"]',
    '{{"name": "HF_TOKEN", "value": "{}"}}',
    "- name: HF_TOKEN\n  value: {}\n",
    "https://hub.example/api?access_token={}&page=2",
    "token%3D{}",
    "aws configure set aws_secret_access_key {}",
    "key set BRAINPP_SECRET_ACCESS_KEY {}",
    "my BRAINPP_SECRET_ACCESS_KEY is {} please submit",
    "AK是{}，剩下的你来",
    "密码：{}",
    "Authorization: Bearer {}",
    "-H 'X-Api-Key: {}'",
    "postgresql://watch:{}@db.example:5432/jobs",
    "http://user:{}@proxy.example:8080",
    "git clone https://{}@git.example/team/code.git",
    "curl -u admin:{} https://host.example",
    "sshpass -p {} ssh host",
    "docker login -u me -p {} registry.example",
    "${{HF_TOKEN:-{}}}",
    "MOONSHOT_KEY={}",
    "COMPOSE_AUTH_PASSPHRASE={}",
]


@pytest.mark.parametrize("form", BY_NAME)
def test_a_value_under_a_telling_name_is_found_whole(form: str) -> None:
    hits = found(form.format(WORD))
    assert len(hits) == 1
    assert WORD in hits[0]
    assert hits[0].strip("${}") in (WORD, f"HF_TOKEN:-{WORD}")


def test_the_span_covers_the_value_only_and_the_kind_is_the_name() -> None:
    text = f"export HF_TOKEN={WORD} && python train.py --lr 1e-4"
    (finding,) = find_credentials(text)
    assert finding.kind == "HF_TOKEN"
    assert text[finding.start : finding.end] == WORD


@pytest.mark.parametrize(
    "password", ["pa)ss(w", "hunter2", "a,b,c,d", "with/slash+plus=", "p@ss:word", 'quo\\"te']
)
def test_punctuation_belongs_to_a_password(password: str) -> None:
    assert found(f'password="{password}"') == [password]


def test_several_credentials_are_found_in_order() -> None:
    text = f"A_TOKEN={WORD}1 B_TOKEN={WORD}2\nC_SECRET: {WORD}3"
    assert found(text) == [WORD + "1", WORD + "2", WORD + "3"]


# --- found by shape ----------------------------------------------------------------------------------------

SHAPES = {
    "huggingface-token": "hf" + "_QwErTyUiOpAsDfGhJkLz",
    "api-key": "sk" + "-ant-abc03-Qw3rTyUiOpAsDfGh",
    "github-token": "ghp" + "_16C7e42F292c6912E7710c838347Ae",
    "gitlab-token": "glpat" + "-Ab1Cd2Ef3Gh4Ij5Kl6",
    "slack-token": "xoxb" + "-123456789012-abcdefABCDEF",
    "aws-access-key": "AKIA" + "Z7Q2M4X9B3N6V1C8",
    "google-key": "AIza" + "SyA1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q",
    "jwt": "eyJ" + "hbGciOiJIUzI1NiJ9.eyJ" + "zdWIiOiIxMjM0In0.c2lnbmF0dXJlLWhlcmU",
    "hex-pair": f"{HEX_A} {HEX_B}",
    "private-key": "-----BEGIN OPENSSH "
    + "PRIVATE KEY-----\nb3BlbnNzaC1r\nZXktdjE=\n-----END OPENSSH PRIVATE KEY-----",
}


@pytest.mark.parametrize("kind", SHAPES)
@pytest.mark.parametrize("around", ["{}", "got {} from the log", 'x="{}"', "python a.py {} --b", "[{}]"])
def test_a_known_shape_is_found_without_any_name(kind: str, around: str) -> None:
    text = around.format(SHAPES[kind])
    assert [(f.kind, text[f.start : f.end]) for f in find_credentials(text)] == [(kind, SHAPES[kind])]


@pytest.mark.parametrize("between", ["\n", ",", ":", '", "', "  "])
def test_two_bare_hex_strings_side_by_side_are_a_key_pair(between: str) -> None:
    assert found(f"{HEX_A}{between}{HEX_B}") == [f"{HEX_A}{between}{HEX_B}"]


def test_a_private_key_cut_short_is_found_to_the_end() -> None:
    text = "log\n-----BEGIN RSA " + "PRIVATE KEY-----\nMIIEow"
    assert found(text) == [text[4:]]


@pytest.mark.parametrize(
    "inner", [f"HF_TOKEN={WORD}", f'{{"password": "{WORD}"}}', SHAPES["huggingface-token"]]
)
def test_base64_of_a_credential_is_found(inner: str) -> None:
    encoded = base64.b64encode(inner.encode()).decode()
    assert found(f"echo {encoded} | base64 -d") == [encoded]


# --- left alone --------------------------------------------------------------------------------------------

CLEAN = [
    "python prep.py --key-column text --text-key content --input_key prompt",
    "--tokenizer=meta/llama --tokenizer_path /workspace/tok --max_tokens 4096",
    "max_tokens=4096 min_new_tokens: 16 tokens=12e9",
    "--tokens-per-batch 4096",
    "--pad-token '<pad>' --eos_token=</s> bos_token: begin",
    "HF_TOKEN=$HF_TOKEN WANDB_API_KEY=${WANDB_API_KEY} X_TOKEN=${X:?set it first}",
    "export HF_TOKEN=$(cat ~/.hf/token)",
    "export HF_TOKEN=`cat /run/secret`",
    "HF_TOKEN= python x.py",
    "HF_TOKEN=\"\" API_KEY=''",
    "HF_TOKEN=<token> API_KEY=xxx SECRET=*** PASSWORD=... KEY=your_key_here A_TOKEN=YOUR-TOKEN",
    "API_KEY=EMPTY --api-key none token: null",
    "TOKEN=hf_xxxxxxxx",
    "token={{ hub_token }} secret=%(secret)s password={password}",
    "--ssh-key ~/.ssh/id_ed25519 --credentials /workspace/cred.json GOOGLE_APPLICATION_CREDENTIALS=./sa.json",
    "PWD=/workspace/run OLDPWD=/home/me",
    "valueFrom:\n  secretKeyRef:\n    name: hub\n    key: token\n",
    "imagePullSecrets:\n- name: registry\n",
    f"image: registry.example/team/train@{DIGEST}",
    f"docker://train:1.2@{DIGEST}",
    DIGEST,
    f"commit {COMMIT}",
    f"md5 {HEX_A}  a.bin\nmd5 {HEX_B}  b.bin\n",
    f"cache_key={HEX_A}",
    "token = os.environ['HF_TOKEN']; password = getpass.getpass()",
    "login(token=hf_token, api_key=args.api_key)",
    "def f(token: str, password: Optional[str] = None) -> str:",
    "use_auth_token=True trust_remote_code=False",
    "step 12 | tokens/s 10432.1 | tokens: 1.2B | loss 2.31",
    "KeyError: 'token'",
    "Invalid token: unexpected end of input",
    "the token is invalid, the password is required",
    "secret: not found",
    "git@git.example:team/code.git ssh://git@git.example/x",
    "http://host.example:8080/path@v1?page=2",
    "sorted(rows, key=len)",
    "monkey: banana, turkey=3, hotkey=ctrl",
    "python train.py --run task-sk-learn-pipeline-with-a-long-name",
    "Bearer authentication is required",
    "HF_TOKEN=[redacted:HF_TOKEN] [redacted:hex-pair]",
    "ln -s /workspace/datasets/ImageNet1k/Train/Split04/Images /workspace/run/data",
]


@pytest.mark.parametrize("text", CLEAN)
def test_talk_about_tokens_is_not_a_credential(text: str) -> None:
    assert found(text) == []


@pytest.mark.parametrize(
    ("name", "value", "secret"),
    [
        ("HF_TOKEN", WORD, True),
        ("HF_TOKEN", "$HF_TOKEN", False),
        ("api-key", "12345678", True),
        ("MASTER_PORT", "29500", False),
        ("SORT_KEY", "created_at", False),
        ("session_key", WORD, True),
        ("max_tokens", "4096", False),
        ("token", "4096", False),
        ("password", "123456", True),
        ("label_key", "answer_text_v2", False),
        ("AWS_SECRET_ACCESS_KEY", "/" + "wJalrXUtnFEMI7K7MDENGbPxRfiCYzZz09a", True),
        ("key", "Qwen2_5-7B-Instruct-GPTQ", False),
    ],
)
def test_a_name_and_a_value_are_judged_together(name: str, value: str, secret: bool) -> None:
    assert is_secret(name, value) is secret
