"""The draw: a race that depends on a row's scores, seed, sequence and step, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import pad

from neodim_sampling.counter_random import exponentials, stream_key
from neodim_sampling.ordered import ROWS_AT_ONCE
from neodim_sampling.row import SamplingRow

BLOCK = 256


def race(scores: Tensor, rows: Sequence[SamplingRow]) -> Tensor:
    """Draw each row's next token from the softmax of its scores.

    Every token waits for an exponentially distributed time with its probability as rate, and the
    first wins (the Gumbel-max trick in another form). So a score that differs in its last bits, as
    another batch makes it, changes the token only where two were about to tie. The first of a
    block of tokens comes after such a time too, with the sum of their rates as rate, and which one
    it is does not depend on when. So blocks race first, then the tokens of the one that won: some
    hundreds of random numbers instead of one for each token.

    Args:
        scores: [B, V] float32 from `shape_scores`, left alone.
        rows: the same B rows.

    Returns:
        [B] int64 on the device of `scores`, never a token of probability 0; means nothing for a
        row without any finite score.
    """
    n_vocab = scores.shape[-1]
    blocks = torch.cat([_block_rates(some) for some in scores.split(ROWS_AT_ONCE)])
    keys = torch.tensor([_key(row) for row in rows])
    times = exponentials(keys.to(scores.device), BLOCK + blocks.shape[-1])
    # A row's rates add up to 1 and times are bounded, so what has a rate of 0 never wins.
    first = (blocks / times[:, BLOCK:]).argmax(-1, keepdim=True) * BLOCK
    ids = first + torch.arange(BLOCK, device=scores.device)
    inside = scores.gather(-1, ids.clamp(max=n_vocab - 1)).masked_fill_(ids >= n_vocab, -torch.inf)
    rates = inside.softmax(-1)
    return first[:, 0] + (rates / times[:, :BLOCK]).argmax(-1)


def _key(row: SamplingRow) -> int:
    # A choice that is made again needs other numbers: with the same ones, the block whose token
    # was turned down would come first too often. No text has 2^32 tokens.
    return stream_key(row.seed, row.sequence, row.step + (len(row.ruled_out) << 32))


def _block_rates(scores: Tensor) -> Tensor:
    rates = scores.softmax(-1)
    if rates.shape[-1] % BLOCK:
        rates = pad(rates, (0, -rates.shape[-1] % BLOCK))
    return rates.view(len(rates), -1, BLOCK).sum(-1)
