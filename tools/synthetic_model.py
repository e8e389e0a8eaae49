#!/usr/bin/env python3
"""Writes a Qwen2.5-VL folder with weights from a fixed seed, in the format that Hugging Face publishes.

    tools/synthetic_model.py NAME OUT      writes the configuration NAME to the folder OUT
    tools/synthetic_model.py --list        names the configurations

Parity tests need checkpoints of shapes that nobody publishes, and of shapes too large to keep in a repository. The weights come from a
counter-based hash of (seed, tensor name, element index), so every machine and every numpy writes the same bytes. Needs numpy alone.
"""

import argparse
import json
import math
import sys
from pathlib import Path

import packages  # noqa: F401  says what is not installed
import numpy as np

SEED = 20250219
# A shard's tensors are hashed and written in pieces of this many 64-bit words, so that the work stays in the cache.
CHUNK_WORDS = 1 << 16


# --- values -----------------------------------------------------------------------------------------------------------------------------


def name_seed(name):
    """FNV-1a of the name, folded with the global seed and finalised: the starting counter of a tensor."""
    value = 0xCBF29CE484222325
    for byte in f"{SEED}/{name}".encode():
        value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    value = ((value ^ (value >> 33)) * 0xFF51AFD7ED558CCD) & 0xFFFFFFFFFFFFFFFF
    return value ^ (value >> 33)


GOLDEN_GAMMA = np.uint64(0x9E3779B97F4A7C15)
RAMP = np.arange(1, CHUNK_WORDS + 1, dtype=np.uint64) * GOLDEN_GAMMA


def splitmix64(seed, first_word, words):
    """Words [first_word, first_word + words) of the splitmix64 sequence that starts at `seed`; words <= CHUNK_WORDS."""
    start = np.uint64((seed + first_word * int(GOLDEN_GAMMA)) & 0xFFFFFFFFFFFFFFFF)
    z = RAMP[:words] + start
    z ^= z >> np.uint64(30)
    z *= np.uint64(0xBF58476D1CE4E5B9)
    z ^= z >> np.uint64(27)
    z *= np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return z


def float32_to_bfloat16_bits(values):
    """Rounds to nearest, ties to even; the values are finite."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype("<u2")


def value_table(dtype, mean, deviation):
    """The 65536 values that an element may take: uniform around `mean`, in the bytes of `dtype`."""
    steps = (np.arange(65536, dtype=np.float64) - 32767.5) / 32768.0
    values = (mean + deviation * math.sqrt(3.0) * steps).astype(np.float32)
    if dtype == "BF16":
        return float32_to_bfloat16_bits(values)
    return values.astype("<f2" if dtype == "F16" else "<f4")


def write_tensor(out, name, shape, dtype, mean, deviation):
    """Each 64-bit word of the hash gives four elements, the low 16 bits first."""
    table = value_table(dtype, mean, deviation)
    seed = name_seed(name)
    elements = math.prod(shape)
    for first in range(0, elements, 4 * CHUNK_WORDS):
        count = min(4 * CHUNK_WORDS, elements - first)
        words = splitmix64(seed, first // 4, (count + 3) // 4)
        out.write(table[words.astype("<u8", copy=False).view("<u2")[:count]].data)


# --- tensors ----------------------------------------------------------------------------------------------------------------------------


def linear(name, rows, columns, bias=False, gain=1.0):
    """Unit variance in, about gain^2 out; biases large enough that a forgotten one shows."""
    yield f"{name}.weight", (rows, columns), 0.0, gain / math.sqrt(columns)
    if bias:
        yield f"{name}.bias", (rows,), 0.0, 0.25


def norm(name, width):
    yield f"{name}.weight", (width,), 1.0, 0.15


def vision_tensors(vision, out_hidden):
    width, merged = vision["hidden_size"], vision["hidden_size"] * vision["spatial_merge_size"] ** 2
    patch = (width, vision["in_chans"], vision["temporal_patch_size"], vision["patch_size"], vision["patch_size"])
    yield "visual.patch_embed.proj.weight", patch, 0.0, 1.0 / math.sqrt(math.prod(patch[1:]))
    for index in range(vision["depth"]):
        block = f"visual.blocks.{index}"
        yield from norm(f"{block}.norm1", width)
        yield from norm(f"{block}.norm2", width)
        yield from linear(f"{block}.attn.qkv", 3 * width, width, bias=True, gain=1.4)
        yield from linear(f"{block}.attn.proj", width, width, bias=True)
        yield from linear(f"{block}.mlp.gate_proj", vision["intermediate_size"], width, bias=True)
        yield from linear(f"{block}.mlp.up_proj", vision["intermediate_size"], width, bias=True)
        yield from linear(f"{block}.mlp.down_proj", width, vision["intermediate_size"], bias=True)
    yield from norm("visual.merger.ln_q", width)
    yield from linear("visual.merger.mlp.0", merged, merged, bias=True)
    yield from linear("visual.merger.mlp.2", out_hidden, merged, bias=True)


def text_tensors(text):
    width, head = text["hidden_size"], text["hidden_size"] // text["num_attention_heads"]
    kv = text["num_key_value_heads"] * head
    yield "model.embed_tokens.weight", (text["vocab_size"], width), 0.0, text["embedding_deviation"]
    for index in range(text["num_hidden_layers"]):
        layer = f"model.layers.{index}"
        yield from norm(f"{layer}.input_layernorm", width)
        yield from norm(f"{layer}.post_attention_layernorm", width)
        # A little sharper than unit scores, so that positions and single keys count.
        for part, rows, gain in (("q_proj", width, 1.2), ("k_proj", kv, 1.2), ("v_proj", kv, 1.0)):
            yield from linear(f"{layer}.self_attn.{part}", rows, width, bias=True, gain=gain)
        yield from linear(f"{layer}.self_attn.o_proj", width, width)
        yield from linear(f"{layer}.mlp.gate_proj", text["intermediate_size"], width)
        yield from linear(f"{layer}.mlp.up_proj", text["intermediate_size"], width)
        yield from linear(f"{layer}.mlp.down_proj", width, text["intermediate_size"])
    yield from norm("model.norm", width)
    if not text["tie_word_embeddings"]:
        yield from linear("lm_head", text["vocab_size"], width, gain=3.0)


# --- configurations ---------------------------------------------------------------------------------------------------------------------

SPECIAL_TOKENS = ("bos", "im_start", "im_end", "vision_start", "vision_end", "image", "video")


def configuration(about, text, vision, dtype, pixels, shards=1, layout=4):
    """`pixels`: least and most pixels of a resized picture. `layout`: the transformers version whose names and config keys are used.

    The small configurations have a small `rope_theta`: with the published one the frequencies of the width axis hardly turn within a
    picture, and logits would not show a width that is wrong."""
    return {"about": about, "text": text, "vision": vision, "dtype": dtype, "pixels": pixels, "shards": shards, "layout": layout}


CONFIGURATIONS = {
    "tiny": configuration(
        "small and tied, bf16: the quick one",
        text=dict(hidden_size=64, intermediate_size=160, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
                  vocab_size=512, rms_norm_eps=1e-6, rope_theta=30.0, mrope_section=[2, 3, 3], tie_word_embeddings=True,
                  embedding_deviation=0.3),
        vision=dict(depth=2, hidden_size=64, intermediate_size=128, num_heads=4, patch_size=14, spatial_merge_size=2,
                    temporal_patch_size=2, window_size=56, fullatt_block_indexes=[1], tokens_per_second=2),
        dtype="BF16", pixels=(56 * 56, 28 * 28 * 16)),
    "odd": configuration(
        "untied head, 7:1 grouped heads, sizes that are multiples of nothing, f32",
        text=dict(hidden_size=140, intermediate_size=331, num_hidden_layers=3, num_attention_heads=7, num_key_value_heads=1,
                  vocab_size=1009, rms_norm_eps=1e-5, rope_theta=50.0, mrope_section=[2, 5, 3], tie_word_embeddings=False,
                  embedding_deviation=0.7),
        vision=dict(depth=3, hidden_size=120, intermediate_size=173, num_heads=6, patch_size=14, spatial_merge_size=2,
                    temporal_patch_size=2, window_size=56, fullatt_block_indexes=[1], tokens_per_second=4),
        dtype="F32", pixels=(56 * 56, 28 * 28 * 40)),
    "half": configuration(
        "f16, 3:1 grouped heads, merger of 3x3 patches of 12 pixels, the names of transformers 5",
        text=dict(hidden_size=240, intermediate_size=500, num_hidden_layers=2, num_attention_heads=6, num_key_value_heads=2,
                  vocab_size=777, rms_norm_eps=1e-6, rope_theta=100.0, mrope_section=[4, 9, 7], tie_word_embeddings=False,
                  embedding_deviation=0.7),
        vision=dict(depth=4, hidden_size=112, intermediate_size=251, num_heads=4, patch_size=12, spatial_merge_size=3,
                    temporal_patch_size=2, window_size=72, fullatt_block_indexes=[0, 3], tokens_per_second=3),
        dtype="F16", pixels=(72 * 72, 36 * 36 * 24), layout=5),
    "wide": configuration(
        "the widths of Qwen2.5-VL-7B, layers and vocabulary cut, bf16 in three shards",
        text=dict(hidden_size=3584, intermediate_size=18944, num_hidden_layers=1, num_attention_heads=28, num_key_value_heads=4,
                  vocab_size=4096, rms_norm_eps=1e-6, rope_theta=1e6, mrope_section=[16, 24, 24], tie_word_embeddings=False,
                  embedding_deviation=0.7),
        vision=dict(depth=2, hidden_size=1280, intermediate_size=3420, num_heads=16, patch_size=14, spatial_merge_size=2,
                    temporal_patch_size=2, window_size=112, fullatt_block_indexes=[1], tokens_per_second=2),
        dtype="BF16", pixels=(56 * 56, 28 * 28 * 32), shards=3),
}

TORCH_DTYPES = {"F32": "float32", "F16": "float16", "BF16": "bfloat16"}


def special_ids(text):
    """The special tokens stand a little before the end of the vocabulary, so that ordinary ids lie on both sides."""
    first = text["vocab_size"] - len(SPECIAL_TOKENS) - 5
    return {token: first + offset for offset, token in enumerate(SPECIAL_TOKENS)}


def config_json(config):
    text, vision, ids = dict(config["text"]), dict(config["vision"]), special_ids(config["text"])
    del text["embedding_deviation"]
    rope_theta, sections, tied = text.pop("rope_theta"), text.pop("mrope_section"), text.pop("tie_word_embeddings")
    text |= {"hidden_act": "silu", "max_position_embeddings": 128000, "attention_dropout": 0.0, "use_cache": True,
             "use_sliding_window": False, "sliding_window": 32768, "max_window_layers": text["num_hidden_layers"],
             "initializer_range": 0.02, "bos_token_id": ids["bos"], "eos_token_id": ids["im_end"]}
    vision |= {"hidden_act": "silu", "in_chans": 3, "out_hidden_size": text["hidden_size"]}
    top = {"architectures": ["Qwen2_5_VLForConditionalGeneration"], "model_type": "qwen2_5_vl",
           "image_token_id": ids["image"], "video_token_id": ids["video"],
           "vision_start_token_id": ids["vision_start"], "vision_end_token_id": ids["vision_end"]}
    dtype = TORCH_DTYPES[config["dtype"]]
    if config["layout"] == 5:
        vision["in_channels"] = vision.pop("in_chans")
        text |= {"model_type": "qwen2_5_vl_text",
                 "rope_parameters": {"rope_type": "default", "mrope_section": sections, "rope_theta": rope_theta}}
        vision |= {"model_type": "qwen2_5_vl_vision"}
        return top | {"dtype": dtype, "text_config": text, "vision_config": vision, "tie_word_embeddings": tied}
    text |= {"rope_theta": rope_theta, "rope_scaling": {"type": "mrope", "mrope_section": sections}}
    vision |= {"model_type": "qwen2_5_vl", "in_channels": 3, "spatial_patch_size": vision["patch_size"]}
    return top | text | {"torch_dtype": dtype, "tie_word_embeddings": tied, "vision_config": vision}


def preprocessor_json(config):
    vision = config["vision"]
    return {"min_pixels": config["pixels"][0], "max_pixels": config["pixels"][1], "patch_size": vision["patch_size"],
            "temporal_patch_size": vision["temporal_patch_size"], "merge_size": vision["spatial_merge_size"],
            "image_mean": [0.48145466, 0.4578275, 0.40821073], "image_std": [0.26862954, 0.26130258, 0.27577711],
            "image_processor_type": "Qwen2VLImageProcessor", "processor_class": "Qwen2_5_VLProcessor"}


def generation_json(config):
    ids = special_ids(config["text"])
    return {"bos_token_id": ids["bos"], "pad_token_id": ids["bos"], "do_sample": True, "eos_token_id": [ids["im_end"], ids["bos"]],
            "repetition_penalty": 1.05, "temperature": 1e-06}


def tensors_of(config):
    """(name in the file, shape, mean, deviation) of every tensor; the values belong to the name of layout 4."""
    vision = config["vision"] | {"in_chans": 3}
    yield from vision_tensors(vision, config["text"]["hidden_size"])
    yield from text_tensors(config["text"])


def published_name(name, layout):
    if layout == 4 or name.startswith("lm_head"):
        return name
    return "model." + name if name.startswith("visual.") else "model.language_model." + name.removeprefix("model.")


def write_shard(path, tensors, config):
    header, offset, width = {"__metadata__": {"format": "pt"}}, 0, 4 if config["dtype"] == "F32" else 2
    for name, shape, _, _ in tensors:
        size = math.prod(shape) * width
        header[published_name(name, config["layout"])] = {
            "dtype": config["dtype"], "shape": list(shape), "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as out:
        out.write(len(text).to_bytes(8, "little") + text)
        for name, shape, mean, deviation in tensors:
            write_tensor(out, name, shape, config["dtype"], mean, deviation)
    return offset


def split(tensors, shards):
    """Consecutive runs of tensors of about equal size."""
    total, runs, used = sum(math.prod(shape) for _, shape, _, _ in tensors), [[] for _ in range(shards)], 0
    for tensor in tensors:
        runs[min(shards - 1, used * shards // total)].append(tensor)
        used += math.prod(tensor[1])
    return runs


def write_model(config, folder):
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in (("config.json", config_json(config)), ("preprocessor_config.json", preprocessor_json(config)),
                          ("generation_config.json", generation_json(config))):
        (folder / name).write_text(json.dumps(content, indent=2) + "\n")
    tensors = list(tensors_of(config))
    if config["shards"] == 1:
        return write_shard(folder / "model.safetensors", tensors, config)
    index, total = {}, 0
    for number, run in enumerate(split(tensors, config["shards"]), start=1):
        file = f"model-{number:05d}-of-{config['shards']:05d}.safetensors"
        total += write_shard(folder / file, run, config)
        index |= {published_name(name, config["layout"]): file for name, _, _, _ in run}
    content = {"metadata": {"total_size": total}, "weight_map": dict(sorted(index.items()))}
    (folder / "model.safetensors.index.json").write_text(json.dumps(content, indent=2) + "\n")
    return total


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("name", nargs="?", help="one of the configurations that --list names")
    parser.add_argument("out", nargs="?", type=Path, help="the folder to write")
    parser.add_argument("--list", action="store_true", help="name the configurations and exit")
    arguments = parser.parse_args()
    if arguments.list:
        for name, config in CONFIGURATIONS.items():
            print(f"{name:6} {config['about']}")
        return 0
    if arguments.name is None or arguments.out is None:
        parser.error("NAME and OUT are needed, or --list")
    if arguments.name not in CONFIGURATIONS:
        parser.error(f"no configuration '{arguments.name}'; there are {', '.join(CONFIGURATIONS)}")
    try:
        size = write_model(CONFIGURATIONS[arguments.name], arguments.out)
    except OSError as error:
        print(f"synthetic_model: {error.filename or arguments.out}: {error.strerror}", file=sys.stderr)
        return 1
    print(f"{arguments.out}: {arguments.name}, {size} bytes of weights")
    return 0


if __name__ == "__main__":
    sys.exit(main())
