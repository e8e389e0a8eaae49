"""The Qwen2.5-VL architecture in plain PyTorch, batched over windows: the same parameters as transformers' model, made to train fast.

Two things differ from transformers, neither in result: the vision tower handles all temporal slices of a batch at once (they do not see each other), and the decoder
takes many questions about one video in one pass. A question block sees the shared prefix (system text and video) and itself, and its positions start right after
the video, so each question is answered as if it were asked alone. `test_twin.py` compares with transformers.
"""

import torch
import torch.nn.functional as F
from torch import nn


def rotate(x, cos, sin):
    half = x.shape[-1] // 2
    return x * cos + torch.cat((-x[..., half:], x[..., :half]), dim=-1) * sin


class RMSNorm(nn.Module):
    def __init__(self, width, eps):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(width)), eps

    def forward(self, x):
        return F.rms_norm(x, (x.shape[-1],), self.weight.to(x.dtype), self.eps)


class MLP(nn.Module):
    def __init__(self, width, inner, bias):
        super().__init__()
        self.gate_proj, self.up_proj, self.down_proj = nn.Linear(width, inner, bias=bias), nn.Linear(width, inner, bias=bias), nn.Linear(inner, width, bias=bias)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class VisionAttention(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.heads = c.num_heads
        self.qkv, self.proj = nn.Linear(c.hidden_size, 3 * c.hidden_size), nn.Linear(c.hidden_size, c.hidden_size)

    def forward(self, x, cos, sin, mask):
        n, length, width = x.shape
        q, k, v = self.qkv(x).view(n, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        return self.proj(F.scaled_dot_product_attention(q, k, v, attn_mask=mask).transpose(1, 2).reshape(n, length, width))


class VisionBlock(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.norm1, self.norm2 = RMSNorm(c.hidden_size, 1e-6), RMSNorm(c.hidden_size, 1e-6)
        self.attn, self.mlp = VisionAttention(c), MLP(c.hidden_size, c.intermediate_size, True)

    def forward(self, x, cos, sin, mask):
        x = x + self.attn(self.norm1(x), cos, sin, mask)
        return x + self.mlp(self.norm2(x))


class PatchEmbed(nn.Module):
    def __init__(self, c):
        super().__init__()
        size = (c.temporal_patch_size, c.patch_size, c.patch_size)
        self.proj = nn.Conv3d(c.in_channels, c.hidden_size, size, stride=size, bias=False)

    def forward(self, patches):
        return F.linear(patches, self.proj.weight.flatten(1))


class Merger(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.inner = c.hidden_size * c.spatial_merge_size ** 2
        self.ln_q = RMSNorm(c.hidden_size, 1e-6)
        self.mlp = nn.Sequential(nn.Linear(self.inner, self.inner), nn.GELU(), nn.Linear(self.inner, c.out_hidden_size))

    def forward(self, x):
        return self.mlp(self.ln_q(x).reshape(x.shape[0], -1, self.inner))


class Vision(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        self.patch_embed, self.merger = PatchEmbed(c), Merger(c)
        self.blocks = nn.ModuleList(VisionBlock(c) for _ in range(c.depth))
        self._layouts = {}

    def layout(self, rows, columns, device):
        """For a slice of rows x columns patches: the order of its patches (window by window), rotations, and the windows' mask (None: equal windows)."""
        key = (rows, columns, str(device))
        if key not in self._layouts:
            c, m = self.c, self.c.spatial_merge_size
            side = c.window_size // m // c.patch_size
            h, w = torch.meshgrid(torch.arange(rows), torch.arange(columns), indexing="ij")
            place = torch.stack([h, w], -1).view(rows // m, m, columns // m, m, 2).transpose(1, 2).reshape(-1, 2)
            window = (place[:, 0] // m // side) * (columns // m // side + 1) + place[:, 1] // m // side
            order = torch.argsort(window, stable=True)
            place, window = place[order], window[order]
            dim = c.hidden_size // c.num_heads // 2
            inverse = 1.0 / (10000.0 ** (torch.arange(0, dim, 2, dtype=torch.float) / dim))
            angle = (place[..., None].float() * inverse).flatten(1)
            angle = torch.cat([angle, angle], -1)
            sizes = torch.unique_consecutive(window, return_counts=True)[1]
            equal = bool((sizes == sizes[0]).all())
            mask = None if equal else (window[:, None] == window[None]).to(device)
            self._layouts[key] = (order.to(device), angle.cos().to(device), angle.sin().to(device), int(sizes[0]) if equal else 0, mask)
        return self._layouts[key]

    def forward(self, frames):
        """Normalised frames (B, T, 3, H, W), T even, to (B, T/2 * tokens, out width) visual tokens."""
        c = self.c
        b, t, _, height, width = frames.shape
        p, m, s = c.patch_size, c.spatial_merge_size, c.temporal_patch_size
        rows, columns = height // p, width // p
        order, cos, sin, window, mask = self.layout(rows, columns, frames.device)
        x = frames.view(b * t // s, s, 3, rows // m, m, p, columns // m, m, p).permute(0, 3, 6, 4, 7, 2, 1, 5, 8).reshape(b * t // s, rows * columns, -1)
        x = self.patch_embed(x)[:, order]
        cos, sin = cos.to(x.dtype), sin.to(x.dtype)
        n, length, dim = x.shape
        for index, block in enumerate(self.blocks):
            if index in c.fullatt_block_indexes:
                x = block(x, cos, sin, None)
            elif window:
                x = x.reshape(-1, window, dim)
                wide = lambda a: a.view(1, -1, 1, window, a.shape[-1]).expand(n, -1, -1, -1, -1).reshape(-1, 1, window, a.shape[-1])
                x = block(x, wide(cos), wide(sin), None).reshape(n, length, dim)
            else:
                x = block(x, cos, sin, mask)
        unit = m * m
        merged = self.merger(x)
        back = torch.argsort(order[::unit] // unit)
        return merged[:, back].reshape(b, -1, c.out_hidden_size)


class Attention(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.heads, self.groups = c.num_attention_heads, c.num_key_value_heads
        self.dim = c.hidden_size // self.heads
        self.q_proj = nn.Linear(c.hidden_size, c.hidden_size)
        self.k_proj, self.v_proj = nn.Linear(c.hidden_size, self.groups * self.dim), nn.Linear(c.hidden_size, self.groups * self.dim)
        self.o_proj = nn.Linear(c.hidden_size, c.hidden_size, bias=False)

    def forward(self, x, cos, sin, prefix, mask):
        b, length, width = x.shape
        q = rotate(self.q_proj(x).view(b, length, self.heads, self.dim).transpose(1, 2), cos, sin)
        k = rotate(self.k_proj(x).view(b, length, self.groups, self.dim).transpose(1, 2), cos, sin)
        v = self.v_proj(x).view(b, length, self.groups, self.dim).transpose(1, 2)
        k, v = (a.repeat_interleave(self.heads // self.groups, 1) for a in (k, v))
        out = F.scaled_dot_product_attention(q[:, :, :prefix], k[:, :, :prefix], v[:, :, :prefix], is_causal=True)
        if length > prefix:
            out = torch.cat([out, F.scaled_dot_product_attention(q[:, :, prefix:], k, v, attn_mask=mask)], 2)
        return self.o_proj(out.transpose(1, 2).reshape(b, length, width))


class Layer(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.self_attn, self.mlp = Attention(c), MLP(c.hidden_size, c.intermediate_size, False)
        self.input_layernorm, self.post_attention_layernorm = RMSNorm(c.hidden_size, c.rms_norm_eps), RMSNorm(c.hidden_size, c.rms_norm_eps)

    def forward(self, x, cos, sin, prefix, mask):
        x = x + self.self_attn(self.input_layernorm(x), cos, sin, prefix, mask)
        return x + self.mlp(self.post_attention_layernorm(x))


class Text(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        self.embed_tokens = nn.Embedding(c.vocab_size, c.hidden_size)
        self.layers = nn.ModuleList(Layer(c) for _ in range(c.num_hidden_layers))
        self.norm = RMSNorm(c.hidden_size, c.rms_norm_eps)

    def rotation(self, positions):
        """M-RoPE cos and sin (B, 1, L, head) for positions (3, B, L)."""
        c = self.c
        dim = c.hidden_size // c.num_attention_heads
        inverse = 1.0 / (c.rope_parameters["rope_theta"] ** (torch.arange(0, dim, 2, dtype=torch.float, device=positions.device) / dim))
        angle = positions[..., None].float() * inverse
        parts = angle.split(list(c.rope_parameters["mrope_section"]), -1)
        angle = torch.cat([part[index % 3] for index, part in enumerate(parts)], -1)
        angle = torch.cat([angle, angle], -1).unsqueeze(1)
        return angle.cos(), angle.sin()

    def forward(self, x, positions, prefix, mask):
        cos, sin = self.rotation(positions)
        cos, sin = cos.to(x.dtype), sin.to(x.dtype)
        for layer in self.layers:
            x = layer(x, cos, sin, prefix, mask)
        return self.norm(x)


class Model(nn.Module):
    """Parameter names are those of transformers' Qwen2_5_VLForConditionalGeneration (with a tied head)."""

    def __init__(self, config):
        super().__init__()
        self.config = config
        self.model = nn.Module()
        self.model.visual, self.model.language_model = Vision(config.vision_config), Text(config.text_config)

    def initialise(self, seed):
        generator = torch.Generator().manual_seed(seed)
        depth = self.config.text_config.num_hidden_layers
        for name, parameter in self.named_parameters():
            if parameter.dim() > 1:
                fan = parameter[0].numel()
                deviation = 0.02 if "embed_tokens" in name else fan ** -0.5 * (0.6 if not name.endswith(("o_proj.weight", "down_proj.weight", "attn.proj.weight")) else 0.6 / (2 * depth) ** 0.5)
                with torch.no_grad():
                    parameter.copy_(torch.randn(parameter.shape, generator=generator) * deviation)
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)
        return self

    def forward(self, frames, prompt, tokens, positions, mask):
        """Hidden states (B, Q, width) of the question tokens.

        frames (B, T, 3, H, W) normalised, or the visual tokens (B, N, width) that were made of them; prompt = (ids before the video, ids after it) for all; tokens (B, Q) question ids; positions (3, B, prefix + Q); mask (Q, prefix + Q).
        """
        text = self.model.language_model
        video = self.model.visual(frames) if frames.dim() == 5 else frames
        b = tokens.shape[0]
        before, after = (text.embed_tokens(part).expand(b, -1, -1) for part in prompt)
        x = torch.cat([before.to(video.dtype), video, after.to(video.dtype), text.embed_tokens(tokens).to(video.dtype)], 1)
        prefix = x.shape[1] - tokens.shape[1]
        return text(x, positions, prefix, mask)[:, prefix:]

    def logits(self, hidden):
        return F.linear(hidden, self.model.language_model.embed_tokens.weight.to(hidden.dtype))


def video_positions(slices, rows, columns, interval, start):
    """M-RoPE positions (3, slices * rows * columns) of a video that starts at `start`, as transformers 5 gives them."""
    t, h, w = torch.meshgrid(torch.arange(slices) * interval, torch.arange(rows), torch.arange(columns), indexing="ij")
    return torch.stack([t, h, w]).reshape(3, -1) + start
