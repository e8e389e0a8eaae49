"""Draws stories with torch: primitives over a stage or a photograph, then light, weather, noise and the traces of video coding.

Everything is a function of its arguments: noise comes from a hash of (seed, frame, pixel), so a scene looks the same alone, in any batch, and on any device.
Plain torch operations, but for the primitives on a GPU (paint_gpu.py).
"""

import numpy as np
import torch
import torch.nn.functional as F


def _hash(x):
    """A 32-bit mix of int32 numbers."""
    x = (x ^ (x >> 16 & 0xFFFF)) * 0x45D9F3B
    x = (x ^ (x >> 15 & 0x1FFFF)) * 0x119DE1F3
    return x ^ (x >> 16 & 0xFFFF)


def uniform_noise(seed, height, width, device):
    """(N, H, W) numbers in [0, 1) for seeds (N,) int32."""
    pixel = torch.arange(height * width, dtype=torch.int32, device=device).view(1, height, width)
    mixed = _hash(pixel * 0x9E3779B + seed.view(-1, 1, 1) * 0x5851F42)
    return (mixed >> 8 & 0xFFFF).float() / 65536


def normal_noise(seed, height, width, device):
    """About normal: the four bytes of two hashes, added."""
    pixel = torch.arange(height * width, dtype=torch.int32, device=device).view(1, height, width)
    mixed = _hash(pixel * 0x9E3779B + seed.view(-1, 1, 1) * 0x5851F42)
    total = (mixed & 0xFF) + (mixed >> 8 & 0xFF) + (mixed >> 16 & 0xFF) + (mixed >> 24 & 0xFF)
    return (total.float() - 510) / 147.8


def paint(image, primitives, u, v):
    """Draws primitives (N, P, 20) in order over image (N, 3, H, W); u (N, 1, W) and v (N, H, 1) are the pixels' places."""
    image = image.clone()
    for index in range(primitives.shape[1]):
        row = primitives[:, index]
        if not row[:, 16].any():
            continue
        part = reach(row, u, v)
        if part is not None:
            image[:, :, part[0], part[1]] = paint_one(image[:, :, part[0], part[1]], row, u[:, :, part[1]], v[:, part[0]])
    return image


def reach(row, u, v):
    """The rows and columns of the picture that primitives (N, 20) of one place in the order can touch in any of the N frames; None: nothing."""
    shown = row[:, 16] != 0
    p, u, v = row[shown].unbind(1), u[shown], v[shown]
    corner_u, corner_v = [], []
    for k in range(4):
        # Where two neighbouring sides of a quad meet; where they hardly do, the whole picture is taken in.
        a, b = 1 + 3 * k, 1 + 3 * ((k + 1) % 4)
        cross = p[a] * p[b + 1] - p[a + 1] * p[b]
        sharp = cross.abs() < 0.15
        corner_u.append(((p[a + 1] * p[b + 2] - p[a + 2] * p[b + 1]) / cross).nan_to_num())
        corner_v.append(((p[a + 2] * p[b] - p[a] * p[b + 2]) / cross).nan_to_num())
        for corners in (corner_u, corner_v):
            corners += [torch.where(sharp, -9.0, corners[-1]), torch.where(sharp, 9.0, corners[-1])]
    quad = p[0] > 0.5
    wide = torch.where(quad, 8 * p[17], torch.maximum(p[3], p[6]) + p[17])

    def span(corners, first, second, places):
        low = torch.where(quad, torch.stack(corners).amin(0), torch.minimum(first, second)) - wide
        high = torch.where(quad, torch.stack(corners).amax(0), torch.maximum(first, second)) + wide
        touched = ((places >= low[:, None]) & (places <= high[:, None])).any(0).nonzero()
        return slice(int(touched[0]), int(touched[-1]) + 1) if len(touched) else None

    down, across = span(corner_v, p[2], p[5], v[..., 0]), span(corner_u, p[1], p[4], u[:, 0])
    return (down, across) if down and across else None


def paint_one(image, row, u, v):
    """One primitive a frame, row (N, 20), over image (N, 3, h, w)."""
    red, green, blue = image.unbind(1)
    p = row[:, :, None, None].unbind(1)
    # Capsule: distance to the segment, less the radius there.
    du, dv = p[4] - p[1], p[5] - p[2]
    along = (((u - p[1]) * du + (v - p[2]) * dv) / (du * du + dv * dv + 1e-9)).clamp(0, 1)
    radius = p[3] + (p[6] - p[3]) * along
    off_u, off_v = u - p[1] - du * along, v - p[2] - dv * along
    distance = torch.sqrt(off_u * off_u + off_v * off_v + 1e-12)
    side = (off_u * p[19] - off_v * 0.6) / (radius + 1e-6)
    shade_capsule = 1 + p[18] * (0.35 * side.clamp(-1, 1) - 0.25 * (distance / (radius + 1e-6)).clamp(0, 1) ** 2)
    # Quad: the farthest of its half-planes.
    plane = torch.maximum(torch.maximum(p[1] * u + p[2] * v + p[3], p[4] * u + p[5] * v + p[6]), torch.maximum(p[7] * u + p[8] * v + p[9], p[10] * u + p[11] * v + p[12]))
    quad = p[0] > 0.5
    signed = torch.where(quad, plane, distance - radius)
    shade = torch.where(quad, 1 + p[18] * (v - p[19]), shade_capsule)
    cover = (0.5 - signed / p[17].clamp_min(1e-4)).clamp(0, 1)
    cover = cover * cover * (3 - 2 * cover) * p[16].abs()
    keep = torch.where(p[16] >= 0, 1 - cover, torch.ones_like(cover))
    red, green, blue = red * keep + p[13] * shade * cover, green * keep + p[14] * shade * cover, blue * keep + p[15] * shade * cover
    return torch.stack([red, green, blue], 1)


def expose(image, u, v, aspect, gain, grey, lamps, scalars, noise, drops):
    """Lamps, light, vignette, infrared, weather, black level, gamma and noise of the sensor."""
    light = torch.ones_like(image)
    pools = torch.zeros_like(image)
    for k in range(lamps.shape[1]):
        q = lamps[:, k, :, None, None].unbind(1)
        near = torch.exp(-((u - q[0]) ** 2 + (v - q[1]) ** 2) / (q[2] ** 2 * 0.5 + 1e-6)) * (q[2] > 0)
        pools = pools + torch.stack([near * q[3], near * q[4], near * q[5]], 1)
    light = gain[:, :, None, None] * (1 + 1.6 * pools)
    s = scalars[:, :, None, None].unbind(1)
    far = ((u / s[0] - 0.5) ** 2 + (v - 0.5) ** 2)
    image = image * light * (1 - s[4] * 2 * far).unsqueeze(1)
    luma = (0.3 * image[:, 0] + 0.59 * image[:, 1] + 0.11 * image[:, 2]).unsqueeze(1)
    image = image + (luma - image) * grey[:, None, None, None]
    image = image + drops
    image = (image.clamp(0, 1) + 1e-4) ** s[8].unsqueeze(1) * (1 - s[7].unsqueeze(1)) + s[7].unsqueeze(1)
    return image + noise.unsqueeze(1) * s[1].unsqueeze(1)


_passes = {"expose": expose}


def compile_passes():
    _passes["expose"] = torch.compile(expose, dynamic=True)


def paint_all(image, primitives, place):
    """Draws primitives (N, P, 20) over image (N, 3, H, W); place (N, 3): the picture's aspect and by how much the camera trembled in u and v."""
    if image.is_cuda:
        from .paint_gpu import paint as paint_gpu
        return paint_gpu(image, primitives, place)
    return paint(image, primitives, *pixels(place, *image.shape[2:]))


def pixels(place, height, width):
    """u (N, 1, W) and v (N, H, 1) of the pixels."""
    u = ((torch.arange(width, device=place.device) + 0.5) / width).view(1, 1, width) * place[:, 0].view(-1, 1, 1) - place[:, 1].view(-1, 1, 1)
    v = ((torch.arange(height, device=place.device) + 0.5) / height).view(1, height, 1) - place[:, 2].view(-1, 1, 1)
    return u, v


def texture(seed, height, width, device):
    """(N, 1, H, W) unit-variance blotches of several sizes, fixed for the scene."""
    total = 0
    for level, cells in enumerate((5, 14, 40, 112)):
        coarse = normal_noise(seed + 7919 * (level + 1), cells, cells, device).unsqueeze(1)
        total = total + F.interpolate(coarse, (height, width), mode="bilinear", align_corners=False) * (0.75 ** level)
    return total / 1.6


def dct_matrix(device):
    """(64, 64): the orthonormal DCT of an 8x8 block laid out as a row."""
    k = torch.arange(8, dtype=torch.float32)
    m = torch.cos((2 * k[None] + 1) * k[:, None] * torch.pi / 16) * 0.5
    m[0] /= 2 ** 0.5
    return torch.kron(m, m).to(device)


def code(frames, strength):
    """Imitates a lossy video coder on (B, T, 3, H, W): coarser chroma, 8x8 blocks with quantised frequencies, still blocks repeated from the frame before.

    `strength` (B,) in [0, 1]; zero leaves the frames alone.
    """
    some = torch.nonzero(strength > 0).flatten()
    if len(some) == 0:
        return frames
    out = frames.clone()
    out[some] = _code(frames[some], strength[some])
    return out


def _code(frames, strength):
    b, t, _, h, w = frames.shape
    if h % 8 or w % 8:
        wider = F.pad(frames.flatten(0, 1), (0, -w % 8, 0, -h % 8), mode="replicate").unflatten(0, (b, t))
        return _code(wider, strength)[..., :h, :w]
    to_ycc = torch.tensor([[0.299, 0.587, 0.114], [-0.1687, -0.3313, 0.5], [0.5, -0.4187, -0.0813]])
    weight, back = (m.to(frames.device, frames.dtype).view(3, 3, 1, 1) for m in (to_ycc, torch.linalg.inv(to_ycc)))
    ycc = F.conv2d(frames.flatten(0, 1), weight)
    chroma = F.interpolate(F.avg_pool2d(ycc[:, 1:], 2), (h, w), mode="bilinear", align_corners=False)
    ycc = torch.cat([ycc[:, :1], chroma], 1)
    m = dct_matrix(frames.device).to(frames.dtype)
    blocks = ycc.view(b, t * 3, h // 8, 8, w // 8, 8).permute(0, 1, 2, 4, 3, 5).reshape(b, -1, 64)
    spectrum = blocks @ m.T
    k = torch.arange(8, device=frames.device)
    step = (0.012 + 0.02 * (k[:, None] + k[None])).view(1, 1, 64) * (strength.view(-1, 1, 1) ** 1.5 * 1.3)
    step = step.clamp_min(2e-4).to(frames.dtype)
    coded = (torch.round(spectrum / step) * step) @ m
    coded = coded.view(b, t * 3, h // 8, w // 8, 8, 8).permute(0, 1, 2, 4, 3, 5).reshape(b, t, 3, h, w)
    # A block that hardly changed is repeated from the frame before it, as skipped macroblocks are.
    luma = ycc.view(b, t, 3, h, w)[:, :, :1]
    change = F.avg_pool2d((luma[:, 1:] - luma[:, :-1]).abs().flatten(0, 1), 8).view(b, t - 1, 1, h // 8, 1, w // 8, 1)
    skip = change < 0.02 * strength.view(-1, 1, 1, 1, 1, 1, 1)
    tiles = coded.view(b, t, 3, h // 8, 8, w // 8, 8)
    coded = torch.cat([tiles[:, :1], torch.where(skip, tiles[:, :-1], tiles[:, 1:])], 1).reshape(b * t, 3, h, w)
    return F.conv2d(coded, back).view(b, t, 3, h, w)


def blur(frames, amount):
    """Mixes (B, T, 3, H, W) with a smoothed copy by amount (B,)."""
    b, t = frames.shape[:2]
    kernel = frames.new_tensor([0.25, 0.5, 0.25])
    x = frames.flatten(0, 1)
    x = F.pad(x, (1, 1, 1, 1), mode="replicate")
    x = x[..., :-2] * kernel[0] + x[..., 1:-1] * kernel[1] + x[..., 2:] * kernel[2]
    x = x[..., :-2, :] * kernel[0] + x[..., 1:-1, :] * kernel[1] + x[..., 2:, :] * kernel[2]
    a = amount.view(-1, 1, 1, 1, 1).to(frames.dtype)
    return frames * (1 - a) + x.view_as(frames) * a


def render(batch, height, width, plates=None, sprites=None, dtype=torch.float32, first=0):
    """Frames (B, T, 3, H, W) in [0, 1] of a batch of stories; `first` is the number of the first frame in its video (the noise depends on it).

    batch: moving (B, T, P, 20), still (B, Q, 20), gain (B, T, 3), grey (B, T), jitter (B, T, 2), lamps (B, K, 7), scalars (B, 10), seed (B,) int32, and for photographs
    plate (B, T) int64 index into `plates` (M, 3, h, w) or -1, crop (B, 4) (centre u, v and half sizes in [-1, 1]; negative width flips),
    sprite (B, S, T, 8): index or -1, centre u, v (0 to 1), half width, half height (negative ones flip), opacity, brightness, height below which brightness and tint hold; over the
    plate only. tint (B, S, 6): gain and lift of its three channels.
    """
    moving, device = batch["moving"], batch["moving"].device
    b, t = moving.shape[:2]
    n = b * t
    scalars = batch["scalars"]
    aspect = scalars[:, 0]
    stage = torch.zeros(b, 3, height, width, device=device)
    stage = paint_all(stage, batch["still"], F.pad(aspect.view(-1, 1), (0, 2)))
    spots = texture(batch["seed"], height, width, device)
    stage = stage * (1 + spots * scalars[:, 5].view(-1, 1, 1, 1))
    frames = stage.unsqueeze(1).expand(b, t, 3, height, width)
    if plates is not None:
        frames = frames.clone()
        where = torch.nonzero((batch["plate"][:, 0] >= 0)).flatten()
        if len(where):
            frames[where] = photographs(batch, where, plates, sprites, height, width)
    tile = lambda x: x.repeat_interleave(t, 0)
    place = torch.cat([tile(aspect.view(-1, 1)), batch["jitter"].reshape(n, 2)], 1)
    u, v = pixels(place, height, width)
    image = paint_all(frames.reshape(n, 3, height, width), moving.reshape(n, *moving.shape[2:]), place)
    seeds = (batch["seed"].view(-1, 1) * 131 + (first + torch.arange(t, device=device, dtype=torch.int32)).view(1, -1) * 7907 + 13).reshape(n).to(torch.int32)
    noise = normal_noise(seeds, height, width, device)
    noise = torch.where((batch["seed"] % 3 == 0).repeat_interleave(t).view(-1, 1, 1), F.avg_pool2d(F.pad(noise.unsqueeze(1), (1, 1, 1, 1), mode="replicate"), 3, 1).squeeze(1) * 2, noise)
    drops = weather(scalars, seeds, b, t, height, width, device)
    image = _passes["expose"](image, u, v, aspect, batch["gain"].reshape(n, 3), batch["grey"].reshape(n), tile(batch["lamps"]), tile(scalars), noise, drops)
    image = image.clamp(0, 1).view(b, t, 3, height, width).to(dtype)
    image = blur(image, scalars[:, 9])
    return code(image, scalars[:, 6]).clamp(0, 1)


def weather(scalars, seeds, b, t, height, width, device):
    """Light that rain (streaks) and snow (flakes) add; zero where it is dry."""
    rain, snow = scalars[:, 2], scalars[:, 3]
    drops = torch.zeros(b, t, 1, height, width, device=device)
    for kind, amount in (("rain", rain), ("snow", snow)):
        where = torch.nonzero(amount > 0).flatten()
        if len(where) == 0:
            continue
        own = seeds.view(b, t)[where].reshape(-1) + 77
        points = (uniform_noise(own, height, width, device) > (1 - 0.02 * amount[where]).repeat_interleave(t).view(-1, 1, 1)).float().unsqueeze(1)
        if kind == "rain":
            points = F.max_pool2d(F.pad(points, (0, 0, 11, 0)), (12, 1), 1) * 0.22
        else:
            points = F.avg_pool2d(F.max_pool2d(F.pad(points, (2, 2, 2, 2)), 3, 1), 3, 1) * 0.7
        drops[where] = points.view(len(where), t, 1, height, width)
    return drops.view(b * t, 1, height, width)


def photographs(batch, where, plates, sprites, height, width):
    """Frames of the stories `where` from photographs: cropped plates, with cut-outs laid over them."""
    t = batch["plate"].shape[1]
    index = batch["plate"][where]
    crop = batch["crop"][where]
    device = crop.device
    x = ((torch.arange(width, device=device) + 0.5) / width * 2 - 1).view(1, 1, width)
    y = ((torch.arange(height, device=device) + 0.5) / height * 2 - 1).view(1, height, 1)
    jitter = batch["jitter"][where].reshape(-1, 2)
    crop = crop.repeat_interleave(t, 0)
    grid_x = (crop[:, 0].view(-1, 1, 1) + x * crop[:, 2].view(-1, 1, 1) - jitter[:, 0].view(-1, 1, 1)).expand(-1, height, -1)
    grid_y = (crop[:, 1].view(-1, 1, 1) + y * crop[:, 3].view(-1, 1, 1) - jitter[:, 1].view(-1, 1, 1)).expand(-1, -1, width)
    picture = plates[index.reshape(-1)].float() / 255
    out = F.grid_sample(picture, torch.stack([grid_x, grid_y], -1), mode="bilinear", padding_mode="reflection", align_corners=False)
    if sprites is not None:
        for s in range(batch["sprite"].shape[1]):
            row = batch["sprite"][where, s].reshape(-1, 8)
            used = torch.nonzero(row[:, 0] >= 0).flatten()
            if len(used) == 0:
                continue
            r = row[used]
            cut = sprites[r[:, 0].long()].float() / 255
            gx = ((x + 1) / 2 - r[:, 1].view(-1, 1, 1)) / r[:, 3].view(-1, 1, 1)
            gy = ((y + 1) / 2 - r[:, 2].view(-1, 1, 1)) / r[:, 4].view(-1, 1, 1)
            grid = torch.stack([gx.expand(-1, height, -1), gy.expand(-1, -1, width)], -1)
            laid = F.grid_sample(cut, grid, mode="bilinear", padding_mode="zeros", align_corners=False)
            alpha = laid[:, 3:] * r[:, 5].view(-1, 1, 1, 1)
            tint = batch["tint"][where, s].repeat_interleave(t, 0)[used]
            colour, brightness = laid[:, :3], r[:, 6].view(-1, 1, 1, 1)
            # A negative brightness turns light and dark round; then gain and lift of the channels.
            changed = torch.where(brightness < 0, 1 - (colour / laid[:, 3:].clamp_min(1e-3)).clamp(0, 1), colour)
            changed = changed * brightness.abs() * tint[:, :3, None, None] + tint[:, 3:, None, None]
            # Above a given height (a head's) the colours stay.
            low = torch.sigmoid(((y.unsqueeze(1) + 1) / 2 - r[:, 7].view(-1, 1, 1, 1)) / .008)
            out[used] = out[used] * (1 - alpha) + (changed * low + colour * (1 - low)).clamp(0, 1) * alpha
    return out.view(len(where), t, 3, height, width)


def collate(stories, seeds, device="cpu"):
    """The tensors that `render` wants."""
    def stack(values):
        return torch.stack([torch.from_numpy(v) for v in values]).to(device)

    used = max(1, max(int(np.flatnonzero((s.moving[..., 16] != 0).any(0)).max(initial=0)) + 1 for s in stories))
    return dict(moving=stack([s.moving[:, :used] for s in stories]), still=stack([s.still for s in stories]), seed=torch.tensor([seed & 0x3FFFFFFF for seed in seeds], dtype=torch.int32, device=device),
                **{key: stack([s.optics[key] for s in stories]) for key in ("gain", "grey", "jitter", "lamps", "scalars")},
                **({key: stack([s.photo[key] for s in stories]) for key in ("plate", "crop", "sprite", "tint")} if hasattr(stories[0], "photo") else {}))
