"""LLaMA models with fewer and larger operations than transformers has, on weights joined once.

Queries, keys and values are one product, so are gate and up; the norms' weights are part of the
products behind them; the tokens of all rows are one matrix without padding.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import silu

from workers.engine.decode_graphs import DecodeGraphs, record_cuda_graph
from workers.engine.fused_attention import AttentionPass, CandidatesAttention, RunsAttention
from workers.engine.linear import Linear
from workers.engine.lookup_table import LookupTable
from workers.engine.text_model import Run, TextModel

ROPE_TYPES = ("default", "linear", "llama3")
"""Position scalings that do not change with the length of the text."""


def can_fuse(model: Any) -> bool:
    """Whether a loaded transformers model is one that `FusedLlama` computes."""
    config = model.config
    return (
        config.model_type == "llama"
        and config.hidden_act == "silu"
        and config.rope_parameters["rope_type"] in ROPE_TYPES
        and len({parameter.device for parameter in model.parameters()}) == 1
        # Quantised weights come as subclasses, which only the library's own layers understand.
        and all(
            type(module) is torch.nn.Linear
            for module in model.modules()
            if isinstance(module, torch.nn.Linear)
        )
    )


@dataclass(frozen=True, slots=True)
class _Layer:
    qkv: Linear
    attention_out: Linear
    gate_up: Linear
    down: Linear


class FusedLlama(TextModel):
    """A LLaMA model for which `can_fuse` holds; its weights are taken out of it as it is made."""

    pads_prompts = False

    def __init__(self, model: Any, slots: int, max_length: int) -> None:
        super().__init__(model, slots, max_length)
        config, body = model.config, model.model
        self._head_size = body.layers[0].self_attn.head_dim
        self._n_key_heads = config.num_key_value_heads
        self._n_turned = config.num_attention_heads + self._n_key_heads
        eps = math.sqrt(config.hidden_size * config.rms_norm_eps)
        self._eps = torch.tensor(eps, device=self.device)
        self._norm_scale = math.sqrt(config.hidden_size)
        self._turns = _turns(body.rotary_emb, max_length, self.device)
        for rows in self.cache.rows:
            rows.allocate(self._n_key_heads, self._head_size, model.dtype, self.device)
        with torch.no_grad():
            self._layers = [self._take_layer(layer) for layer in body.layers]
            self._final_scale = body.norm.weight * self._norm_scale
            self._embeddings = LookupTable(body.embed_tokens.weight)
            head = model.get_output_embeddings()
            self._head = Linear(head.weight, head.bias)
            # One weight left would keep the whole file mapped that they all came from.
            _empty(model)
        self._graphs: DecodeGraphs | None = None
        if self.device.type == "cuda":
            self._graphs = DecodeGraphs(self._forward, self.cache, record_cuda_graph)

    def _read(self, runs: Sequence[Run]) -> Sequence[Mapping[int, Tensor]]:
        """Read runs of tokens, all in one pass: single ones first, in the order of their rows."""
        order = sorted(range(len(runs)), key=lambda i: (len(runs[i].tokens) > 1, runs[i].slot))
        n_single = sum(len(run.tokens) == 1 for run in runs)
        ordered = [runs[i] for i in order]
        lengths = [len(run.tokens) for run in ordered]
        inner = {layer for run in runs for layer in run.layers} - {self.n_layers}
        kept: dict[int, Tensor] = {}
        if self._graphs is not None and not inner and self._graphs.can_read(ordered):
            hidden = self._graphs.read(ordered)
        else:
            tokens = [token for run in ordered for token in run.tokens]
            attention = RunsAttention(self.cache, ordered[:n_single], ordered[n_single:])
            x = self._embeddings(torch.tensor(tokens, device=self.device))
            if any(run.insets for run in ordered):
                self._put_insets(ordered, x.split(lengths))
            hidden = self._compute(x, attention, inner, kept)
        by_layer = {
            layer: dict(zip(order, each.split(lengths), strict=True))
            for layer, each in (*kept.items(), (self.n_layers, hidden))
        }
        return [
            {layer: by_layer[layer][i] for layer in (self.n_layers, *run.layers)}
            for i, run in enumerate(runs)
        ]

    @torch.inference_mode()
    def try_candidates(
        self, slot: int, candidates: Tensor, start: int
    ) -> tuple[Tensor, Tensor, CandidatesAttention]:
        """Read each of several possible next tokens of one row; nothing is kept yet."""
        attention = CandidatesAttention(self.cache, slot, start, candidates.tolist())
        hidden = self._forward(candidates, attention)
        return self._head(hidden).float(), hidden, attention

    def _forward(self, tokens: Tensor, attention: AttentionPass) -> Tensor:
        """[N, H], the last hidden states of [N] tokens."""
        return self._compute(self._embeddings(tokens), attention)

    def _compute(
        self,
        x: Tensor,
        attention: AttentionPass,
        inner: Collection[int] = (),
        kept: MutableMapping[int, Tensor] | None = None,
    ) -> Tensor:
        """[N, H], the last hidden states behind embeddings.

        Args:
            x: [N, H], the embeddings.
            attention: to what each of them may see.
            inner: layers in front of the last whose states are wanted too.
            kept: gets those; None where none are wanted.
        """
        turns = self._turns[attention.positions, None]
        for n, (layer, rows) in enumerate(zip(self._layers, self.cache.rows, strict=True)):
            if kept is not None and n in inner:
                kept[n] = x
            qkv = layer.qkv(self._normalise(x)).unflatten(-1, (-1, self._head_size))
            self._turn(qkv[:, : self._n_turned], turns)
            x = layer.attention_out(attention.attend(rows, qkv), x)
            gate, up = layer.gate_up(self._normalise(x)).chunk(2, dim=-1)
            x = layer.down(silu(gate).mul_(up), x)
        hidden: Tensor = self._normalise(x) * self._final_scale
        return hidden

    def _normalise(self, x: Tensor) -> Tensor:
        """Root mean square norm (arXiv:1910.07467), less a constant factor and the weights.

        `rms_norm` of torch 2.13 takes three times as long on a CPU.
        """
        sizes: Tensor = torch.linalg.vector_norm(x, dim=-1, keepdim=True, dtype=torch.float32)
        return (x / sizes.hypot(self._eps)).to(x.dtype)

    @staticmethod
    def _turn(heads: Tensor, turns: Tensor) -> None:
        """Rotate pairs of numbers by the angles of their place (arXiv:2104.09864), in place.

        Args:
            heads: [N, H, D], pairs side by side.
            turns: [N, 1, D / 2] complex numbers to multiply with.
        """
        wide = heads.float()
        torch.view_as_complex(wide.unflatten(-1, (-1, 2))).mul_(turns)
        if wide is not heads:
            heads.copy_(wide)

    def _take_layer(self, layer: Any) -> _Layer:
        attention, mlp = layer.self_attn, layer.mlp
        before_attention = layer.input_layernorm.weight.float() * self._norm_scale
        before_mlp = layer.post_attention_layernorm.weight.float() * self._norm_scale
        taken = _Layer(
            qkv=_join(
                (attention.q_proj, attention.k_proj, attention.v_proj),
                before_attention,
                n_paired=2,
                head_size=self._head_size,
            ),
            attention_out=Linear(attention.o_proj.weight, attention.o_proj.bias),
            gate_up=_join((mlp.gate_proj, mlp.up_proj), before_mlp),
            down=Linear(mlp.down_proj.weight, mlp.down_proj.bias),
        )
        _empty(layer)
        return taken


def _turns(rotary: Any, max_length: int, device: torch.device) -> Tensor:
    """[max_length, D / 2], the turn of each pair at each place, with the model's own scaling."""
    positions = torch.arange(max_length, device=device)
    cosines, sines = rotary(torch.empty(0, device=device), positions[None])
    return torch.complex(*(half.chunk(2, dim=-1)[0][0].float() for half in (cosines, sines)))


def _join(
    parts: Sequence[torch.nn.Linear], scale: Tensor, *, n_paired: int = 0, head_size: int = 0
) -> Linear:
    """Several products of one input as one.

    Args:
        parts: of equal input.
        scale: [K] float32, what the input is to be multiplied with first.
        n_paired: how many of the first parts are heads to turn: their numbers i and i + D / 2,
            which turn together, are put side by side. Queries and keys alike, so scores stay.
        head_size: D of those.
    """
    weights: list[Tensor] = [(part.weight.float() * scale).to(part.weight.dtype) for part in parts]
    biases: list[Tensor] = [part.bias for part in parts if part.bias is not None]
    for rows in (weights, biases):
        rows[:n_paired] = [_pair(each, head_size) for each in rows[:n_paired]]
    return Linear(torch.cat(weights), torch.cat(biases) if biases else None)


def _pair(rows: Tensor, head_size: int) -> Tensor:
    """Rows of [heads, 2 halves, ...] in the order [heads, ..., 2 halves]."""
    halves = rows.view(-1, 2, head_size // 2, *rows.shape[1:])
    return halves.transpose(1, 2).reshape(rows.shape)


def _empty(module: torch.nn.Module) -> None:
    """Let go of a module's weights."""
    for parameter in module.parameters():
        parameter.data = torch.empty(0, dtype=parameter.dtype, device=parameter.device)
