"""Records and results as the tests of the standard's answers need them."""

from __future__ import annotations

import json

from workers.contract.job_record import JobRecord, JobState
from workers.contract.text_result import (
    FinishReason,
    PenaltyReport,
    PromptReport,
    SequenceResult,
    TextResult,
    TokenScore,
)


def sequence(text, *, tokens=(1, 2), reason=FinishReason.LENGTH, stop="", scores=None):
    return SequenceResult(
        text=text,
        stop_string=stop,
        stop_match=stop,
        tail="",
        output_text="",
        penalty_text_at_end="",
        tokens=tokens,
        finish_reason=reason,
        scores=scores,
    )


def result(*sequences, n_prompt=3, n_made=None, echo=None):
    return TextResult(
        prompt=PromptReport(
            preamble="",
            used_prompt="",
            n_preamble=0,
            n_original_prompt=n_prompt,
            n_original_input=n_prompt,
            n_used_prompt=n_prompt,
            n_used_input=n_prompt,
            echo=echo,
        ),
        penalty=PenaltyReport(),
        sequences=sequences,
        n_generated=2,
        n_made=sum(len(each.tokens) for each in sequences) if n_made is None else n_made,
    )


def record(made=None, job_id="7"):
    return JobRecord(
        id=job_id,
        protocol="chat",
        model="tiny",
        state=JobState.SUCCEEDED,
        owner="",
        created_ms=1_700_000_000_999,
        started_ms=None,
        finished_ms=None,
        attempt=1,
        worker=None,
        n_generated=0,
        n_expected=0,
        result=made,
        error=None,
    )


def scored(*texts):
    """A token for each text: ids 0, 1, 2, ... with log-probabilities 0, -1, -2, ..."""
    return tuple(TokenScore(n, text, -float(n)) for n, text in enumerate(texts))


def data(frames):
    """What the frames of a stream say, [DONE] included."""
    texts = [frame.decode().removeprefix("data: ").removesuffix("\n\n") for frame in frames]
    return [text if text == "[DONE]" else json.loads(text) for text in texts]
