"""`render.paint` as one Triton kernel: a program draws all primitives of a frame over one run of pixels, and passes over those that cannot touch it."""

import torch
import triton
import triton.language as tl

BLOCK = 1024


@triton.jit
def _paint(image, primitives, place, count, height, width, BLOCK: tl.constexpr):
    frame = tl.program_id(0).to(tl.int64)
    pixel = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    size = height * width
    inside = pixel < size
    aspect, shift_u, shift_v = tl.load(place + frame * 3), tl.load(place + frame * 3 + 1), tl.load(place + frame * 3 + 2)
    u = ((pixel % width).to(tl.float32) + 0.5) / width * aspect - shift_u
    v = ((pixel // width).to(tl.float32) + 0.5) / height - shift_v
    top = (tl.program_id(1) * BLOCK // width).to(tl.float32) / height - shift_v
    bottom = ((tl.program_id(1) * BLOCK + BLOCK) // width + 1).to(tl.float32) / height - shift_v
    at = image + frame * 3 * size + pixel
    red, green, blue = tl.load(at, inside, 0.0), tl.load(at + size, inside, 0.0), tl.load(at + 2 * size, inside, 0.0)
    for index in range(0, count):
        p = primitives + (frame * count + index) * 20
        alpha = tl.load(p + 16)
        kind = tl.load(p)
        a, b, c, d, e, f = tl.load(p + 1), tl.load(p + 2), tl.load(p + 3), tl.load(p + 4), tl.load(p + 5), tl.load(p + 6)
        soft = tl.maximum(tl.load(p + 17), 1e-4)
        if kind > 0.5:
            reaches = alpha != 0.0
        else:
            reaches = (alpha != 0.0) & (tl.maximum(b + c, e + f) + soft > top) & (tl.minimum(b - c, e - f) - soft < bottom)
        if reaches:
            strength, side_of = tl.load(p + 18), tl.load(p + 19)
            if kind > 0.5:
                g, h, i, j, k, m = tl.load(p + 7), tl.load(p + 8), tl.load(p + 9), tl.load(p + 10), tl.load(p + 11), tl.load(p + 12)
                signed = tl.maximum(tl.maximum(a * u + b * v + c, d * u + e * v + f), tl.maximum(g * u + h * v + i, j * u + k * v + m))
                shade = 1.0 + strength * (v - side_of)
            else:
                du, dv = d - a, e - b
                along = ((u - a) * du + (v - b) * dv) / (du * du + dv * dv + 1e-9)
                along = tl.minimum(tl.maximum(along, 0.0), 1.0)
                radius = c + (f - c) * along
                off_u, off_v = u - a - du * along, v - b - dv * along
                distance = tl.sqrt(off_u * off_u + off_v * off_v + 1e-12)
                side = (off_u * side_of - off_v * 0.6) / (radius + 1e-6)
                side = tl.minimum(tl.maximum(side, -1.0), 1.0)
                rim = tl.minimum(tl.maximum(distance / (radius + 1e-6), 0.0), 1.0)
                shade = 1.0 + strength * (0.35 * side - 0.25 * rim * rim)
                signed = distance - radius
            cover = tl.minimum(tl.maximum(0.5 - signed / soft, 0.0), 1.0)
            cover = cover * cover * (3.0 - 2.0 * cover) * tl.abs(alpha)
            keep = tl.where(alpha >= 0.0, 1.0 - cover, 1.0)
            lit = shade * cover
            red = red * keep + tl.load(p + 13) * lit
            green = green * keep + tl.load(p + 14) * lit
            blue = blue * keep + tl.load(p + 15) * lit
    tl.store(at, red, inside)
    tl.store(at + size, green, inside)
    tl.store(at + 2 * size, blue, inside)


def paint(image, primitives, place):
    """As `render.paint`, in place on image (N, 3, H, W); place (N, 3): aspect and the two shifts of the picture."""
    n, _, height, width = image.shape
    image, primitives, place = image.contiguous(), primitives.float().contiguous(), place.float().contiguous()
    _paint[(n, triton.cdiv(height * width, BLOCK))](image, primitives, place, primitives.shape[1], height, width, BLOCK=BLOCK)
    return image
