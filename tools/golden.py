#!/usr/bin/env python3
"""Makes a golden file: what Hugging Face transformers computes with a Qwen2.5-VL folder, for `vigil model verify DIR --golden OUT`.

    tools/golden.py DIR OUT.safetensors [--threads N] [--cases text,image,video,long] [--rows N] [--quantization fp8]

The oracle runs in float32 on upcast weights, with eager attention; a second run in bfloat16 records how far transformers' own bfloat16
is from that. Needs torch, transformers (5.17 or later), safetensors and Pillow; memory for the weights in float32.

With --quantization the large linear layers (fp8: the decoder's; fp8-all: the vision tower's too) round their weights and inputs to torch's
float8_e4m3fn first, with a scale a row, and multiply in float32: what `--quantization` of the program means, by other code.

Metadata of the file: `format` = "vigil-golden-1", `model`, `quantization`, `transformers`, `torch`, `attention`, `processor` (what made the pixel values),
`cases` = JSON list of {name, kind, frames, height, width, fps, seconds_per_grid, prompt}. `prompt` is the text with one placeholder a
picture, empty where the folder has no tokenizer. Tensors of a case `c`:

    c/input_ids          I32 [n]                  with one placeholder a visual token
    c/position_ids       I32 [3, n]               temporal, height, width
    c/pixels             U8  [frames, h, w, 3]    RGB before preprocessing, already sampled in time
    c/pixel_levels       U8  [patches, dim]       after resizing, in the processor's order of patches, before normalisation
    c/pixel_table        F32 [channels, 256]      pixel_values[p, j] = pixel_table[j / (dim / channels), pixel_levels[p, j]], exactly
    c/grid_thw           I32 [3]
    c/vision_rows        I32 [m]                  the rows of the merger's output that are stored, ascending
    c/vision_embeddings  F32 [m, hidden]
    c/vision_bf16_error  F32 [1]                  |bf16 - f32| / |f32|, Frobenius
    c/rows               I32 [k]                  positions, ascending, the last one always among them
    c/hidden             F32 [k, hidden]          after the final norm
    c/logits             F32 [k, vocabulary]
    c/logits_bf16_error  F32 [1]
    c/greedy_tokens      I32 [64]                 argmax each, end tokens ignored, no penalties
    c/greedy_gap         F32 [64]                 first minus second logit of each step

A case of kind `text` has no tensors from `pixels` to `vision_bf16_error`.
"""

import argparse
import json
import sys
import warnings
from pathlib import Path

import packages  # noqa: F401  says what is not installed
import numpy as np

from synthetic_model import name_seed, splitmix64

GREEDY_STEPS = 64
# Visual embeddings stored a case: all rows where they fit into this many bytes, else evenly spaced ones.
VISION_BYTES = 48 * 1024
# name, kind, frames, height, width, frames a second. Odd sizes and counts on purpose; the image is wider than one published attention
# window, and the frame rates give whole seconds a temporal patch, on which every release of transformers agrees.
CASES = (
    ("text", "text", 0, 0, 0, 0.0),
    ("image", "image", 1, 75, 139, 0.0),
    ("video", "video", 5, 61, 75, 2.0),
    ("long", "video", 9, 47, 61, 1.0),
)
QUESTIONS = {
    "text": "Name three things that a camera at a loading dock may see at night, and say which of them matters. 请用一句话回答。",
    "image": "What is in this picture? Answer with one word.",
    "video": "Is there a person in the room? Answer Yes or No.",
    "long": ("These frames come from a camera above a car park. Vehicles enter from the left and leave through the barrier on the right; "
             "people on foot use the walkway at the top. Report an event only if it is clearly visible in at least two frames. "
             "Does something cross the picture, and in which direction does it move?"),
}


class Unusable(Exception):
    """A folder or an argument that no golden file can be made of; the message is one line."""


# --- pictures and prompts ---------------------------------------------------------------------------------------------------------------


def noise(name, count):
    """`count` bytes that depend on the name alone."""
    words, seed, pieces = (count + 7) // 8, name_seed(name), []
    for first in range(0, words, 1 << 16):
        pieces.append(splitmix64(seed, first, min(1 << 16, words - first)).astype("<u8", copy=False).view(np.uint8))
    return np.concatenate(pieces)[:count]


def make_pixels(name, frames, height, width):
    """[frames, height, width, 3] bytes: gradients, a bright square that moves, noise; integers only."""
    t, y, x = np.meshgrid(np.arange(frames), np.arange(height), np.arange(width), indexing="ij")
    channels = [x * 200 // width + 5 * t, y * 180 // height + 20, (x + 2 * y + 9 * t) * 150 // (width + 2 * height) + 40]
    picture = np.stack(channels, axis=-1)
    side = max(height // 3, 4)
    inside = (abs(x - (width // 5 + 6 * t)) < side // 2) & (abs(y - (height // 3 + 2 * t)) < side // 2)
    picture[inside] = (235, 60, 30)
    picture += noise("pixels/" + name, picture.size).reshape(picture.shape) % 33 - 16
    return np.clip(picture, 0, 255).astype(np.uint8)


def chat_prompt(tokenizer, kind, question):
    content = [{"type": kind}] if kind != "text" else []
    messages = [{"role": "user", "content": content + [{"type": "text", "text": question}]}]
    if tokenizer.chat_template:
        return tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    vision = {"text": "", "image": "<|vision_start|><|image_pad|><|vision_end|>",
              "video": "<|vision_start|><|video_pad|><|vision_end|>"}[kind]
    return (f"<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n<|im_start|>user\n{vision}{question}<|im_end|>\n"
            "<|im_start|>assistant\n")


def seeded_ids(config, name, count):
    """Ordinary ids for a folder without tokenizer."""
    special = {config.image_token_id, config.video_token_id, config.vision_start_token_id, config.vision_end_token_id}
    ordinary = np.array([i for i in range(config.text_config.vocab_size) if i not in special])
    picks = noise("ids/" + name, 4 * count).view("<u4") % len(ordinary)
    return ordinary[picks].tolist()


def make_ids(config, tokenizer, name, kind, visual_tokens):
    """(ids with every placeholder, prompt)."""
    pad = {"text": None, "image": config.image_token_id, "video": config.video_token_id}[kind]
    if tokenizer is None:
        before, after = (31, 0) if kind == "text" else (11, 9) if name != "long" else (67, 23)
        ids = seeded_ids(config, name, before + after)
        if kind != "text":
            ids[before:before] = [config.vision_start_token_id, *[pad] * visual_tokens, config.vision_end_token_id]
        return ids, ""
    prompt = chat_prompt(tokenizer, kind, QUESTIONS[name])
    ids = tokenizer(prompt, add_special_tokens=False)["input_ids"]
    if kind != "text":
        if ids.count(pad) != 1:
            raise Unusable(f"the chat template puts {ids.count(pad)} placeholders of id {pad} into a prompt with one {kind}")
        at = ids.index(pad)
        ids[at : at + 1] = [pad] * visual_tokens
    return ids, prompt


# --- preprocessing ----------------------------------------------------------------------------------------------------------------------


class VideoProcessorWithoutTorchvision:
    """What Qwen2VLVideoProcessor computes, for machines without torchvision, which that class needs. Its resize of bytes is
    torch's own antialiased bicubic, so the two agree to the last bit."""

    def __init__(self, settings, smart_resize):
        self.settings, self.smart_resize = settings, smart_resize

    def __call__(self, frames):
        import torch
        s = self.settings
        patch, merge, temporal = s["patch_size"], s["merge_size"], s["temporal_patch_size"]
        video = torch.from_numpy(frames).permute(0, 3, 1, 2).contiguous()
        height, width = self.smart_resize(frames.shape[1], frames.shape[2], patch * merge, s["min_pixels"], s["max_pixels"])
        if (height, width) != tuple(video.shape[-2:]):
            video = torch.nn.functional.interpolate(video, size=(height, width), mode="bicubic", align_corners=False, antialias=True)
        mean, std = (torch.tensor(s[key]).view(1, 3, 1, 1) * 255.0 for key in ("image_mean", "image_std"))
        video = (video.to(torch.float32) - mean) / std
        if pad := -len(video) % temporal:
            video = torch.cat((video, video[-1:].expand(pad, -1, -1, -1)))
        grid = (len(video) // temporal, height // patch, width // patch)
        video = video.reshape(grid[0], temporal, 3, grid[1] // merge, merge, patch, grid[2] // merge, merge, patch)
        # -> frame, block row, block column, row and column in the block, channel, time, y, x
        return video.permute(0, 3, 6, 4, 7, 2, 1, 5, 8).reshape(grid[0] * grid[1] * grid[2], -1).numpy(), grid


class Preprocessor:
    """The published preprocessing of the folder; `description` says which code does it."""

    def __init__(self, folder):
        from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil, smart_resize
        self.image = Qwen2VLImageProcessorPil.from_pretrained(folder, local_files_only=True)
        try:
            import torchvision  # noqa: F401
            from transformers import Qwen2VLVideoProcessor
            real = Qwen2VLVideoProcessor.from_pretrained(folder, local_files_only=True)
            self.video, video_name = lambda frames: self.real_video(real, frames), "Qwen2VLVideoProcessor"
        except ImportError:
            self.video = VideoProcessorWithoutTorchvision(self.video_settings(folder), smart_resize)
            video_name = "the published algorithm on torch's antialiased bicubic"
        self.description = f"image: Qwen2VLImageProcessorPil; video: {video_name}"

    @staticmethod
    def real_video(processor, frames):
        import torch
        out = processor(videos=[torch.from_numpy(frames).permute(0, 3, 1, 2)], do_sample_frames=False, return_tensors="pt")
        return out["pixel_values_videos"].numpy(), tuple(out["video_grid_thw"][0].tolist())

    @staticmethod
    def video_settings(folder):
        """As transformers reads them: video_preprocessor_config.json, else preprocessor_config.json, over the class's defaults."""
        settings = {"size": {"shortest_edge": 128 * 28 * 28, "longest_edge": 28 * 28 * 768}, "patch_size": 14, "merge_size": 2,
                    "temporal_patch_size": 2, "image_mean": [0.48145466, 0.4578275, 0.40821073],
                    "image_std": [0.26862954, 0.26130258, 0.27577711]}
        for name in ("video_preprocessor_config.json", "preprocessor_config.json"):
            if (Path(folder) / name).is_file():
                settings |= json.loads((Path(folder) / name).read_text())
                break
        settings.setdefault("min_pixels", settings["size"]["shortest_edge"])
        settings.setdefault("max_pixels", settings["size"]["longest_edge"])
        return settings

    def __call__(self, kind, frames):
        """(pixel values [patches, dim] f32, (t, h, w))."""
        if kind == "video":
            return self.video(frames)
        out = self.image(images=[frames[0]], return_tensors="np", input_data_format="channels_last")
        return out["pixel_values"].astype(np.float32), tuple(out["image_grid_thw"][0].tolist())


def to_levels(pixel_values, mean, std):
    """(levels, table) from which the reader gets the same floats back."""
    patches, dim = pixel_values.shape
    channels = len(mean)
    table = ((np.arange(256) / 255.0)[None, :] - np.array(mean)[:, None]) / np.array(std)[:, None]
    values = pixel_values.reshape(patches, channels, dim // channels)
    levels = np.rint((values * np.array(std)[None, :, None] + np.array(mean)[None, :, None]) * 255.0)
    levels = np.clip(levels, 0, 255).astype(np.uint8)
    table = table.astype(np.float32)
    for channel in range(channels):
        table[channel, levels[:, channel]] = values[:, channel]
    if any((table[channel, levels[:, channel]] != values[:, channel]).any() for channel in range(channels)):
        raise Unusable("preprocessor_config.json: the pixel values are not a function of 8-bit levels")
    return levels.reshape(patches, dim), table


# --- the model --------------------------------------------------------------------------------------------------------------------------


def load_model(folder, dtype):
    from transformers import Qwen2_5_VLForConditionalGeneration
    try:
        model, report = Qwen2_5_VLForConditionalGeneration.from_pretrained(
            folder, dtype=dtype, attn_implementation="eager", local_files_only=True, output_loading_info=True)
    except RuntimeError as error:
        if "mismatched_sizes" in str(error):  # transformers prints the names to its own log only
            raise Unusable("shapes of tensors do not fit config.json (vigil model check names them)") from None
        raise
    for problem in ("missing_keys", "unexpected_keys"):
        if report.get(problem):
            names = sorted(key if isinstance(key, str) else " ".join(str(part) for part in key) for key in report[problem])
            more = f" and {len(names) - 3} more" if len(names) > 3 else ""
            raise Unusable(f"{problem.removesuffix('_keys')} tensors: {', '.join(names[:3])}{more}")
    return model.eval()


def rounded_to_e4m3(rows):
    """(numbers of E4M3 in float32, a scale a row): kernels/quantize/quantize.h."""
    import torch
    scales = (rows.abs().amax(-1, keepdim=True) / 448.0).clamp(min=2.0**-126)
    return (rows * (1.0 / scales)).to(torch.float8_e4m3fn).to(torch.float32), scales


def quantize(model, quantization):
    """Makes the large linear layers of a float32 model multiply what `rounded_to_e4m3` leaves."""
    import torch

    def quantized(layer):
        weight, weight_scales = rounded_to_e4m3(layer.weight.detach())

        def forward(x):
            values, scales = rounded_to_e4m3(x)
            out = (values @ weight.T) * scales * weight_scales[:, 0]
            return out if layer.bias is None else out + layer.bias
        return forward

    parts = [model.model.language_model.layers] + ([model.model.visual.blocks] if quantization == "fp8-all" else [])
    for part in parts if quantization != "none" else []:
        for layer in part.modules():
            if isinstance(layer, torch.nn.Linear):
                layer.forward = quantized(layer)


def load_tokenizer(folder):
    if not (Path(folder) / "tokenizer.json").is_file() and not (Path(folder) / "vocab.json").is_file():
        return None
    from transformers import AutoTokenizer
    return AutoTokenizer.from_pretrained(folder, local_files_only=True)


def model_inputs(case):
    """The arguments of transformers' forward."""
    import torch
    inputs = {"input_ids": torch.tensor([case["ids"]]), "position_ids": torch.from_numpy(case["position_ids"]).unsqueeze(1)}
    if case["kind"] == "image":
        inputs |= {"pixel_values": torch.from_numpy(case["pixel_values"]), "image_grid_thw": torch.tensor([case["grid"]])}
    elif case["kind"] == "video":
        inputs |= {"pixel_values_videos": torch.from_numpy(case["pixel_values"]), "video_grid_thw": torch.tensor([case["grid"]])}
    return inputs


def positions_of(model, config, case):
    """[3, n] from the model's own rule."""
    import torch
    if case["kind"] == "text":
        return np.tile(np.arange(len(case["ids"])), (3, 1))
    ids = torch.tensor([case["ids"]])
    types = (ids == config.image_token_id).int() + 2 * (ids == config.video_token_id).int()
    grid = {f"{case['kind']}_grid_thw": torch.tensor([case["grid"]])}
    if case["kind"] == "video":
        grid["second_per_grid_ts"] = torch.tensor([case["seconds_per_grid"]])
    return model.model.get_rope_index(ids, mm_token_type_ids=types, **grid)[0][:, 0].numpy()


def vision_embeddings(model, case):
    import torch
    values, grid = torch.from_numpy(case["pixel_values"]), torch.tensor([case["grid"]])
    features = model.model.get_image_features if case["kind"] == "image" else model.model.get_video_features
    return features(values, grid).pooler_output[0].float().numpy()


def prefill(model, case):
    """(hidden states after the final norm at the case's rows, logits there, the cache)."""
    out = model.model(**model_inputs(case), use_cache=True)
    hidden = out.last_hidden_state[0, case["rows"]]
    return hidden, model.lm_head(hidden), out.past_key_values


def greedy(model, case, logits, cache):
    """64 tokens by argmax through the cache, and the gap to the runner-up at each step."""
    import torch
    position, tokens, gaps = int(case["position_ids"].max()) + 1, [], []
    for step in range(GREEDY_STEPS):
        best = torch.topk(logits, 2)
        tokens.append(int(best.indices[0]))
        gaps.append(float(best.values[0] - best.values[1]))
        if step + 1 < GREEDY_STEPS:
            out = model.model(input_ids=torch.tensor([tokens[-1:]]), position_ids=torch.full((3, 1, 1), position + step),
                              past_key_values=cache, use_cache=True)
            logits, cache = model.lm_head(out.last_hidden_state[0, -1]), out.past_key_values
    return tokens, gaps


def relative(value, reference):
    return float(np.linalg.norm(value - reference) / max(np.linalg.norm(reference), 1e-30))


def spaced(count, most):
    """At most `most` of `count` indexes, evenly spaced, the last one included."""
    return sorted({int(round(i)) for i in np.linspace(count - 1, 0, min(count, most))})


def prepare(case_row, config, tokenizer, preprocess, rows):
    """The inputs of a case; positions come later, since they need the model."""
    name, kind, frames, height, width, fps = case_row
    temporal = config.vision_config.temporal_patch_size
    case = {"name": name, "kind": kind, "frames": frames, "height": height, "width": width, "fps": fps,
            "seconds_per_grid": temporal / fps if fps else 0.0}
    tokens = 0
    if kind != "text":
        case["pixels"] = make_pixels(name, frames, height, width)
        case["pixel_values"], case["grid"] = preprocess(kind, case["pixels"])
        tokens = int(np.prod(case["grid"])) // config.vision_config.spatial_merge_size**2
        most = max(4, VISION_BYTES // (4 * config.text_config.hidden_size))
        case["vision_rows"] = spaced(tokens, most)
    case["ids"], case["prompt"] = make_ids(config, tokenizer, name, kind, tokens)
    case["rows"] = spaced(len(case["ids"]), rows)
    return case


def reference_run(model, config, case):
    """Fills in what the float32 model computes."""
    case["position_ids"] = positions_of(model, config, case)
    if case["kind"] != "text":
        case["vision"] = vision_embeddings(model, case)
    hidden, logits, cache = prefill(model, case)
    case["hidden"], case["logits"] = hidden.numpy(), logits.numpy()
    if not np.isfinite(case["logits"]).all():
        raise Unusable(f"case {case['name']}: the logits are not finite")
    case["greedy"], case["gaps"] = greedy(model, case, logits[-1], cache)


def bfloat16_run(model, case):
    """Fills in how far transformers' own bfloat16 is from its float32."""
    if case["kind"] != "text":
        case["vision_error"] = relative(vision_embeddings(model, case), case["vision"])
    _, logits, _ = prefill(model, case)
    case["logits_error"] = relative(logits.float().numpy(), case["logits"])


def tensors_of(case, preprocess):
    name = case["name"]
    tensors = {"input_ids": np.int32(case["ids"]), "position_ids": case["position_ids"].astype(np.int32),
               "rows": np.int32(case["rows"]), "hidden": case["hidden"], "logits": case["logits"],
               "logits_bf16_error": np.float32([case["logits_error"]]),
               "greedy_tokens": np.int32(case["greedy"]), "greedy_gap": np.float32(case["gaps"])}
    if case["kind"] != "text":
        levels, table = to_levels(case["pixel_values"], preprocess.image.image_mean, preprocess.image.image_std)
        tensors |= {"pixels": case["pixels"], "pixel_levels": levels, "pixel_table": table, "grid_thw": np.int32(case["grid"]),
                    "vision_rows": np.int32(case["vision_rows"]), "vision_embeddings": case["vision"][case["vision_rows"]],
                    "vision_bf16_error": np.float32([case["vision_error"]])}
    return {f"{name}/{key}": np.ascontiguousarray(value) for key, value in tensors.items()}


def summary(case):
    text = f"{case['name']:6} {len(case['ids']):4} tokens"
    if case["kind"] != "text":
        text += f"  grid {'x'.join(map(str, case['grid']))}  bf16: vision {case['vision_error']:.1e},"
    else:
        text += "  bf16:"
    return text + f" logits {case['logits_error']:.1e}  smallest greedy gap {min(case['gaps']):.1e}"


def make_golden(folder, out, names, rows, threads, quantization):
    import torch
    import transformers
    from safetensors.numpy import save_file
    torch.set_num_threads(threads)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    config = transformers.AutoConfig.from_pretrained(folder, local_files_only=True)
    if config.model_type != "qwen2_5_vl":
        raise Unusable(f"config.json: model_type '{config.model_type}' is not qwen2_5_vl")
    tokenizer, preprocess = load_tokenizer(folder), Preprocessor(folder)
    cases = [prepare(row, config, tokenizer, preprocess, rows) for row in CASES if row[0] in names]
    with torch.no_grad():
        for dtype, run in ((torch.float32, lambda model, case: reference_run(model, config, case)), (torch.bfloat16, bfloat16_run)):
            model = load_model(folder, dtype)
            if dtype == torch.float32:
                quantize(model, quantization)
            for case in cases:
                run(model, case)
            del model
    described = ("name", "kind", "frames", "height", "width", "fps", "seconds_per_grid", "prompt")
    metadata = {"format": "vigil-golden-1", "model": folder.resolve().name, "quantization": quantization, "transformers": transformers.__version__,
                "torch": torch.__version__, "attention": "eager", "processor": preprocess.description,
                "cases": json.dumps([{key: case[key] for key in described} for case in cases], ensure_ascii=False)}
    tensors = {}
    for case in cases:
        tensors |= tensors_of(case, preprocess)
        print(summary(case))
    save_file(tensors, out, metadata)
    print(f"{out}: {out.stat().st_size} bytes")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("folder", type=Path, metavar="DIR", help="a Qwen2.5-VL folder as Hugging Face publishes it")
    parser.add_argument("out", type=Path, metavar="OUT", help="the golden file to write (.safetensors)")
    parser.add_argument("--threads", type=int, default=2, help="threads that torch may use (default 2)")
    parser.add_argument("--cases", default=",".join(row[0] for row in CASES), help="which cases (default %(default)s)")
    parser.add_argument("--rows", type=int, default=8, help="positions a case whose logits are stored (default 8)")
    parser.add_argument("--quantization", choices=("none", "fp8", "fp8-all"), default="none",
                        help="layers that multiply in E4M3 (default %(default)s)")
    arguments = parser.parse_args()
    names = [name for name in arguments.cases.split(",") if name]
    unknown = [name for name in names if name not in [row[0] for row in CASES]]
    if unknown or not names:
        parser.error(f"no case '{','.join(unknown)}'; there are {', '.join(row[0] for row in CASES)}")
    if arguments.rows < 1 or arguments.threads < 1:
        parser.error("--rows and --threads start at 1")
    if not (arguments.folder / "config.json").is_file():
        print(f"golden: {arguments.folder}: no config.json there", file=sys.stderr)
        return 1
    if not arguments.out.parent.is_dir():
        print(f"golden: {arguments.out.parent}: no such folder", file=sys.stderr)
        return 1
    warnings.filterwarnings("ignore")
    try:
        make_golden(arguments.folder, arguments.out, names, arguments.rows, arguments.threads, arguments.quantization)
    except Unusable as error:
        print(f"golden: {arguments.folder}: {error}", file=sys.stderr)
        return 1
    except ModuleNotFoundError:
        raise  # packages.py says it
    except Exception as error:  # whatever transformers raises for a folder that it cannot load
        print(f"golden: {arguments.folder}: {type(error).__name__}: {' '.join(str(error).split())}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
