#!/usr/bin/env python3
"""Trains the demo model's byte-level BPE tokenizer and writes it in the published Qwen2.5-VL layout.

    tools/train/tokenizer.py OUT

The text is what the scenes' questions and answers say, with the repository's licence for words beyond them; any other text is spelt in smaller pieces or bytes.
"""

import argparse
import json
import sys
from pathlib import Path

TOOLS = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TOOLS), str(TOOLS / "train")]

import packages  # noqa: E402, F401  says what is not installed
import numpy as np  # noqa: E402

from architecture import FIRST_SPECIAL, PIXELS, MEAN, DEVIATION, PATCH, MERGE, TEMPORAL, SPECIAL_TOKENS  # noqa: E402
from scenes import chance, questions, story  # noqa: E402

SPLIT = r"""(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"""
SYSTEM = "You are a helpful assistant."
CHAT_TEMPLATE = (
    "{% set image_count = namespace(value=0) %}{% set video_count = namespace(value=0) %}{% for message in messages %}{% if loop.first and message['role'] != 'system' %}"
    "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n{% endif %}<|im_start|>{{ message['role'] }}\n{% if message['content'] is string %}{{ message['content'] }}<|im_end|>\n"
    "{% else %}{% for content in message['content'] %}{% if content['type'] == 'image' or 'image' in content or 'image_url' in content %}{% set image_count.value = image_count.value + 1 %}"
    "{% if add_vision_id %}Picture {{ image_count.value }}: {% endif %}<|vision_start|><|image_pad|><|vision_end|>{% elif content['type'] == 'video' or 'video' in content %}"
    "{% set video_count.value = video_count.value + 1 %}{% if add_vision_id %}Video {{ video_count.value }}: {% endif %}<|vision_start|><|video_pad|><|vision_end|>"
    "{% elif 'text' in content %}{{ content['text'] }}{% endif %}{% endfor %}<|im_end|>\n{% endif %}{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def corpus():
    for seed in range(1500):
        facts = story.scene_story(seed, 20, 2.0).facts
        for _, question, answer in questions.ask(np.random.default_rng(seed), facts, 8, 3):
            yield question
            yield answer
    for table in (questions.PRESENCE, questions.EXPLAIN, *questions.RULE_WORDINGS.values(), *questions.THINGS.values(), *questions.PLACE_WORDS.values(), questions.ANYWHERE):
        for text in table:
            yield text
            yield " " + text
    for word in (*chance.COLOURS, *questions.NUMBERS, "Yes", "No", "yes", "no", "light", "dark", "infrared", "system", "user", "assistant", SYSTEM):
        yield from (word, " " + word, "\n" + word) * 20
    yield (TOOLS.parent / "LICENSE").read_text()


def train():
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

    def with_parts(tokenizer):
        tokenizer.normalizer = normalizers.NFC()
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
            pre_tokenizers.Split(Regex(SPLIT), behavior="isolated", invert=False), pre_tokenizers.ByteLevel(add_prefix_space=False, trim_offsets=False, use_regex=False)])
        tokenizer.post_processor = processors.ByteLevel(add_prefix_space=False, trim_offsets=False, use_regex=False)
        tokenizer.decoder = decoders.ByteLevel(add_prefix_space=False, trim_offsets=False, use_regex=False)
        return tokenizer

    tokenizer = with_parts(Tokenizer(models.BPE()))
    tokenizer.train_from_iterator(corpus(), trainers.BpeTrainer(vocab_size=FIRST_SPECIAL, initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()), show_progress=False))
    model = json.loads(tokenizer.to_str())["model"]
    assert len(model["vocab"]) == FIRST_SPECIAL, f"{len(model['vocab'])} pieces, {FIRST_SPECIAL} wanted"
    tokenizer = with_parts(Tokenizer(models.BPE(
        vocab=model["vocab"], merges=[tuple(pair) if isinstance(pair, list) else tuple(pair.split(" ")) for pair in model["merges"]],
        continuing_subword_prefix="", end_of_word_suffix="", fuse_unk=False, byte_fallback=False)))
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in SPECIAL_TOKENS])
    return tokenizer


def write(tokenizer, out):
    out = Path(out)
    out.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(out / "tokenizer.json"))
    added = {str(FIRST_SPECIAL + index): dict(content=token, lstrip=False, normalized=False, rstrip=False, single_word=False, special=True) for index, token in enumerate(SPECIAL_TOKENS)}
    (out / "tokenizer_config.json").write_text(json.dumps({
        "add_bos_token": False, "add_prefix_space": False, "added_tokens_decoder": added,
        "additional_special_tokens": [token for token in SPECIAL_TOKENS if token != "<|endoftext|>"], "bos_token": None, "chat_template": CHAT_TEMPLATE,
        "clean_up_tokenization_spaces": False, "eos_token": "<|im_end|>", "errors": "replace", "model_max_length": 8192, "pad_token": "<|endoftext|>", "split_special_tokens": False,
        "tokenizer_class": "Qwen2Tokenizer", "unk_token": None}, indent=2) + "\n")
    (out / "chat_template.json").write_text(json.dumps({"chat_template": CHAT_TEMPLATE}, indent=2) + "\n")
    (out / "preprocessor_config.json").write_text(json.dumps({
        "min_pixels": PIXELS, "max_pixels": PIXELS, "patch_size": PATCH, "temporal_patch_size": TEMPORAL, "merge_size": MERGE, "image_mean": MEAN, "image_std": DEVIATION,
        "image_processor_type": "Qwen2VLImageProcessor", "processor_class": "Qwen2_5_VLProcessor"}, indent=2) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", help="the folder for its files")
    out = parser.parse_args().out
    write(train(), out)
