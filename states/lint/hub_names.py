"""Names of models and data sets on a hub, told from local paths.

Never: ask a hub; the shape of a name and the files that are known are all there is.
"""

from __future__ import annotations

import re

from states.lint.scene import Scene

_HUB = re.compile(r"(?!.{0,200}\.\.)[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}", re.ASCII)
_FILE = re.compile(
    r".{1,200}\.(?:py|ya?ml|jsonl?|txt|csv|tsv|parquet|sh|pth?|bin|ckpt|safetensors|tar|t?gz|zip|npz|npy|h5|hdf5|md|log"
    r"|onnx|gguf|model|pkl|pickle|arrow|lmdb|toml|cfg|ini|conf|sif|html?|png|jpe?g|wav|mp[34]|feather|db|out|err|idx)",
    re.IGNORECASE,
)
_FOLDERS = frozenset(
    "data datasets dataset models model checkpoints checkpoint ckpts ckpt outputs output out results result runs run"
    " logs log configs config conf scripts script src exp exps experiment experiments pretrained weights saves save"
    " cache tmp temp work_dirs work_dir work recipes assets resources bin lib local home saved_models saved examples"
    " example tools tests test train eval evaluation inputs input workspace mnt nas scratch project projects code app"
    " opt usr var lora adapters adapter sft dpo llm files images corpus wandb tb tensorboard utils".split()
)
_BARE_MODEL = re.compile(
    r"(?:distil)?(?:bert|roberta|gpt2)(?:-[\w-]{1,40})?|(?:m?t5|flan-t5)(?:-\w{1,12})?|xlm-roberta-\w+|albert-\w+-v\d"
    r"|(?:facebook-)?bart-(?:base|large)[\w-]{0,20}|electra-\w+|xlnet-[\w-]+|camembert-base|bert-[\w-]{3,40}"
    r"|resnet\d{2,3}\.\w{2,30}|(?:open)?clip-[\w-]{1,40}|gpt-neo-[\w.]{1,8}|opt-\d{2,4}m",
)
_BARE_DATA = re.compile(
    r"imdb|wikitext|squad(?:_v2)?|glue|super_glue|c4|openwebtext|samsum|xsum|cnn_dailymail|ag_news|conll2003|wmt\d\d"
    r"|multi_news|billsum|mnist|cifar100?|gsm8k|hellaswag|piqa|boolq|common_voice\w{0,10}|librispeech_asr|emotion"
    r"|rotten_tomatoes|yelp_review_full|yelp_polarity|dbpedia_14|snli|multi_nli|xnli|swag|race|bookcorpus|wikipedia"
    r"|food101|beans|minds14|superb|imagenet-1k|fashion_mnist|tiny_shakespeare|ptb_text_only"
)
BUILDERS = frozenset(
    "parquet csv json text arrow pandas imagefolder audiofolder videofolder webdataset xml".split()
)
"""Names under which `load_dataset` reads local files."""

MODEL_OPTIONS = frozenset(
    "model model_name model_path model_name_or_path model_id pretrained pretrained_model pretrained_model_name"
    " pretrained_model_name_or_path base_model base_model_name base_model_name_or_path base_model_path tokenizer"
    " tokenizer_name tokenizer_path tokenizer_name_or_path teacher teacher_model student student_model draft_model"
    " reward_model reward_model_path ref_model ref_model_path hf_model hf_model_name hf_path model_dir vae unet"
    " speculative_model repo_id controlnet_model_name_or_path vision_tower text_encoder encoder encoder_name"
    " backbone llm llm_path language_model model_checkpoint checkpoint ckpt model_tag adapter adapter_name_or_path"
    " pretrain pretrain_model actor_model_path critic_model_path policy_model embedding_model judge_model"
    " pretrained_vae_model_name_or_path pretrained_teacher_model model_type_or_path init_from base arch_model".split()
)
DATA_OPTIONS = frozenset(
    "dataset dataset_name dataset_id dataset_path data_name train_dataset eval_dataset test_dataset hf_dataset"
    " dataset_repo datasets train_data eval_data data_path prompt_data data dataset_name_or_path".split()
)


def is_hub_name(text: str, scene: Scene, *, bare: str = "") -> bool:
    """Whether the text names something on a hub and no file that is known.

    bare: "model" or "data" where the place says what it is, so that a well-known name without a slash counts.
    """
    if bare == "model" and _BARE_MODEL.fullmatch(text):
        return scene.seen(text) != "there"
    if bare == "data" and _BARE_DATA.fullmatch(text):
        return scene.seen(text) != "there"
    if not _HUB.fullmatch(text) or _FILE.fullmatch(text):
        return False
    if text.split("/", 1)[0].lower() in _FOLDERS:
        return False
    return scene.seen(text) != "there" and scene.seen(text.split("/", 1)[0]) != "there"
