"""The drafter learns from what the target itself says: greedy answers of the target, its probabilities, and only a part of the visual tokens."""

import torch
import torch.nn.functional as F

from architecture import MERGE, PATCH, TEMPORAL, TOKEN
from batches import IGNORE

# Share of the visual tokens that the drafter sees, and how often in training.
SHARES = {1.0: .4, .5: .15, .25: .15, .1: .3}
# Weight of a word that can be told from the words before it; one that cannot weighs 1 more (see draft_loss).
PLAIN = .3


def answer_places(batch, blocks):
    """(B, Q) bool: tokens that belong to an answer's part of a block."""
    lengths = torch.tensor(blocks, device=batch["prompts"].device)
    step = torch.cat([torch.arange(n) for n in blocks]).to(batch["prompts"].device)
    inside = step.view(1, -1) >= torch.repeat_interleave(batch["prompts"][:, :len(blocks)], lengths, 1)
    return F.pad(inside, (0, batch["tokens"].shape[1] - sum(blocks)))


@torch.no_grad()
def greedy(model, video, batch, blocks, prompt, mask, rounds):
    """The target's own answers: tokens and targets (B, Q) as if it had decoded greedily.

    All answers are found at once, as the fixed point of "each token is the likeliest after those before it": a round makes at least one more token of each answer final,
    and mostly many, since the first guess is the true answer. What is not final after `rounds` is close to it.
    """
    tokens, answers = batch["tokens"].clone(), answer_places(batch, blocks)
    for _ in range(rounds):
        said = model.logits(model(video, prompt, tokens, batch["positions"], mask)).argmax(-1)
        after = torch.cat([tokens[:, :1], said[:, :-1]], 1)
        changed = torch.where(answers, after, tokens)
        if torch.equal(changed, tokens):
            break
        tokens = changed
    targets = torch.full_like(tokens, IGNORE)
    offset = 0
    for block, length in enumerate(blocks):
        part = tokens[:, offset:offset + length]
        own = answers[:, offset:offset + length]
        ended = ((part == TOKEN["<|im_end|>"]) & own).long().cumsum(1)
        # Up to and with the first end of turn.
        kept = own & ((ended == 0) | ((ended == 1) & (part == TOKEN["<|im_end|>"])))
        asked = (batch["tags"][:, block] >= 0).view(-1, 1)
        targets[:, offset:offset + length - 1] = torch.where(kept[:, 1:] & asked, part[:, 1:], IGNORE)
        offset += length
    return tokens, targets


def choose_tokens(frames, share, how, generator=None):
    """Indices (B, k), ascending, of the visual tokens that a drafter may see: those that changed most ("change"), any ("random"), or half and half ("both").

    frames (B, T, 3, H, W) normalised. A token is 28x28 pixels of two frames; its change is the mean absolute difference against the two frames before.
    """
    b, t, _, h, w = frames.shape
    side = PATCH * MERGE
    pairs = frames.float().view(b, t // TEMPORAL, TEMPORAL, 3, h, w).mean(2)
    change = F.pad((pairs[:, 1:] - pairs[:, :-1]).abs().mean(2), (0, 0, 0, 0, 1, 0))
    score = F.avg_pool2d(change, side).flatten(1)
    chance = torch.rand(score.shape, device=score.device, generator=generator)
    count = max(1, round(score.shape[1] * share))
    if how == "random":
        score = chance
    elif how == "both":
        best = score.topk(count // 2, 1).indices
        score = chance.scatter(1, best, 2.0)
    return score.topk(count, 1).indices.sort(1).values


def kept_part(video, positions, mask, before, kept):
    """Visual tokens, positions and mask of a prompt of which only the visual tokens `kept` (B, k) are left; `before`: tokens before the video."""
    count = video.shape[1]
    thin = torch.gather(video, 1, kept.unsqueeze(-1).expand(-1, -1, video.shape[-1]))
    middle = torch.gather(positions[:, :, before:before + count], 2, kept.unsqueeze(0).expand(3, -1, -1))
    return thin, torch.cat([positions[:, :, :before], middle, positions[:, :, before + count:]], 2), mask[:, count - kept.shape[1]:]


def draft_loss(student, teacher, frames, drafted, batch, blocks, prompt, mask, rng):
    """Cross entropy with the target's words and its probabilities, on the target's own answers; also which words are equal. `drafted`: the student's visual tokens of `frames`.

    Most words follow from those before them, and a student that learns all of them alike stops looking. So each word weighs by how little the student expects it when it is shown
    another window instead.
    """
    with torch.no_grad():
        seen = teacher.model.visual(frames)
        tokens, targets = greedy(teacher, seen, batch, blocks, prompt, mask, rounds=3)
        where = targets != IGNORE
        teaching = teacher.logits(teacher(seen, prompt, tokens, batch["positions"], mask)[where]).float()
    share = float(rng.choice(list(SHARES), p=list(SHARES.values())))
    video, positions, thin_mask = drafted, batch["positions"], mask
    if share < 1:
        kept = choose_tokens(frames, share, str(rng.choice(("change", "random", "both"))))
        video, positions, thin_mask = kept_part(video, positions, mask, prompt[0].shape[1], kept)
    logits = student.logits(student(video, prompt, tokens, positions, thin_mask)[where]).float()
    wanted = teaching.argmax(-1)
    with torch.no_grad():
        blind = student.logits(student(video.detach().roll(1, 0), prompt, tokens, positions, thin_mask)[where]).float()
        weight = PLAIN + 1 - blind.softmax(-1).gather(1, wanted[:, None])[:, 0]
    losses = .5 * F.cross_entropy(logits, wanted, reduction="none") + .5 * F.kl_div(F.log_softmax(logits, -1), F.log_softmax(teaching, -1), log_target=True, reduction="none").sum(-1)
    return (losses * weight).mean(), logits.detach().argmax(-1) == wanted


@torch.no_grad()
def agreement(student, teacher, frames, batch, blocks, prompt, mask, share, how, generator=None):
    """Equal words and all words of the target's greedy explanations (blocks of the greater length) when the drafter sees `share` of the visual tokens."""
    seen = teacher.model.visual(frames)
    tokens, targets = greedy(teacher, seen, batch, blocks, prompt, mask, rounds=64)
    step = torch.repeat_interleave(torch.tensor(blocks), torch.tensor(blocks)).to(tokens.device)
    where = (targets != IGNORE) & F.pad(step == max(blocks), (0, tokens.shape[1] - sum(blocks)))
    video, positions, thin_mask = student.model.visual(frames), batch["positions"], mask
    if share < 1:
        kept = choose_tokens(frames, share, how, generator)
        video, positions, thin_mask = kept_part(video, positions, mask, prompt[0].shape[1], kept)
    said = student.logits(student(video, prompt, tokens, positions, thin_mask)[where]).argmax(-1)
    return int((said == targets[where]).sum()), int(where.sum())
