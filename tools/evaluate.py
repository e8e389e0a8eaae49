#!/usr/bin/env python3
"""Scores a model's answers and prints the table, with 95 % confidence intervals (Wilson).

    tools/evaluate.py --model models/demo --clips tests/videos            the second halves of the real clips
    tools/evaluate.py --model models/demo --scenes DIR                         a set that tools/scenes/write.py made
    tools/evaluate.py --model models/demo --scenes DIR --control shuffle|blank

Engines: `vigil` asks the program itself (build/release/bin/vigil), `transformers` the published model code, `twin` the training code (equal to transformers, many questions in
one pass: quickest). `--frames 224x224` squeezes frames as the cameras of config/demo.yaml do; `--frames model` keeps the shape, as the preprocessor does (what `vigil ask` does).
The table is printed as Markdown; `--json FILE` keeps every window's answer.
"""

import argparse
import json
import math
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np

TOOLS = Path(__file__).resolve().parent
sys.path[:0] = [str(TOOLS), str(TOOLS / "train")]

QUESTIONS = {
    "person": ("Is there a person in the room?", "Is a person present?", "a person present"),
    "car": ("Is there a car on the road?", "Is a car present?", "a car present"),
    "zone": ("Is a person inside the marked zone?",),
    "fall": ("Does a person fall?",),
    "stop": ("Does a car stop on the road?",),
    "bag": ("Is a bag left behind?",),
}


# --- windows ------------------------------------------------------------------------------------------------------------------------------

class Clip:
    """A video's frames with their times, RGB."""

    def __init__(self, path):
        import av

        self.path, self.times, self.frames = Path(path), [], []
        with av.open(str(path)) as container:
            for frame in container.decode(video=0):
                self.times.append(float(frame.pts * frame.time_base))
                self.frames.append(frame.to_ndarray(format="rgb24"))

    def sample(self, start, count, fps):
        """The frame shown at each of `count` moments from `start` on."""
        moments = start + np.arange(count) / fps
        index = np.clip(np.searchsorted(self.times, moments + 1e-6, side="right") - 1, 0, len(self.frames) - 1)
        return [self.frames[i] for i in index]


def real_windows(folder, lengths, fps):
    """Windows of the second halves, one a second, with the labels of what they show.

    True: seen for a second or more and on two sampled frames or more; False: not seen at all; None (left out, and counted): seen for less, or a hand alone.
    """
    for path in sorted((TOOLS / "labels").glob("*.json")):
        label = json.loads(path.read_text())
        clip = Clip(Path(folder) / label["clip"])
        for length in lengths:
            start = math.ceil(label["half"])
            while start + length <= clip.times[-1] + 1e-6:
                moments = start + np.arange(round(length * fps)) / fps
                truth = {}
                for kind in ("person", "car"):
                    hazy = label["partial_person"] if kind == "person" else []
                    seconds = sum(max(0.0, min(e["to"], start + length) - max(e["from"], start)) for e in label[kind])
                    sampled = sum(any(e["from"] <= t < e["to"] for e in label[kind]) for t in moments)
                    touched = any(e["from"] < start + length and e["to"] > start for e in label[kind] + hazy)
                    truth[kind] = True if seconds >= 1 and sampled >= 2 else (None if touched else False)
                yield dict(clip=clip, name=label["clip"], start=float(start), count=len(moments), fps=fps, truth=truth, tags=[label["clip"], f"{length:g} s"])
                start += 1


def scene_windows(folder, limit):
    """Windows of generated videos; their JSON (see tools/scenes/write.py) says where each window starts and what is true."""
    for path in sorted(Path(folder).glob("*.json"))[:limit]:
        record = json.loads(path.read_text())
        clip = Clip(path.with_suffix(".mp4"))
        truth = {rule: answer for rule, answer in record["rules"].items() if rule in record["ask"]}
        tags = [record["light"], record["weather"], record["codec"], *record["tags"]]
        yield dict(clip=clip, name=path.stem, start=0.0, count=record["frames"], fps=record["fps"], truth=truth, tags=tags)


def prepare(frames, how, size):
    """(T, 3, H, W) uint8 frames at the model's size: bicubic, as the published preprocessor."""
    import torch
    from PIL import Image

    if how == "model":
        from sizes import smart_resize
        height, width = smart_resize(*frames[0].shape[:2], factor=size["patch_size"] * size["merge_size"], min_pixels=size["min_pixels"], max_pixels=size["max_pixels"])
    else:
        width, height = (int(v) for v in how.split("x"))
    scaled = [np.asarray(Image.fromarray(frame).resize((width, height), Image.BICUBIC)) for frame in frames]
    return torch.from_numpy(np.stack(scaled)).permute(0, 3, 1, 2)


# --- engines ------------------------------------------------------------------------------------------------------------------------------

class Twin:
    """Many questions about one video in one pass of the training code, in float32 on the CPU."""

    def __init__(self, folder, how):
        import torch
        from transformers import Qwen2_5_VLForConditionalGeneration

        import batches
        from twin import Model

        self.torch, self.batches, self.how = torch, batches, how
        reference = Qwen2_5_VLForConditionalGeneration.from_pretrained(folder, dtype=torch.float32)
        self.model = Model(reference.config).eval()
        self.model.load_state_dict({k: v for k, v in reference.state_dict().items() if k != "lm_head.weight"})
        batches.use_tokenizer(folder)
        self.size = json.loads((Path(folder) / "preprocessor_config.json").read_text())
        t = batches.tokenizer(str(Path(folder) / "tokenizer.json"))
        self.yes, self.no = t.token_to_id("Yes"), t.token_to_id("No")
        self.clip, self.seen = None, {}

    def see(self, frames):
        """Visual tokens (1, N, width). Pairs of frames do not see each other, so windows that overlap share theirs."""
        torch = self.torch
        frames = frames + frames[-1:] * (len(frames) % 2)
        pairs = [(id(a), id(b)) for a, b in zip(frames[::2], frames[1::2])]
        mean, deviation = (torch.tensor(self.size[k]).view(1, 1, 3, 1, 1) for k in ("image_mean", "image_std"))
        for index, key in enumerate(pairs):
            if key not in self.seen:
                pixels = prepare(frames[2 * index:2 * index + 2], self.how, self.size).float().unsqueeze(0) / 255
                # The frames are kept with the tokens: their identities are the key.
                self.seen[key] = (self.model.model.visual((pixels - mean) / deviation), pixels.shape[3:], frames[2 * index:2 * index + 2])
        return torch.cat([self.seen[key][0] for key in pairs], 1), self.seen[pairs[0]][1]

    def ask(self, window, frames, questions):
        torch, batches = self.torch, self.batches
        if self.clip is not window["clip"]:
            self.clip, self.seen = window["clip"], {}
        prompts = [batches.encode_pair(question, "")[0] for question in questions]
        lengths = [len(p) + 1 for p in prompts]
        with torch.no_grad():
            video, (height, width) = self.see(frames)
            layout = batches.Layout(len(frames) + len(frames) % 2, height, width, lengths)
            tokens = torch.tensor([[token for p in prompts for token in (*p, 0)]])
            positions = layout.positions(torch.tensor([float(window["fps"])]), torch.tensor([[len(p) for p in prompts]]))
            hidden = self.model(video, batches.prompt_ids("cpu"), tokens, positions, layout.mask("cpu"))
            logits = self.model.logits(hidden[0, np.cumsum(lengths) - 2])[:, [self.yes, self.no]]
        return torch.softmax(logits.double(), -1)[:, 0].tolist()


class Transformers:
    """The published model code, a question a pass."""

    def __init__(self, folder, how):
        import torch
        from transformers import AutoTokenizer, Qwen2_5_VLForConditionalGeneration

        self.torch, self.how = torch, how
        self.model = Qwen2_5_VLForConditionalGeneration.from_pretrained(folder, dtype=torch.float32).eval()
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.size = json.loads((Path(folder) / "preprocessor_config.json").read_text())
        self.yes, self.no = (self.tokenizer.convert_tokens_to_ids(word) for word in ("Yes", "No"))

    def inputs(self, window, frames, question):
        torch = self.torch
        pixels = prepare(frames, self.how, self.size).float() / 255
        if len(pixels) % 2:
            pixels = torch.cat([pixels, pixels[-1:]])
        mean, deviation = (torch.tensor(self.size[k]).view(1, 3, 1, 1) for k in ("image_mean", "image_std"))
        x = (pixels - mean) / deviation
        t, _, h, w = x.shape
        patches = x.view(t // 2, 2, 3, h // 28, 2, 14, w // 28, 2, 14).permute(0, 3, 6, 4, 7, 2, 1, 5, 8).reshape(t // 2 * (h // 14) * (w // 14), -1)
        text = self.tokenizer.apply_chat_template([{"role": "user", "content": [{"type": "video"}, {"type": "text", "text": question}]}], tokenize=False, add_generation_prompt=True)
        video = self.model.config.video_token_id
        text = text.replace("<|video_pad|>", "<|video_pad|>" * (len(patches) // 4))
        ids = torch.tensor([self.tokenizer(text).input_ids])
        return dict(input_ids=ids, attention_mask=torch.ones_like(ids), mm_token_type_ids=(ids == video).int() * 2, pixel_values_videos=patches,
                    video_grid_thw=torch.tensor([[t // 2, h // 14, w // 14]]), second_per_grid_ts=torch.tensor([2.0 / window["fps"]]))

    def ask(self, window, frames, questions):
        out = []
        for question in questions:
            self.model.model.rope_deltas = None
            with self.torch.no_grad():
                logits = self.model(**self.inputs(window, frames, question)).logits[0, -1, [self.yes, self.no]]
            out.append(float(self.torch.softmax(logits.double(), -1)[0]))
        return out

    def say(self, window, frames, question, tokens=48):
        self.model.model.rope_deltas = None
        inputs = self.inputs(window, frames, question)
        out = self.model.generate(**inputs, max_new_tokens=tokens, do_sample=False)
        return self.tokenizer.decode(out[0, inputs["input_ids"].shape[1]:], skip_special_tokens=True)


class Vigil:
    """The program itself; it reads the file and takes its own frames."""

    def __init__(self, folder, how, program):
        self.folder, self.program = folder, program
        if how != "model":
            raise SystemExit("evaluate: the engine vigil scales frames itself; use --frames model")

    def ask(self, window, frames, questions):
        out = []
        for question in questions:
            until = window["start"] + window["count"] / window["fps"]
            command = [self.program, "ask", str(window["clip"].path), question, "--model", str(self.folder), "--fps", str(window["fps"]), "--from", str(window["start"]), "--to", str(until), "--max-tokens", "1", "--output", "json"]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
            if done.returncode:
                raise SystemExit(f"evaluate: {' '.join(command)} failed")
            out.append(json.loads(done.stdout)["probability_yes"])
        return out


# --- the table ----------------------------------------------------------------------------------------------------------------------------

def wilson(hits, count):
    if count == 0:
        return 0.0, 1.0
    z, p = 1.959964, hits / count
    centre, spread = p + z * z / (2 * count), z * math.sqrt(p * (1 - p) / count + z * z / (4 * count * count))
    return max(0.0, (centre - spread) / (1 + z * z / count)), min(1.0, (centre + spread) / (1 + z * z / count))


def row(name, results):
    """One line of the table from pairs (truth, probability of yes)."""
    tp = sum(t and p > .5 for t, p in results)
    fp = sum(not t and p > .5 for t, p in results)
    fn = sum(t and p <= .5 for t, p in results)
    tn = len(results) - tp - fp - fn
    precision, recall = tp / max(1, tp + fp), tp / max(1, tp + fn)
    f1 = 2 * tp / max(1, 2 * tp + fp + fn)
    # F1 = 2 tp / (2 tp + fp + fn): the share of hits among (hits counted twice and errors); its interval follows from the share's.
    low, high = wilson(2 * tp, 2 * tp + fp + fn)
    right = wilson(tp + tn, len(results))
    return f"| {name} | {tp + fn} / {fp + tn} | {f1:.3f} | {low:.3f} to {high:.3f} | {precision:.3f} | {recall:.3f} | {(tp + tn) / max(1, len(results)):.3f} ({right[0]:.3f} to {right[1]:.3f}) |", f1


HEAD = "| | yes / no | F1 | 95 % | precision | recall | accuracy (95 %) |\n|---|---|---|---|---|---|---|"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="models/demo")
    parser.add_argument("--engine", choices=("twin", "transformers", "vigil"), default="twin")
    parser.add_argument("--program", default="build/release/bin/vigil")
    parser.add_argument("--clips", help="folder of the real clips")
    parser.add_argument("--scenes", help="folder of generated videos")
    parser.add_argument("--control", choices=("shuffle", "blank"))
    parser.add_argument("--frames", default="224x224")
    parser.add_argument("--fps", type=float, default=2.0)
    parser.add_argument("--seconds", type=float, nargs="+", default=[4, 10])
    parser.add_argument("--limit", type=int)
    parser.add_argument("--json")
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    if args.engine != "vigil":
        import torch
        torch.set_num_threads(args.threads)
    engine = {"twin": Twin, "transformers": Transformers}[args.engine](args.model, args.frames) if args.engine != "vigil" else Vigil(args.model, args.frames, args.program)
    windows = real_windows(args.clips, args.seconds, args.fps) if args.clips else scene_windows(args.scenes, args.limit)
    tables, excluded, kept, rng = defaultdict(list), defaultdict(int), [], np.random.default_rng(0)
    for window in windows:
        frames = window["clip"].sample(window["start"], window["count"], window["fps"])
        if args.control == "shuffle":
            frames = [frames[i] for i in rng.permutation(len(frames))]
        elif args.control == "blank":
            frames = [np.full_like(frames[0], 128)] * len(frames)
        asked = [(rule, question) for rule, truth in window["truth"].items() if truth is not None for question in QUESTIONS[rule]]
        for rule, truth in window["truth"].items():
            excluded[rule] += truth is None
        if not asked:
            continue
        answers = engine.ask(window, frames, [question for _, question in asked])
        for (rule, question), answer in zip(asked, answers):
            truth = window["truth"][rule]
            tables[(rule, "all wordings")].append((truth, answer))
            tables[(rule, f'"{question}"')].append((truth, answer))
            for tag in window["tags"]:
                tables[(rule, tag)].append((truth, answer))
            kept.append(dict(window=window["name"], start=window["start"], seconds=window["count"] / window["fps"], rule=rule, question=question, truth=truth, probability_yes=round(answer, 5)))
    print(f"Engine {args.engine}, frames {args.frames}, {args.fps:g} a second{', control ' + args.control if args.control else ''}. Excluded as undecided: {dict(excluded)}.\n")
    print(HEAD)
    for (rule, tag), results in sorted(tables.items(), key=lambda item: (item[0][0], item[0][1] != "all wordings", item[0][1])):
        print(row(f"{rule}: {tag}" if tag != "all wordings" else f"**{rule}**", results)[0])
    bins = defaultdict(list)
    for record in kept:
        bins[min(4, int(record["probability_yes"] * 5))].append((record["probability_yes"], record["truth"]))
    print("\n| probability of yes | windows | mean probability | share of yes |\n|---|---|---|---|")
    for index in sorted(bins):
        p, t = zip(*bins[index])
        print(f"| {index / 5:.1f} to {index / 5 + .2:.1f} | {len(p)} | {np.mean(p):.3f} | {np.mean(t):.3f} |")
    if args.json:
        Path(args.json).write_text("\n".join(json.dumps(record) for record in kept) + "\n")


if __name__ == "__main__":
    main()
