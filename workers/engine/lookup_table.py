"""The input embeddings, where the same weights are packed for the output a second time."""

from __future__ import annotations

import tempfile

import torch
from torch import Tensor


class LookupTable:
    """Rows of a matrix, by number.

    On a CPU it lives in an unlinked temporary file that is mapped: of a large vocabulary only the
    rows in use take memory, and none that the system could not take back.

    Args:
        table: [V, H]; the caller should let go of it.
    """

    def __init__(self, table: Tensor) -> None:
        self._table = table.detach()
        if table.device.type == "cpu":
            self._table = _mapped(self._table)

    def __call__(self, ids: Tensor) -> Tensor:
        """[N, H] for ids [N]."""
        return self._table.index_select(0, ids)


def _mapped(table: Tensor) -> Tensor:
    with tempfile.NamedTemporaryFile(prefix="neodim-") as file:
        # Written rather than copied into the mapping, where every page would be in use at once.
        table.contiguous().view(torch.uint8).numpy().tofile(file.name)
        return torch.from_file(file.name, True, table.numel(), dtype=table.dtype).view(table.shape)
