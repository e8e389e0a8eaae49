"""How the camera sees: light, drift of the exposure, noise, weather, tremor, infrared."""

import numpy as np

from . import people
from .chance import pick, uniform


def optics(scene):
    """How the camera sees: light, drift, noise, weather, tremor, coding. Arrays have one number a frame."""
    rng, t, count = scene.rng, scene.times, len(scene.times)
    level = {"day": uniform(rng, .75, 1.2), "dusk": uniform(rng, .5, .8), "night": uniform(rng, .45, .75), "infrared": uniform(rng, .65, 1.1)}[scene.light]
    tint = {"day": (1, 1, 1), "dusk": (1.1, .92, .8), "night": (.85, .92, 1.1), "infrared": (1, 1, 1)}[scene.light]
    if scene.place == "room":
        level = max(level, .5)
    drift = 1 + uniform(rng, -.12, .12) * np.sin((t - scene.start) * uniform(rng, .02, .4) + uniform(rng, 0, 6)) + (uniform(rng, -.3, .3) * people.ease((t - scene.start - uniform(rng, 0, 10)) / uniform(rng, .5, 4)) if rng.random() < .2 else 0)
    grey = np.zeros(count)
    if scene.light == "infrared":
        grey[:] = 1
        if rng.random() < .25:
            grey = (t > scene.start + scene.duration * uniform(rng, .1, .9)).astype(float)
    gain = np.clip(level * drift, .1, 1.6)[:, None] * (np.array(tint) * (1 + rng.normal(0, .04, 3)))
    jitter = np.zeros((count, 2))
    if rng.random() < .2:
        a, b, c, d = rng.uniform(0, 6, 4)
        jitter = uniform(rng, .001, .008) * np.stack([np.sin(t * 7.1 + a) + np.sin(t * 2.3 + b), np.sin(t * 6.3 + c) + np.sin(t * 2.9 + d)], -1)
    lamps = np.zeros((3, 7), np.float32)  # u, v, radius, r, g, b of pools of light at night
    if scene.light == "night":
        for k in range(int(rng.integers(1, 4))):
            lamps[k] = (uniform(rng, 0, scene.camera.aspect), uniform(rng, .1, 1), uniform(rng, .3, .8), *(np.array([1, .85, .6]) * uniform(rng, .6, 1.8)), 0)
    dark = scene.light in ("night", "infrared")
    return dict(
        gain=gain.astype(np.float32), grey=grey.astype(np.float32), jitter=jitter.astype(np.float32), lamps=lamps,
        scalars=np.array([
            scene.camera.aspect, uniform(rng, 0, .05) if not dark else uniform(rng, .01, .06),  # noise of the sensor
            uniform(rng, .05, .4) if scene.weather == "rain" else 0, uniform(rng, .05, .4) if scene.weather == "snow" else 0,
            uniform(rng, 0, .25),  # vignette
            uniform(rng, .02, .16),  # contrast of the ground's texture
            pick(rng, (0, uniform(rng, .1, 1)), (.35, .65)),  # coding artefacts
            uniform(rng, 0, .08),  # black level
            uniform(rng, .8, 1.25),  # gamma
            uniform(rng, 0, 1) ** 2 * (1 if rng.random() < .5 else 0),  # blur of the lens
        ], np.float32),
    )
