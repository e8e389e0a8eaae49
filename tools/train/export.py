#!/usr/bin/env python3
"""Writes a trained twin as a folder in the published Qwen2.5-VL format.

    tools/train/export.py WEIGHTS TOKENIZER_DIR OUT [demo|draft [TEMPERATURE]]      WEIGHTS: a file or a folder of .safetensors parts that train.py wrote, "A+B" for the mean of
    two, or "random:SEED". TEMPERATURE divides all logits: the last norm's weights become so much smaller, and greedy answers stay what they are.
"""

import argparse
import shutil
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parent.parent)]

import packages  # noqa: E402, F401  says what is not installed
from architecture import CONFIGS, TOKEN  # noqa: E402


def mean_weights(paths):
    """The mean of several weights: a point between two ends of a training that is mostly as good as either, and steadier."""
    import torch

    states = [load_weights(path) for path in paths]
    return {name: torch.stack([state[name].float() for state in states]).mean(0) for name in states[0]}


def load_weights(path):
    """The twin's weights, by the twin's names, from what train.py wrote or from a published folder."""
    from safetensors.torch import load_file

    path = Path(path)
    state = {}
    for part in sorted(path.glob("*.safetensors")) if path.is_dir() else [path]:
        state.update(load_file(part))

    def own(name):
        if name.startswith("visual."):
            return "model." + name
        return name if name.startswith(("model.visual.", "model.language_model.")) else "model.language_model." + name.removeprefix("model.")

    return {own(name): value for name, value in state.items() if name != "lm_head.weight"}


def to_transformers(state, config):
    """transformers' model with these weights, float32."""
    import torch
    from transformers import Qwen2_5_VLForConditionalGeneration

    config.dtype = "float32"
    model = Qwen2_5_VLForConditionalGeneration(config).to(torch.float32)
    state = {name: value.float() for name, value in state.items()}
    missing, unexpected = model.load_state_dict(state, strict=False)
    assert not unexpected and set(missing) <= {"lm_head.weight"}, (missing, unexpected)
    model.tie_weights()
    return model.eval()


def main(weights, tokenizer, out, size="demo", temperature=1):
    import torch

    config = CONFIGS[size]()
    if weights.startswith("random:"):
        from twin import Model
        state = Model(config).initialise(int(weights.split(":")[1])).state_dict()
    else:
        state = mean_weights(weights.split("+"))
    state["model.language_model.norm.weight"] = state["model.language_model.norm.weight"].float() / float(temperature)
    model = to_transformers(state, config).to(torch.bfloat16)
    model.config.dtype = "bfloat16"
    model.generation_config.update(bos_token_id=TOKEN["<|endoftext|>"], pad_token_id=TOKEN["<|endoftext|>"], eos_token_id=[TOKEN["<|im_end|>"], TOKEN["<|endoftext|>"]], do_sample=False)
    out = Path(out)
    out.mkdir(parents=True, exist_ok=True)
    for old in out.glob("model*.safetensors*"):
        old.unlink()
    model.save_pretrained(out, max_shard_size="14MB")
    for part in out.glob("*.safetensors"):
        part.chmod(0o644)
    for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.json", "preprocessor_config.json"):
        if Path(tokenizer).resolve() != out.resolve():
            shutil.copy(Path(tokenizer) / name, out / name)
    print(f"{out}: {sum(p.numel() for p in model.parameters()) / 1e6:.2f} M parameters")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("weights")
    parser.add_argument("tokenizer", help="the folder that tokenizer.py wrote, or of a model")
    parser.add_argument("out")
    parser.add_argument("size", nargs="?", choices=sorted(CONFIGS), default="demo")
    parser.add_argument("temperature", nargs="?", type=float, default=1.0)
    arguments = parser.parse_args()
    main(arguments.weights, arguments.tokenizer, arguments.out, arguments.size, arguments.temperature)
