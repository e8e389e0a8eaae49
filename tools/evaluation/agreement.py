"""How often the drafter's likeliest next word is the target's, along the target's own greedy explanations."""

import json
from pathlib import Path

import numpy as np
import torch

import batches
import distil
from architecture import CONFIGS, DEVIATION, MEAN
from export import load_weights
from twin import Model

from . import answers, tables
from .engines import prepare

# Share of the visual tokens that the drafter sees, and which.
VIEWS = ((1.0, "all"), (.1, "change"), (.1, "both"), (.1, "random"), (1.0, "grey"))
LENGTH = 64


def load(folder, size):
    model = Model(CONFIGS[size]()).eval()
    model.load_state_dict({name: value.float() for name, value in load_weights(folder).items()})
    return model


def explained(window):
    """The question of the window's explanation."""
    found = [pair for pair in answers.expected(window) if pair[0].startswith("explanation")]
    return found[0] if found else None


@torch.no_grad()
def report(target_folder, draft_folder, found):
    torch.set_num_threads(1)
    target, draft = load(target_folder, "demo"), load(draft_folder, "draft")
    batches.use_tokenizer(target_folder)
    size = json.loads((Path(target_folder) / "preprocessor_config.json").read_text())
    mean, deviation = (torch.tensor(v).view(1, 1, 3, 1, 1) for v in (MEAN, DEVIATION))
    prompt, generator, counts, used = batches.prompt_ids("cpu"), torch.Generator().manual_seed(0), {view: np.zeros(2, int) for view in VIEWS}, 0
    for window in found:
        pair = explained(window)
        if pair is None:
            continue
        used += 1
        pixels = prepare(window["clip"].sample(window["start"], window["count"], window["fps"]), "model", size).float().unsqueeze(0) / 255
        frames = (pixels - mean) / deviation
        question, answer = batches.encode_pair(pair[1], pair[2])
        layout = batches.Layout(frames.shape[1], *frames.shape[3:], (LENGTH,))
        tokens = torch.zeros(1, LENGTH, dtype=torch.long)
        tokens[0, :len(question) + len(answer)] = torch.tensor(question + answer)
        batch = dict(tokens=tokens, prompts=torch.tensor([[len(question)]]), tags=torch.zeros(1, 1), positions=layout.positions(torch.tensor([window["fps"]]), torch.tensor([[len(question)]])))
        mask, seen = layout.mask("cpu"), target.model.visual(frames)
        tokens, targets = distil.greedy(target, seen, batch, (LENGTH,), prompt, mask, rounds=64)
        where, drafted = targets != batches.IGNORE, draft.model.visual(frames)
        for share, how in VIEWS:
            video, positions, thin_mask = drafted, batch["positions"], mask
            if how == "grey":
                video = draft.model.visual(((torch.full_like(pixels, .5) - mean) / deviation))
            if share < 1:
                video, positions, thin_mask = distil.kept_part(drafted, positions, mask, prompt[0].shape[1], distil.choose_tokens(frames, share, how, generator))
            said = draft.logits(draft(video, prompt, tokens, positions, thin_mask)[where]).argmax(-1)
            counts[(share, how)] += (int((said == targets[where]).sum()), int(where.sum()))
    print(f"{used} explanations\n\n| visual tokens that the drafter sees | words | equal to the target's (95 %) |\n|---|---|---|")
    for (share, how), (equal, words) in counts.items():
        low, high = tables.wilson(equal, words)
        name = {"all": "all", "change": "a tenth, those that changed most", "both": "a tenth, half by change and half at random", "random": "a tenth, at random", "grey": "all, of grey frames (a control)"}[how]
        print(f"| {name} | {words} | {equal / max(1, words):.3f} ({low:.3f} to {high:.3f}) |")
