"""Where things are in a scene's frames, for the part of the training that teaches the vision tower to see them (see train/sight.py). No answer depends on it."""

from dataclasses import dataclass

import numpy as np

from .zones import inside


@dataclass
class Marks:
    """Places are (u, v) of geometry.py; T frames, P persons, B bags."""

    aspect: float
    zone: np.ndarray  # (N, 2) corners, or (0, 2) without a zone
    hips: np.ndarray  # (P, T, 2)
    feet: np.ndarray  # (P, T, 2)
    seen: np.ndarray  # (P, T) bool
    head: np.ndarray  # (P, T) height of the head as a share of the person's: .93 upright, .08 lying
    margin: np.ndarray  # (P, T) how far the feet are inside the zone; below zero outside
    bags: np.ndarray  # (B, T, 2)
    standing: np.ndarray  # (B, T) bool: the bag is on the ground and seen


def marks(scene, persons, zone):
    """The Marks of a scene whose things have been judged (judge.py hides what cars hide)."""
    count = len(scene.times)
    bags = [p["bag"] for p in persons if p["bag"] is not None]

    def table(values, *shape):
        return np.stack(values) if values else np.zeros((0, *shape))

    return Marks(
        scene.camera.aspect, zone if zone is not None else np.zeros((0, 2)), table([p["place"] for p in persons], count, 2), table([p["steps"] for p in persons], count, 2),
        table([p["thing"].seen for p in persons], count).astype(bool), table([p["head"] for p in persons], count),
        table([inside(zone, p["steps"]) if zone is not None else np.full(count, -1.0) for p in persons], count),
        table([b["place"] for b in bags], count, 2), table([b["thing"].seen & b["on_ground"] for b in bags], count).astype(bool),
    )
