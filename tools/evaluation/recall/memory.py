"""An hour of a camera as the model keeps it, and questions asked of any part of it.

Keys and values are those of a stream: each token sees the PAST seconds before its page, as in windows that are computed as their patches come. Keys are kept without
their rotation, so that whoever reads a part of the hour gives it the positions of a window of its own. Times are in pairs of frames (patches), one a second.
"""

import sys
from pathlib import Path

import torch
import torch.nn.functional as F

sys.path[:0] = [str(Path(__file__).resolve().parents[2] / "train"), str(Path(__file__).resolve().parents[2])]

import batches  # noqa: E402
from twin import Model, rotate  # noqa: E402

PAGE, PAST = 8, 32


def load(folder, device):
    """The model in float32."""
    from safetensors.torch import load_file
    from transformers import Qwen2_5_VLConfig

    model = Model(Qwen2_5_VLConfig.from_pretrained(folder)).eval()
    state = {}
    for path in sorted(Path(folder).glob("*.safetensors")):
        state.update(load_file(path))
    state.pop("lm_head.weight", None)
    state = {key if key.startswith("model.") and ("visual" in key or "language_model" in key) else key.replace("visual.", "model.visual.", 1) if key.startswith("visual.") else key.replace("model.", "model.language_model.", 1): value.float() for key, value in state.items()}
    model.load_state_dict(state)
    batches.use_tokenizer(folder)
    return model.to(device)


class Memory:
    """`video` (P, C, width): the visual tokens of P pairs of frames, C = rows * columns each."""

    def __init__(self, model, video, rows, columns, past=PAST):
        self.model, self.text, self.device = model, model.model.language_model, video.device
        self.rows, self.columns, self.cells, self.pairs = rows, columns, rows * columns, len(video)
        self.heads, self.dim = self.text.layers[0].self_attn.heads, self.text.layers[0].self_attn.dim
        ids = batches.prompt_ids(self.device)
        self.after, self.before = ids[1][0], ids[0].shape[1]
        self.grid = torch.stack(torch.meshgrid(torch.arange(rows), torch.arange(columns), indexing="ij"), -1).reshape(-1, 2).to(self.device)
        with torch.no_grad():
            self.prefix = self._prefix(ids[0])
            self.keys, self.values = self._stream(video, past)

    def _qkv(self, layer, x):
        a, x = layer.self_attn, layer.input_layernorm(x)
        q = a.q_proj(x).view(*x.shape[:-1], self.heads, self.dim).transpose(-2, -3)
        return q, a.k_proj(x), a.v_proj(x)

    def angles(self, positions):
        """cos and sin (..., head) of positions (..., 3)."""
        cos, sin = self.text.rotation(positions.reshape(1, -1, 3).permute(2, 0, 1))
        return cos.view(*positions.shape[:-1], -1), sin.view(*positions.shape[:-1], -1)

    def _prefix(self, ids):
        """Rotated keys and values of the text before the video, for each layer: it sees nothing but itself."""
        x, out = self.text.embed_tokens(ids), []
        cos, sin = self.angles(torch.arange(self.before, device=self.device).view(1, -1, 1).expand(1, -1, 3))
        for layer in self.text.layers:
            q, k, v = self._qkv(layer, x)
            k = rotate(k, cos, sin)
            out.append((k[0], v[0]))
            y = F.scaled_dot_product_attention(rotate(q, cos[:, None], sin[:, None]), k[:, None].expand(-1, self.heads, -1, -1), v[:, None].expand(-1, self.heads, -1, -1), is_causal=True)
            x = x + layer.self_attn.o_proj(y.transpose(1, 2).flatten(2))
            x = x + layer.mlp(layer.post_attention_layernorm(x))
        return out

    def positions(self, pairs):
        """(..., n, C, 3) of the cells of pairs whose places in their window are (..., n)."""
        t = (2 * pairs)[..., None, None].expand(*pairs.shape, self.cells, 1)
        return torch.cat([t, self.grid.expand(*pairs.shape, -1, -1)], -1) + self.before

    def _stream(self, video, past, batch=None):
        """Keys and values (P, C, head) of each layer."""
        batch = batch or (64 if self.device.type == "cuda" else 4)
        keys, values, x = [], [], video
        pages = -(-self.pairs // PAGE)
        for layer in self.text.layers:
            q, k, v = self._qkv(layer, x)  # q (P, heads, C, dim)
            keys.append(k)
            values.append(v)
            if layer is self.text.layers[-1]:
                break
            out = torch.empty_like(x)
            for first in range(0, pages, batch):
                starts = torch.arange(first, min(pages, first + batch), device=self.device) * PAGE
                # Pairs before the beginning or behind the end are hidden.
                index = starts[:, None] - past + torch.arange(past + PAGE, device=self.device)
                there = (index >= 0) & (index < self.pairs)
                index = index.clamp(0, self.pairs - 1)
                place = index - index.clamp_min(0).gather(1, there.int().argmax(1, keepdim=True))
                cos, sin = self.angles(self.positions(place.clamp_min(0)))
                b = len(starts)
                own = rotate(k[index], cos, sin).flatten(1, 2)
                pk, pv = self.prefix[len(keys) - 1]
                kk = torch.cat([pk.expand(b, -1, -1), own], 1)[:, None]
                vv = torch.cat([pv.expand(b, -1, -1), v[index].flatten(1, 2)], 1)[:, None]
                mine = index[:, past:]
                qq = rotate(q[mine], cos[:, past:, None], sin[:, past:, None]).transpose(1, 2).flatten(2, 3)
                n, m = PAGE * self.cells, (past + PAGE) * self.cells
                causal = torch.ones(n, m, dtype=torch.bool, device=self.device).tril(m - n)
                mask = torch.cat([torch.ones(b, n, self.before, dtype=torch.bool, device=self.device), causal & there.repeat_interleave(self.cells, 1)[:, None]], 2)[:, None]
                y = F.scaled_dot_product_attention(qq, kk.expand(-1, self.heads, -1, -1), vv.expand(-1, self.heads, -1, -1), attn_mask=mask)
                y = layer.self_attn.o_proj(y.transpose(1, 2).flatten(2)).view(b, PAGE, self.cells, -1)
                shown = there[:, past:]
                out[mine[shown]] = y[shown]
            x = x + out
            x = x + layer.mlp(layer.post_attention_layernorm(x))
        return keys, values

    def ask(self, prompts, pairs, cells, places, answer=None, looks=False, batch=None):
        """Hidden states of the last token (W, width) for one question (ids) read with each of W selections of tokens.

        pairs, cells (W, N): which tokens; pairs < 0: none. places (W, N): the place of the pair in the window. `answer` (W, n): the words of the answer so far. With `looks` also the mass (layers, heads, W) of exp(score) that the
        last question token puts on the selection (its log), and the hidden states after each layer (layers, W, width).
        """
        ids = torch.cat([self.after, torch.tensor(prompts, device=self.device)])
        n, follow = len(ids), self.before + max(self.rows, self.columns)
        at = follow + torch.arange(n, device=self.device)
        words = 0 if answer is None else answer.shape[1]
        if words:
            shown = places[pairs >= 0]
            greatest = self.before + max(int(shown.max()) * 2 if len(shown) else 0, max(self.rows, self.columns) - 1)
            at = torch.cat([at, max(follow + n, greatest + 1) + torch.arange(words, device=self.device)])
            n += words
        cos, sin = self.angles(at[:, None].expand(-1, 3))
        batch = batch or max(1, (3_000_000 if self.device.type == "cuda" else 60_000) // max(1, pairs.shape[1]))
        found, masses, states = [], [], []
        own = torch.ones(n, n, dtype=torch.bool, device=self.device).tril()
        for first in range(0, len(pairs), batch):
            p, c, w = (a[first:first + batch] for a in (pairs, cells, places))
            b, hidden = len(p), p < 0
            p, c = p.clamp_min(0), c.clamp_min(0)
            where = torch.cat([(2 * w)[..., None], self.grid[c]], -1) + self.before
            kcos, ksin = self.angles(where)
            seen = torch.cat([torch.ones(b, self.before, dtype=torch.bool, device=self.device), ~hidden], 1)
            mask = torch.cat([seen[:, None].expand(-1, n, -1), own.expand(b, -1, -1)], 2)[:, None]
            x = self.text.embed_tokens(torch.cat([ids.expand(b, -1), answer[first:first + batch]], 1) if words else ids.expand(b, -1))
            layer_masses, layer_states = [], []
            for number, layer in enumerate(self.text.layers):
                q, k, v = self._qkv(layer, x)
                q, k = rotate(q, cos, sin), rotate(k, cos, sin)
                video = rotate(self.keys[number][p, c], kcos, ksin)
                pk, pv = self.prefix[number]
                kk = torch.cat([pk.expand(b, -1, -1), video, k], 1)
                vv = torch.cat([pv.expand(b, -1, -1), self.values[number][p, c], v], 1)
                if looks:
                    score = torch.einsum("bhd,bnd->bhn", q[:, :, -1], video) / self.dim ** .5
                    layer_masses.append(torch.logsumexp(score.masked_fill(hidden[:, None], -1e9), -1))
                y = F.scaled_dot_product_attention(q, kk[:, None].expand(-1, self.heads, -1, -1), vv[:, None].expand(-1, self.heads, -1, -1), attn_mask=mask)
                x = x + layer.self_attn.o_proj(y.transpose(1, 2).flatten(2))
                x = x + layer.mlp(layer.post_attention_layernorm(x))
                if looks:
                    layer_states.append(x[:, -1])
            found.append(x[:, -1])
            if looks:
                masses.append(torch.stack(layer_masses).transpose(1, 2))
                states.append(torch.stack(layer_states))
        last = self.text.norm(torch.cat(found))
        return (last, torch.cat(masses, 2), torch.cat(states, 1)) if looks else last

    def odds(self, hidden):
        """Log odds of "Yes" against "No"."""
        logits = self.model.logits(hidden)
        return logits[..., batches.token("Yes")] - logits[..., batches.token("No")]

    def queries(self, prompts):
        """For each layer the queries (heads, n, dim), without rotation, of a question that sees no video."""
        ids = torch.cat([self.after, torch.tensor(prompts, device=self.device)])
        at = self.before + torch.arange(len(ids), device=self.device)
        cos, sin = self.angles(at[:, None].expand(-1, 3))
        x, out = self.text.embed_tokens(ids)[None], []
        mask = torch.cat([torch.ones(len(ids), self.before, dtype=torch.bool, device=self.device), torch.ones(len(ids), len(ids), dtype=torch.bool, device=self.device).tril()], 1)
        for (pk, pv), layer in zip(self.prefix, self.text.layers):
            q, k, v = self._qkv(layer, x)
            out.append(q[0])
            kk, vv = torch.cat([pk[None], rotate(k, cos, sin)], 1), torch.cat([pv[None], v], 1)
            y = F.scaled_dot_product_attention(rotate(q, cos, sin), kk[:, None].expand(-1, self.heads, -1, -1), vv[:, None].expand(-1, self.heads, -1, -1), attn_mask=mask)
            x = x + layer.self_attn.o_proj(y.transpose(1, 2).flatten(2))
            x = x + layer.mlp(layer.post_attention_layernorm(x))
        return out

    def say(self, prompts, pairs, cells, places, tokens=32):
        """The greedy answers' ids for W selections of one length."""
        end = batches.encode_pair([], [])[1][0]
        said = torch.empty(len(pairs), 0, dtype=torch.long, device=self.device)
        for _ in range(tokens):
            said = torch.cat([said, self.model.logits(self.ask(prompts, pairs, cells, places, said)).argmax(-1, keepdim=True)], 1)
            if bool((said == end).any(1).all()):
                break
        return [row[:row.index(end)] if end in row else row for row in said.tolist()]
