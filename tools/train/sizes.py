"""The size to which the published preprocessor scales a frame."""

import math


def smart_resize(height, width, factor, min_pixels, max_pixels):
    """Multiples of `factor` near the frame's own sides, with the shape kept and the number of pixels within the limits."""
    tall, wide = round(height / factor) * factor, round(width / factor) * factor
    if tall * wide > max_pixels:
        shrink = math.sqrt(height * width / max_pixels)
        tall, wide = (max(factor, math.floor(side / shrink / factor) * factor) for side in (height, width))
    elif tall * wide < min_pixels:
        grow = math.sqrt(min_pixels / (height * width))
        tall, wide = (math.ceil(side * grow / factor) * factor for side in (height, width))
    return tall, wide
