"""What answers the questions: the program `vigil`, transformers' model, or the training code."""

import json
import subprocess
import tempfile
from pathlib import Path

import numpy as np


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

    def ask(self, window, questions, control=None):
        torch, batches = self.torch, self.batches
        frames = window["clip"].sample(window["start"], window["count"], window["fps"])
        frames = control(frames) if control else frames
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

    def ask(self, window, questions, control=None):
        frames = window["clip"].sample(window["start"], window["count"], window["fps"])
        frames = control(frames) if control else frames
        out = []
        for question in questions:
            self.model.model.rope_deltas = None
            with self.torch.no_grad():
                logits = self.model(**self.inputs(window, frames, question)).logits[0, -1, [self.yes, self.no]]
            out.append(float(self.torch.softmax(logits.double(), -1)[0]))
        return out

    def say(self, window, question, tokens=48):
        frames = window["clip"].sample(window["start"], window["count"], window["fps"])
        self.model.model.rope_deltas = None
        inputs = self.inputs(window, frames, question)
        out = self.model.generate(**inputs, max_new_tokens=tokens, do_sample=False)
        return self.tokenizer.decode(out[0, inputs["input_ids"].shape[1]:], skip_special_tokens=True)


class Vigil:
    """The program itself; it reads the file and takes its own frames."""

    def __init__(self, folder, how, program, device="cpu"):
        self.folder, self.program, self.how, self.device = folder, program, how, device

    def run(self, window, question, tokens):
        until = window["start"] + window["count"] / window["fps"]
        command = [self.program, "ask", str(window["path"]), question, "--model", str(self.folder), "--fps", str(window["fps"]), "--from", str(window["start"]), "--to", str(until), "--max-tokens", str(tokens), "--output", "json", "--threads", "1", "--device", self.device]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
        if done.returncode:
            raise SystemExit(f"evaluate: {' '.join(command)} failed")
        return json.loads(done.stdout)

    def ask(self, window, questions, control=None):
        """Probability of "Yes" for each question. A control, and frames of another shape, are written to a file of their own, nearly without loss."""
        squeeze = (lambda frames: list(prepare(frames, self.how, None).permute(0, 2, 3, 1).numpy())) if self.how != "model" else None
        if control is None and squeeze is None:
            return [self.run(window, question, 1)["probability_yes"] for question in questions]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "control.mp4"
            frames = window["clip"].sample(window["start"], window["count"], window["fps"])
            for change in filter(None, (control, squeeze)):
                frames = change(frames)
            write_frames(frames, window["fps"], path)
            changed = dict(window, path=path, start=0.0)
            return [self.run(changed, question, 1)["probability_yes"] for question in questions]

    def say(self, window, question, tokens=48):
        return self.run(window, question, tokens)["answer"]


def write_frames(frames, fps, path):
    """Frames (H, W, 3) as a video that decodes to nearly the same pixels (H.264 at quality 1)."""
    import av

    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=round(fps))
        stream.height, stream.width, stream.pix_fmt, stream.options = *frames[0].shape[:2], "yuv420p", {"crf": "1", "preset": "ultrafast"}
        for frame in frames:
            for packet in stream.encode(av.VideoFrame.from_ndarray(np.ascontiguousarray(frame), format="rgb24")):
                container.mux(packet)
        for packet in stream.encode():
            container.mux(packet)
