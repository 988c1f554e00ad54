"""From a finished generation to the canonical result."""

from __future__ import annotations

from neodim_sampling.penalty import penalised_tokens, penalty_range
from neodim_sampling.prompts import PlainPrompt
from neodim_sampling.row import SamplingRow
from neodim_sampling.text.codec import TextCodec
from neodim_sampling.text.decoder import IncrementalDecoder
from workers.contract.text_result import (
    FinishReason,
    PenaltyReport,
    PromptReport,
    SequenceResult,
    TextResult,
    TokenScore,
)
from workers.engine.generation import Generation
from workers.engine.likelihood import told
from workers.engine.sequence import Sequence


def make_result(generation: Generation, codec: TextCodec) -> TextResult:
    """All that there is to tell of a generation that has ended without an error."""
    fitted = generation.fitted
    return TextResult(
        prompt=PromptReport(
            preamble=fitted.preamble,
            used_prompt=fitted.used_prompt,
            n_preamble=fitted.n_preamble,
            n_original_prompt=fitted.n_original_prompt,
            n_original_input=fitted.n_original_input,
            n_used_prompt=fitted.n_used_prompt,
            n_used_input=len(fitted.input_ids),
            echo=_echo(generation, codec),
        ),
        penalty=_penalty_report(generation.sequences[0].row, codec),
        sequences=tuple(_sequence(generation, each, codec) for each in _kept(generation)),
        n_generated=generation.n_steps,
        n_made=sum(len(each.row.generated) for each in generation.sequences),
        devices=generation.memory.report(),
        is_partial=generation.is_partial,
    )


def _kept(generation: Generation) -> list[Sequence]:
    """The sequences that the result has: all, or the likeliest by the mean over their tokens."""
    if generation.job.n_kept is None:
        return generation.sequences
    best_first = sorted(generation.sequences, key=_mean_log_prob, reverse=True)
    return best_first[: generation.job.n_kept]


def _mean_log_prob(sequence: Sequence) -> float:
    log_probs = [each.log_prob or 0.0 for each in sequence.told]
    return sum(log_probs) / len(log_probs) if log_probs else 0.0


def _echo(generation: Generation, codec: TextCodec) -> tuple[TokenScore, ...] | None:
    """The prompt's tokens, where they are asked for."""
    prompt = generation.job.prompt
    if not isinstance(prompt, PlainPrompt) or not prompt.echo:
        return None
    decoder = IncrementalDecoder(codec, [])
    ids = generation.fitted.input_ids
    known = [None, *generation.prompt_likelihoods]
    scores = []
    for n, token in enumerate(ids):
        n_before = len(decoder.stable_text)
        decoder.push(token)
        text = decoder.final_text() if n == len(ids) - 1 else decoder.stable_text
        scores.append(told(codec, token, text[n_before:], known[n] if n < len(known) else None))
    return tuple(scores)


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
        scores=None if generation.job.log_probs is None else tuple(sequence.told),
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
