"""How scenes and questions become a batch: token layout, positions and mask of many questions about one video."""

import functools
from pathlib import Path

import torch

from architecture import MERGE, PATCH, TEMPORAL, TOKEN
from twin import video_positions

IGNORE = -100


@functools.lru_cache(maxsize=None)
def tokenizer(path):
    from tokenizers import Tokenizer
    return Tokenizer.from_file(path)


# Set once by the trainer or a test that needs words; the fixed parts of the prompt are found from it.
_fixed = {}


def use_tokenizer(path):
    path = Path(path)
    t = tokenizer(str(path / "tokenizer.json" if path.is_dir() else path))

    def ids(text):
        return t.encode(text, add_special_tokens=False).ids

    _fixed.update(before=ids("<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n<|im_start|>user\n<|vision_start|>"), after=ids("<|vision_end|>"),
                  tail=ids("<|im_end|>\n<|im_start|>assistant\n"), end=ids("<|im_end|>"), encode=functools.lru_cache(maxsize=200_000)(ids))


def token(word):
    """Id of a word that is one token."""
    return _part("encode")(word)[0]


def _part(name):
    if not _fixed:
        # Any ids of the right kind do where no words are needed.
        _fixed.update(before=[TOKEN["<|im_start|>"], 40, 41, 42, TOKEN["<|im_end|>"], 10, TOKEN["<|im_start|>"], 43, TOKEN["<|vision_start|>"]], after=[TOKEN["<|vision_end|>"]],
                      tail=[TOKEN["<|im_end|>"], 10, TOKEN["<|im_start|>"], 44, 10], end=[TOKEN["<|im_end|>"]])
    return _fixed[name]


def prompt_ids(device):
    return tuple(torch.tensor([_part(name)], device=device) for name in ("before", "after"))


def encode_pair(question, answer):
    """Ids of a block's prompt part (question to the assistant's turn) and of its answer with the end of the turn."""
    if isinstance(question, str):
        question, answer = _part("encode")(question), _part("encode")(answer)
    return list(question) + _part("tail"), list(answer) + _part("end")


class Layout:
    """A batch whose windows have one size and whose question blocks have fixed lengths."""

    def __init__(self, frames, height, width, lengths):
        self.frames, self.height, self.width, self.lengths = frames, height, width, tuple(lengths)
        self.slices, self.rows, self.columns = frames // TEMPORAL, height // (PATCH * MERGE), width // (PATCH * MERGE)
        self.video = self.slices * self.rows * self.columns
        self.prefix = len(_part("before")) + self.video + len(_part("after"))
        self.questions = sum(self.lengths)
        self.keys = self.prefix + self.questions

    def positions(self, fps, prompts, jump=None):
        """M-RoPE positions (3, B, prefix + questions), as transformers 5 numbers a prompt and then decodes.

        fps (B,); prompts (B, blocks): ids in each block's prompt part. The video takes max(rows, columns) positions however long it lasts; the answer starts after the
        greatest position so far. `jump` (B,) bool: number text after the greatest position of the video instead (as older releases did).
        """
        before, after = len(_part("before")), len(_part("after"))
        batch = fps.shape[0]
        interval = 2 * (TEMPORAL / fps).to(torch.int64)
        video = video_positions(self.slices, self.rows, self.columns, 1, 0)
        moved = video.unsqueeze(1).expand(3, batch, -1).clone()
        moved[0] *= interval.view(-1, 1)
        greatest = moved.amax((0, 2)) + before
        moved += before
        follow = torch.full((batch,), before + max(self.rows, self.columns))
        if jump is not None:
            follow = torch.where(jump, greatest + 1, follow)
        out = torch.empty(3, batch, self.prefix + self.questions, dtype=torch.int64)
        out[:, :, :before] = torch.arange(before)
        out[:, :, before:before + self.video] = moved
        out[:, :, before + self.video:self.prefix] = follow.view(-1, 1) + torch.arange(after)
        out[:, :, self.prefix:] = block_positions(self.lengths, follow + after, greatest, prompts)
        return out

    def mask(self, device):
        """(questions, prefix + questions): each block sees the prefix and, causally, itself."""
        block = torch.repeat_interleave(torch.arange(len(self.lengths)), torch.tensor(self.lengths))
        own = (block[:, None] == block[None]) & torch.ones(self.questions, self.questions, dtype=torch.bool).tril()
        return torch.cat([torch.ones(self.questions, self.prefix, dtype=torch.bool), own], 1).to(device)


def block_positions(lengths, start, greatest, prompts):
    """Positions (B, sum of lengths): each block from `start`, its answer after the greatest position before it."""
    out = []
    for index, length in enumerate(lengths):
        step = torch.arange(length)
        asked = prompts[:, index].view(-1, 1)
        base = start.view(-1, 1)
        answer_from = torch.maximum(base + asked, greatest.view(-1, 1) + 1)
        out.append(torch.where(step < asked, base + step, answer_from + step - asked))
    return torch.cat(out, 1)
