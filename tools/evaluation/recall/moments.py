#!/usr/bin/env python3
"""How well the moment of a fall, of a stop or of a bag that is left is told, by keys of a stream and by windows computed by themselves.

    tools/evaluation/recall/moments.py [--events 24]

Events of tools/scenes/history.py, at any place of a window of 40 s. "Sentence": the second that the answer names. "First Yes": the seconds of the window after which, cut off there, it is answered
by "Yes" for the first time. "Best 16 s": the sentence about these, computed by themselves. Of windows that are answered by "Yes".
"""

import argparse
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[2])]

import packages  # noqa: E402, F401  says what is not installed
import numpy as np  # noqa: E402
import torch  # noqa: E402

import hour  # noqa: E402
import memory  # noqa: E402
from grade import moment  # noqa: E402
from memory import PAGE, PAST, Memory, batches  # noqa: E402
from methods import whole  # noqa: E402
from scenes import history  # noqa: E402
from signals import LENGTH  # noqa: E402

QUESTIONS = {"fall": "Did somebody fall down?", "stop": "Did a car stop?", "bag": "Did someone leave a bag behind?"}
AFTER = {"fall": 1, "stop": 2, "bag": 2}  # seconds from when it is seen to when it happens
PAIR = 2 * PAGE


def events(count):
    """Scene, rule, second at which it happens and second at which a window of it begins."""
    chance, done = np.random.default_rng(1), dict.fromkeys(QUESTIONS, 0)
    for scene in history.choose(20, 3600.0, 120.0):
        found = scene.happened()
        for rule in QUESTIONS:
            for window in found[rule][:2]:
                if done[rule] >= 14 or sum(done.values()) == count:
                    continue
                at = window["from"] + AFTER[rule]
                start = max(0, int((at - chance.integers(4, 34)) // PAGE * PAGE))
                if scene.facts(start + np.arange(2 * LENGTH) / 2, 2.0)["rules"][rule] is True:
                    done[rule] += 1
                    yield scene, rule, at, start


def said(m, words, prompts, first, pages=LENGTH // PAGE):
    """The second that the sentence about `pages` pages from `first` on names, or None."""
    text = words.decode(m.say(prompts, *whole(m, torch.tensor([first]), pages))[0])
    return moment(text, [(0, pages * PAGE)]) if text.startswith("Yes") else None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=24)
    parser.add_argument("--model", default="models/demo")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    model, off = memory.load(args.model, torch.device("cpu")), {}
    words = batches.tokenizer(str(Path(args.model) / "tokenizer.json"))
    for scene, rule, at, start in events(args.events):
        first = max(0, start - PAST)
        video = hour.seen(model, scene, torch.device("cpu"), False, first, start + LENGTH)[0].float()
        gate, explain = (batches.encode_pair(QUESTIONS[rule] + tail, "")[0] for tail in ("", " Explain."))
        before = (start - first) // PAGE
        kept, alone = Memory(model, video, 6, 10), Memory(model, video[start - first:], 6, 10)
        if float(m_odds := alone.odds(alone.ask(gate, *whole(alone, torch.tensor([0]))))[0]) < 0:
            print(f"{scene.seed}: {rule} at {at:.0f} s is not seen: {float(m_odds):.1f}", flush=True)
            continue
        for name, m, page in (("stream", kept, before), ("by itself", alone, 0)):
            pair, cell, place = whole(m, torch.tensor([page]))
            odds = [float(m.odds(m.ask(gate, pair[:, :m.cells * seconds], cell[:, :m.cells * seconds], place[:, :m.cells * seconds]))[0]) for seconds in range(2, LENGTH + 1)]
            off.setdefault(f"sentence, {name}", []).append((said(m, words, explain, page), at - start))
            off.setdefault(f"first Yes, {name}", []).append((2 + int(np.argmax(np.array(odds) > 0)) if max(odds) > 0 else None, at - start))
        inner = int(kept.odds(kept.ask(gate, *whole(kept, before + torch.arange(LENGTH // PAGE - 1), 2))).argmax())
        own = Memory(model, video[start - first + inner * PAGE:][:PAIR], 6, 10)
        told = said(own, words, explain, 0, 2)
        off.setdefault("sentence, best 16 s by themselves", []).append((None if told is None else told + inner * PAGE, at - start))
        print(f"{scene.seed}: {rule} {at - start:.1f} s after the window's begin: " + ", ".join(f"{name} {each[-1][0]}" for name, each in off.items()), flush=True)
    print("\n| moment | told | within 2 s | within 5 s | median |\n|---|---|---|---|---|")
    for name, each in off.items():
        errors = np.array([told - true for told, true in each if told is not None])
        print(f"| {name} | {len(errors)} of {len(each)} | {np.mean(abs(errors) <= 2):.2f} | {np.mean(abs(errors) <= 5):.2f} | {np.median(errors):+.1f} |")


if __name__ == "__main__":
    main()
