"""The `tokenizer.json` of a loaded model."""

from __future__ import annotations

from typing import Any

from workers.contract.tokenizer_store import TokenizerFile


def tokenizer_file(tokenizer: Any) -> TokenizerFile | None:
    """What clients and the API tokenise with; None = the tokenizer has no such file.

    Args:
        tokenizer: of the transformers library; it cuts and pads no text from now on, which it
            would be told anew with every text.
    """
    if not tokenizer.is_fast:
        return None
    backend = tokenizer.backend_tokenizer
    backend.no_truncation()
    backend.no_padding()
    return TokenizerFile.of(backend.to_str())
