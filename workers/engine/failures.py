"""What an exception in a step of the engine means for the job whose step it was."""

from __future__ import annotations

import logging

import torch

from neodim_sampling.errors import NoTokenLeft
from workers.contract.errors import EngineFailure, NeodimError, OutOfMemory
from workers.engine.sequence import Sequence

log = logging.getLogger(__name__)


def as_neodim_error(error: Exception) -> NeodimError:
    """An error of a step as a job's record may hold it; unexpected ones go to the log."""
    if isinstance(error, NeodimError):
        return error
    log.error("a step of the engine failed", exc_info=error)
    is_memory = isinstance(error, (torch.OutOfMemoryError, MemoryError))
    if is_memory or "can't allocate memory" in str(error):
        return OutOfMemory("the device has not enough memory for this request")
    return EngineFailure(f"the model failed: {type(error).__name__}")


def no_token_error(sequence: Sequence) -> NeodimError:
    """Why a sequence whose scores are known has no next token."""
    assert sequence.scores is not None, "tokens are chosen by scores"
    logits = sequence.scores.logits[sequence.scores.row]
    if logits.isnan().any() or logits.amax().isinf():
        return EngineFailure("the model failed: its scores are not numbers")
    return NoTokenLeft(
        "the word lists, no_repeat_ngram_size and can_stop_early together forbid every token here"
    )
