#!/usr/bin/env python3
"""Makes tests/golden/stream.safetensors: what transformers says about windows of a camera whose patches have gaps. Needs torch, transformers.

    tools/golden_stream.py models/demo tests/golden/stream.safetensors

A stream of temporal patches of made-up visual tokens: of some patches a part of the groups is there, of one none, and between some of them
lies time in which nothing came. A window of it is what is left of a video without gaps: transformers' own `get_rope_index` gives every token
of that video its place, those that are not there are dropped, and the language model gets the rest as `inputs_embeds` with `position_ids`.
Float32 on upcast weights, eager attention, positions from 0.

Metadata: `question`. Tensors: `seconds` I32 [patches]; `groups` U8 [patches, h, w], 1 for a token that is there; `levels` U8 [tokens, hidden], of
all patches: an embedding is (level - 128) / 64, exactly; of each window `w`: `w/patches` I32 [2], the first and the one behind the last;
`w/before`, `w/after` I32: ids around the frames; `w/tokens` I32 [n], the likeliest one after the prompt and those before it; `w/logits`
F32 [n, vocabulary], what each was chosen by."""

import argparse
from pathlib import Path

import packages  # noqa: F401  says what is not installed
import numpy as np
import torch
from safetensors.numpy import save_file

from golden import chat_prompt, load_model, load_tokenizer, noise

QUESTION = "Describe what happens, at length."
HEIGHT, WIDTH = 3, 4
SECONDS = [0, 1, 2, 5, 6, 7, 8, 11, 12]
WINDOWS = {"first": (0, 5), "slid": (2, 8), "last": (4, 9)}
STEPS = 3


def chosen_groups():
    """[patches, h, w]: all of the first, none of one, some of the others."""
    groups = noise("stream/groups", len(SECONDS) * HEIGHT * WIDTH).reshape(len(SECONDS), HEIGHT, WIDTH) < 110
    groups[0], groups[4], groups[6] = True, True, False
    return groups


def window_positions(model, config, before, after, seconds, groups):
    """[3, 1, n] of the tokens that are there: those that they have in a video with a patch every second."""
    length, cells = seconds[-1] - seconds[0] + 1, HEIGHT * WIDTH
    ids = torch.tensor([[*before, *[config.video_token_id] * (length * cells), *after]])
    merge = config.vision_config.spatial_merge_size
    places, _ = model.model.get_rope_index(
        ids, mm_token_type_ids=2 * (ids == config.video_token_id).int(),
        video_grid_thw=torch.tensor([[length, merge * HEIGHT, merge * WIDTH]]), second_per_grid_ts=torch.tensor([1.0]))
    there = np.zeros((length, cells), dtype=bool)
    for second, mask in zip(seconds, groups):
        there[second - seconds[0]] = mask.reshape(-1)
    kept = np.concatenate([np.ones(len(before), bool), there.reshape(-1), np.ones(len(after), bool)])
    return places[:, :, torch.from_numpy(kept)]


def answer(model, inputs, places):
    """(tokens, logits [n, vocabulary]) of the likeliest answer, each step of which computes all of it again."""
    tokens, logits, ends = [], [], model.generation_config.eos_token_id
    for _ in range(STEPS):
        hidden = model.model.language_model(inputs_embeds=inputs, position_ids=places, use_cache=False).last_hidden_state
        logits.append(model.lm_head(hidden[0, -1]).numpy())
        tokens.append(int(logits[-1].argmax()))
        if tokens[-1] in (ends if isinstance(ends, list) else [ends]):
            break
        inputs = torch.cat([inputs, model.get_input_embeddings()(torch.tensor([[tokens[-1]]]))], dim=1)
        places = torch.cat([places, (places.max() + 1).expand(3, 1, 1)], dim=2)
    return tokens, np.stack(logits)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    arguments = parser.parse_args()
    torch.set_grad_enabled(False)
    model, tokenizer = load_model(arguments.folder, torch.float32), load_tokenizer(arguments.folder)
    config = model.config
    ids = tokenizer(chat_prompt(tokenizer, "video", QUESTION), add_special_tokens=False)["input_ids"]
    at = ids.index(config.video_token_id)
    before, after = ids[:at], ids[at + 1 :]
    groups = chosen_groups()
    ends = np.cumsum([0, *groups.sum(axis=(1, 2))])
    hidden = config.text_config.hidden_size
    levels = noise("stream/levels", int(ends[-1]) * hidden).reshape(-1, hidden)
    embeddings = torch.from_numpy((levels.astype(np.float32) - 128) / 64)
    tensors = {"seconds": np.int32(SECONDS), "groups": groups.astype(np.uint8), "levels": levels}
    embed = model.get_input_embeddings()
    for name, (first, last) in WINDOWS.items():
        places = window_positions(model, config, before, after, SECONDS[first:last], groups[first:last])
        inputs = torch.cat([embed(torch.tensor(before)), embeddings[ends[first] : ends[last]], embed(torch.tensor(after))])[None]
        tokens, logits = answer(model, inputs, places)
        tensors |= {f"{name}/patches": np.int32([first, last]), f"{name}/before": np.int32(before), f"{name}/after": np.int32(after),
                    f"{name}/tokens": np.int32(tokens), f"{name}/logits": logits}
        print(name, inputs.shape[1], "rows:", repr(tokenizer.decode(tokens)))
    save_file(tensors, arguments.out, {"question": QUESTION})
    print(f"{arguments.out}: {arguments.out.stat().st_size} bytes")


if __name__ == "__main__":
    main()
