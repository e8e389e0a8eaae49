#!/usr/bin/env python3
"""The training twin against transformers: equal visual tokens, logits, and answers to many questions asked in one pass.

    tools/train/test_twin.py        (also runs under pytest)
"""

import sys
from pathlib import Path

import torch

TOOLS = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TOOLS), str(TOOLS / "train")]

from architecture import TOKEN, demo_config  # noqa: E402
from batches import Layout, block_positions, encode_pair, prompt_ids  # noqa: E402
from export import to_transformers  # noqa: E402
from twin import Model  # noqa: E402


def patches(frames):
    """Frames (T, 3, H, W) in transformers' order of patches."""
    t, _, h, w = frames.shape
    x = frames.view(t // 2, 2, 3, h // 28, 2, 14, w // 28, 2, 14).permute(0, 3, 6, 4, 7, 2, 1, 5, 8)
    return x.reshape(t // 2 * (h // 14) * (w // 14), -1)


def models(seed=3):
    config = demo_config(text=dict(num_hidden_layers=3), vision=dict(depth=3, fullatt_block_indexes=[1]))
    twin = Model(config).initialise(seed).eval()
    with torch.no_grad():
        for name, parameter in twin.named_parameters():
            if parameter.dim() == 1:
                parameter.add_(torch.randn_like(parameter) * 0.1)
    return twin, to_transformers(twin.state_dict(), config)


def relative(a, b):
    return float((a - b).norm() / b.norm())


@torch.no_grad()
def test_visual_tokens():
    twin, reference = models()
    # 224x224 has equal windows; the others are cut unevenly.
    for height, width in ((224, 224), (168, 280), (168, 252), (140, 84)):
        frames = torch.randn(2, 4, 3, height, width)
        ours = twin.model.visual(frames)
        grid = torch.tensor([[2, height // 14, width // 14]] * 2)
        theirs = reference.model.visual(torch.cat([patches(f) for f in frames]), grid).pooler_output.view_as(ours)
        assert relative(ours, theirs) < 1e-5, (height, width, relative(ours, theirs))


@torch.no_grad()
def test_questions_in_one_pass_equal_questions_alone():
    twin, reference = models()
    lengths = (40, 24, 48)
    pairs = [([300, 301, 302], [77]), ([400, 17], [88, 12, 900]), ([5, 6, 7, 8, 9, 10, 11], [901])]
    # The last: a video so long in time that its positions run past those of the question, where transformers' decoding jumps.
    for height, width, frames_count, fps in ((224, 224, 4, 2.0), (168, 280, 6, 1.0), (224, 224, 2, 4.0), (84, 84, 24, 1.0)):
        frames = torch.randn(1, frames_count, 3, height, width)
        layout = Layout(frames_count, height, width, lengths)
        tokens, starts = torch.full((1, sum(lengths)), TOKEN["<|endoftext|>"]), []
        positions = layout.positions(torch.tensor([fps]), torch.tensor([[len(q) for q, _ in encoded_pairs(pairs)]]))
        offset = 0
        for length, (question, answer) in zip(lengths, encoded_pairs(pairs)):
            ids = question + answer
            tokens[0, offset:offset + len(ids)] = torch.tensor(ids)
            starts.append(offset)
            offset += length
        hidden = twin(frames, prompt_ids("cpu"), tokens, positions, layout.mask("cpu"))
        ours = twin.logits(hidden)
        slices, rows, columns = frames_count // 2, height // 14, width // 14
        for start, (question, answer) in zip(starts, encoded_pairs(pairs)):
            before, after = (part[0].tolist() for part in prompt_ids("cpu"))
            video = [TOKEN["<|video_pad|>"]] * (slices * rows * columns // 4)
            prompt = before + video + after + question
            inputs = dict(pixel_values_videos=patches(frames[0]), video_grid_thw=torch.tensor([[slices, rows, columns]]), second_per_grid_ts=torch.tensor([2 / fps]))
            # The prompt, then the answer token by token as transformers decodes it.
            types = torch.tensor([[2 if token == TOKEN["<|video_pad|>"] else 0 for token in prompt]])
            reference.model.rope_deltas = None
            out = reference(input_ids=torch.tensor([prompt]), mm_token_type_ids=types, use_cache=True, **inputs)
            logits = [out.logits[0, -1]]
            cache = out.past_key_values
            for step, token in enumerate(answer[:-1]):
                delta = reference.model.rope_deltas
                position = (len(prompt) + step + delta).view(1, 1, 1).expand(3, 1, 1)
                out = reference(input_ids=torch.tensor([[token]]), position_ids=position, past_key_values=cache, use_cache=True)
                logits.append(out.logits[0, -1])
            first = start + len(question) - 1
            error = relative(ours[0, first:first + len(answer)], torch.stack(logits))
            assert error < 1e-4, (height, width, frames_count, fps, error)


def encoded_pairs(pairs):
    return [encode_pair(question, answer) for question, answer in pairs]


if __name__ == "__main__":
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            test()
            print("passed", name)
