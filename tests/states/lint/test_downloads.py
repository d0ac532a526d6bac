"""Downloads at run time, by tool, by option and from Python (RULES D1)."""

from __future__ import annotations

import pytest

from tests.states.lint.judged import NOTHING, of, python


@pytest.mark.parametrize(
    "line",
    [
        "git clone https://host.example/a/b",
        "wget https://host.example/a.tar",
        "curl -L -o a.bin https://host.example/a.bin",
        "curl -s https://host.example/a.tgz | tar xz",
        "X=$(huggingface-cli download org/model-7b)",
        "aws s3 cp s3://bucket/a ./a",
        "rsync -a host:/data/a ./a",
        "python -m spacy download en",
        "python -u t.py --model_name_or_path org/model-7b",
        "python -u t.py --model bert-base-uncased",
        "lm_eval --model hf --output_path o --model_args pretrained=org/model-7b,dtype=auto",
        "vllm serve org/model-7b",
        "python -u -m pkg.main actor.model.path=org/model-7b",
    ],
)
def test_a_download_is_a_warning(line: str) -> None:
    assert of("runtime_download", line + "\npython -u x.py") == {"warn 1"}


@pytest.mark.parametrize(
    "line",
    [
        "curl -s http://localhost:8000/health",
        "curl -X POST https://hooks.example/x -d done",
        "wget --spider https://host.example/a",
        "aws s3 cp ./a s3://bucket/a",
        "python -u t.py --model models/encoder --data data/train",
        "python -u t.py --config configs/a.yaml --output_dir org/model",
        "export HF_HUB_OFFLINE=1\npython -u t.py --model org/model-7b",
        "HF_HUB_OFFLINE=1 python -u t.py --model org/model-7b",
    ],
)
def test_what_is_none_is_left_alone(line: str) -> None:
    assert of("runtime_download", line) == NOTHING


def test_a_name_in_a_variable_is_found_where_it_is_set() -> None:
    text = 'BASE="org/model-7b"\nARGS=(\n  --dataset_name org/data\n)\npython -u t.py --model $BASE "${ARGS[@]}"\n'
    assert of("runtime_download", text) == {"warn 1", "warn 3"}


def test_a_name_that_is_a_folder_of_the_job_is_none() -> None:
    files: dict[str, str | None] = {"org/model-7b/": None}
    assert of("runtime_download", "python -u -m t --model org/model-7b", files=files) == NOTHING


def test_python_downloads_once_a_name() -> None:
    code = (
        "from transformers import AutoModel, AutoTokenizer\n"
        "from datasets import load_dataset\n"
        "name = 'org/model-7b'\n"
        "tok = AutoTokenizer.from_pretrained(name)\n"
        "net = AutoModel.from_pretrained(name)\n"
        "a = load_dataset('imdb')\n"
        "b = load_dataset('parquet', data_files='a.parquet')\n"
        "c = AutoModel.from_pretrained('./local')\n"
        "d = AutoModel.from_pretrained('gpt2', local_files_only=True)\n"
    )
    assert python("runtime_download", code) == {"warn 5", "warn 6"}
    assert python("runtime_download", "import os\nos.environ['HF_HUB_OFFLINE'] = '1'\n" + code) == NOTHING


def test_python_follows_the_command_line_and_its_defaults() -> None:
    code = (
        "import argparse\nfrom transformers import AutoModel\np = argparse.ArgumentParser()\n"
        "p.add_argument('--model', default='org/model-7b')\nargs = p.parse_args()\n"
        "AutoModel.from_pretrained(args.model)\n"
    )
    assert python("runtime_download", code) == {"warn 6"}
    assert python("runtime_download", code, "python -u train.py --model /ws/model") == NOTHING


def test_flags_that_fetch() -> None:
    code = (
        "from torchvision import datasets, models\n"
        "datasets.MNIST('d', download=True)\ndatasets.MNIST('d', download=False)\n"
        "models.resnet18(pretrained=True)\nmodels.resnet18(weights=None)\n"
    )
    assert python("runtime_download", code) == {"warn 2", "warn 4"}
