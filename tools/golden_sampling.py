#!/usr/bin/env python3
"""Makes tests/golden/sampling.json: the distributions that transformers' logits processors leave of some logits.

    tools/golden_sampling.py OUT.json

A list of {"logits", "prompt", "temperature", "top_k", "top_p", "repetition_penalty", "probabilities"}; tokens that cannot be chosen have
probability 0. The processors and their order are those of `GenerationMixin._get_logits_processor`. Needs torch and transformers 5.17.
"""

import argparse
import json

import packages  # noqa: F401  says what is not installed
import numpy as np
import torch
from transformers import LogitsProcessorList, RepetitionPenaltyLogitsProcessor, TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper


def distribution(logits, prompt, temperature, top_k, top_p, repetition_penalty):
    processors = LogitsProcessorList()
    if repetition_penalty != 1.0:
        processors.append(RepetitionPenaltyLogitsProcessor(repetition_penalty))
    if temperature == 0.0:
        scores = processors(torch.tensor([prompt], dtype=torch.long), torch.tensor([logits]))
        return torch.nn.functional.one_hot(scores.argmax(-1), len(logits))[0].double().tolist()
    if temperature != 1.0:
        processors.append(TemperatureLogitsWarper(temperature))
    if top_k != 0:
        processors.append(TopKLogitsWarper(top_k))
    if top_p < 1.0:
        processors.append(TopPLogitsWarper(top_p))
    scores = processors(torch.tensor([prompt], dtype=torch.long), torch.tensor([logits]))
    return torch.softmax(scores.double(), -1)[0].tolist()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    out = parser.parse_args().out
    rng = np.random.default_rng(7)
    cases = []

    def add(logits, prompt, temperature=1.0, top_k=0, top_p=1.0, repetition_penalty=1.0):
        logits = np.asarray(logits, dtype=np.float32).tolist()
        options = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "repetition_penalty": repetition_penalty}
        cases.append({"logits": logits, "prompt": prompt} | options | {"probabilities": distribution(logits, prompt, **options)})

    for size in (1, 2, 7, 40):
        logits = rng.normal(0, 3, size)
        prompt = rng.integers(0, size, 5).tolist()
        add(logits, prompt, temperature=0.0)
        add(logits, prompt, temperature=0.0, repetition_penalty=1.7)
        add(logits, prompt)
        add(logits, prompt, temperature=0.3)
        add(logits, prompt, temperature=1e-6, top_k=50, repetition_penalty=1.05)
        for top_k in (1, 3, 1000):
            add(logits, prompt, temperature=1.5, top_k=top_k)
        for top_p in (0.0, 0.1, 0.5, 0.9, 0.999):
            add(logits, prompt, temperature=2.0, top_p=top_p)
        for penalty in (0.5, 1.3):
            add(logits, prompt, temperature=0.8, top_k=20, top_p=0.8, repetition_penalty=penalty)
    add([1, 3, 3, 2, 3, 0], [], top_k=2)                             # ties with the last one stay
    add([5, 5, 1, 1], [0, 0, 2], repetition_penalty=2.0)             # a repeated token counts once
    add([-1, -2, -3], [0], temperature=0.0, repetition_penalty=3.0)  # negative logits are multiplied
    with open(out, "w", encoding="utf-8") as file:
        json.dump(cases, file, separators=(",", ":"))


if __name__ == "__main__":
    main()
