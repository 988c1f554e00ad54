"""From a finished generation to the canonical result."""

from __future__ import annotations

from collections.abc import Sequence as SequenceOf

from neodim_sampling.penalty import penalised_tokens, penalty_range
from neodim_sampling.prompt_items import ItemsPrompt
from neodim_sampling.row import SamplingRow
from neodim_sampling.text.codec import TextCodec
from workers.contract.text_result import (
    FinishReason,
    PenaltyReport,
    PromptReport,
    SequenceResult,
    TextResult,
)
from workers.engine.generation import Generation
from workers.engine.sequence import Sequence


def make_result(parts: SequenceOf[Generation], codec: TextCodec) -> TextResult:
    """All that there is to tell of a job whose generations have ended without an error.

    Args:
        parts: its generations, in the order of their sequences.
        codec: the model's.
    """
    generation = parts[0]
    fitted, prompt = generation.fitted, generation.job.prompt
    return TextResult(
        prompt=PromptReport(
            preamble=fitted.preamble,
            used_prompt=fitted.used_prompt,
            n_preamble=fitted.n_preamble,
            n_original_prompt=fitted.n_original_prompt,
            n_original_input=fitted.n_original_input,
            n_used_prompt=fitted.n_used_prompt,
            n_used_input=len(fitted.input_ids),
            echo=generation.echo,
            items=prompt.items if isinstance(prompt, ItemsPrompt) and prompt.is_changed else None,
        ),
        penalty=_penalty_report(generation.sequences[0].row, codec),
        sequences=tuple(_sequence(part, each, codec) for part, each in _kept(parts)),
        n_generated=max(part.n_steps for part in parts),
        n_made=sum(len(each.row.generated) for part in parts for each in part.sequences),
        n_candidates=generation.job.n_sequences,
        answer_fields=generation.job.answer_fields,
        devices=generation.memory.report(),
        is_partial=any(part.is_partial for part in parts),
    )


def _kept(parts: SequenceOf[Generation]) -> list[tuple[Generation, Sequence]]:
    """The sequences that the result has: all, or the likeliest by the mean over their tokens."""
    n_kept = parts[0].job.n_kept
    every = [(part, sequence) for part in parts for sequence in part.sequences]
    if n_kept is None:
        return every
    return sorted(every, key=lambda each: _mean_log_prob(each[1]), reverse=True)[:n_kept]


def _mean_log_prob(sequence: Sequence) -> float:
    log_probs = [each.log_prob or 0.0 for each in sequence.told]
    return sum(log_probs) / len(log_probs) if log_probs else 0.0


def _sequence(generation: Generation, sequence: Sequence, codec: TextCodec) -> SequenceResult:
    text = sequence.decoder.final_text()
    match = sequence.match
    start, end = (match.start, match.end) if match is not None else (len(text), len(text))
    row = sequence.row
    return SequenceResult(
        text=text[:start],
        stop_string=match.string if match is not None else "",
        stop_match=text[start:end],
        tail=text[end:],
        output_text=generation.fitted.preamble + generation.fitted.used_prompt + text,
        penalty_text_at_end=_penalty_text(row, _n_before_last(row), codec),
        tokens=tuple(row.generated),
        finish_reason=_finish_reason(generation, sequence),
        scores=tuple(sequence.told) if generation.job.tells_tokens else None,
    )


def _finish_reason(generation: Generation, sequence: Sequence) -> FinishReason:
    if sequence.match is not None:
        return FinishReason.STOP
    if sequence.is_end_of_text:
        return FinishReason.END_OF_TEXT
    return FinishReason.CANCELLED if generation.is_partial else FinishReason.LENGTH


def _penalty_report(row: SamplingRow, codec: TextCodec) -> PenaltyReport:
    if row.settings.penalty is None:
        return PenaltyReport()
    n_last = _n_before_last(row)
    return PenaltyReport(
        text_at_start=_penalty_text(row, 0, codec),
        n_tokens_at_start=len(penalised_tokens(row, 0)),
        range_at_start=penalty_range(row, 0),
        n_tokens_at_end=len(penalised_tokens(row, n_last)),
        range_at_end=penalty_range(row, n_last),
    )


def _penalty_text(row: SamplingRow, n_generated: int, codec: TextCodec) -> str:
    if row.settings.penalty is None:
        return ""
    return codec.decode(penalised_tokens(row, n_generated))


def _n_before_last(row: SamplingRow) -> int:
    """Generated tokens that the last sampling step had before it."""
    return max(0, len(row.generated) - 1)
