"""Platt calibration: the slope and the bias that make a model's log odds of "Yes" agree with how often "Yes" is right (engine/model/files/calibration.h applies them)."""

import json
from pathlib import Path

import numpy as np

FILE = "calibration.json"
# The program tells probabilities in float32: nearer to 0 or 1 than this nothing is told apart.
NEAREST = 1e-7


def of_model(folder):
    """(slope, bias) of a model's folder; (1, 0) if it has none."""
    path = Path(folder) / FILE
    if not path.exists():
        return 1.0, 0.0
    yes = json.loads(path.read_text())["yes"]
    return float(yes["slope"]), float(yes["bias"])


def log_odds(probability):
    p = np.clip(np.asarray(probability, float), NEAREST, 1 - NEAREST)
    return np.log(p) - np.log1p(-p)


def probability(z, slope, bias):
    return np.exp(-np.logaddexp(0, -(slope * np.asarray(z, float) + bias)))


def own_log_odds(records):
    """What the model itself said: each record's own calibration (tools/evaluate.py keeps it) is undone."""
    slope, bias = np.array([record.get("calibration", (1, 0)) for record in records], float).T
    return (log_odds([record["probability_yes"] for record in records]) - bias) / slope


def loss(z, truth, slope, bias):
    """Mean negative log likelihood of the truth."""
    y = slope * z + bias
    return float(np.mean(np.logaddexp(0, y) - truth * y))


def fit(z, truth, weight=None):
    """(slope, bias) of the greatest likelihood, by Newton's method. Raises ValueError where there is none."""
    z, truth = np.asarray(z, float), np.asarray(truth, float)
    weight = np.ones(len(z)) if weight is None else np.asarray(weight, float)
    features = np.stack([z, np.ones(len(z))], 1)

    def objective(parameters):
        y = features @ parameters
        return np.sum(weight * (np.logaddexp(0, y) - truth * y))

    at = np.array([1.0, 0.0])
    value = objective(at)
    for _ in range(100):
        p = probability(features @ at, 1, 0)
        gradient = features.T @ (weight * (p - truth))
        hessian = features.T @ (features * (weight * p * (1 - p))[:, None])
        if np.linalg.cond(hessian) > 1e12:
            break
        step = np.linalg.solve(hessian, gradient)
        while (following := objective(at - step)) > value + 1e-12 * abs(value):
            step /= 2
        at, value = at - step, following
        if np.abs(step).max() < 1e-10:
            if at[0] <= 0:
                raise ValueError(f"the answers are rather wrong than right: a slope of {at[0]:.3g} fits best")
            return float(at[0]), float(at[1])
    raise ValueError("no slope and bias fit best: are there right and wrong answers of both kinds?")


def spread(z, truth, groups, draws=1000, seed=1):
    """(draws, 2) slopes and biases, each fitted on as many groups (scenes), drawn with repetition."""
    names, group = np.unique(np.asarray(groups), return_inverse=True)
    rng, fits = np.random.default_rng(seed), []
    for _ in range(draws):
        weight = np.bincount(rng.integers(0, len(names), len(names)), minlength=len(names))[group]
        try:
            fits.append(fit(z, truth, weight))
        except ValueError:
            continue
    return np.array(fits).reshape(-1, 2)
