"""Draws from a generator, and the colours that things have."""

import numpy as np

COLOURS = {
    "red": (.72, .08, .08), "blue": (.1, .2, .65), "green": (.1, .45, .15), "yellow": (.85, .72, .1), "white": (.9, .9, .9), "black": (.04, .04, .05), "grey": (.45, .45, .47),
    "orange": (.9, .42, .05), "purple": (.4, .12, .5), "pink": (.9, .45, .6), "brown": (.35, .2, .1), "teal": (.2, .5, .52),
}
CLOTHES = ("red", "blue", "green", "yellow", "white", "black", "grey", "orange", "purple", "pink", "brown", "black", "grey")
PAINTS = ("red", "blue", "green", "yellow", "white", "black", "grey", "white", "black", "grey", "teal", "orange")
ZONE_COLOURS = ("yellow", "red", "green", "blue", "white", "orange")


def pick(rng, items, weights=None):
    if weights is None:
        return items[int(rng.integers(len(items)))]
    weights = np.asarray(weights, float)
    return items[int(rng.choice(len(items), p=weights / weights.sum()))]


def uniform(rng, low, high):
    return float(rng.uniform(low, high))


def tinted(rng, name, spread=.1):
    return np.clip(np.array(COLOURS[name]) * uniform(rng, .8, 1.15) + rng.normal(0, spread * .3, 3), .01, 1).astype(np.float32)


def apart(rng, names, scene, least=.45, tries=6):
    """One of the colours `names`, most likely one that differs from the scene's ground, in brightness where the camera sees no colours."""
    weight = np.array([.9, 1.77, .33]) if scene.light == "infrared" else np.ones(3)
    for _ in range(tries):
        name = pick(rng, names)
        difference = (np.array(COLOURS[name]) - scene.ground_colour) * weight
        if (abs(difference.sum()) if scene.light == "infrared" else np.abs(difference).sum()) > least:
            break
    return name


def unit(angle):
    return np.array([np.sin(angle), np.cos(angle)])


def unit_rows(angle):
    return np.stack([np.sin(angle), np.cos(angle)], axis=-1)


def shade_word(colour):
    return "light" if sum(COLOURS[colour]) > 1.35 else "dark"
