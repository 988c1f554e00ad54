"""Which prompts are read next, and how much of them: in chunks, short ones together."""

from __future__ import annotations

from workers.engine.generation import Generation
from workers.engine.pictures import embedding_of, numbered
from workers.engine.reading import PromptReading
from workers.engine.slot_pool import SlotPool
from workers.engine.text_model import TextModel


class Prefill:
    """The prompts that wait to be read.

    Args:
        model: reads them.
        slots: gives rows, which may hold the beginning of a prompt already.
    """

    def __init__(self, model: TextModel, slots: SlotPool) -> None:
        self._model = model
        self._slots = slots
        self._readings: list[PromptReading] = []

    def add(self, generation: Generation) -> None:
        """Give a generation's sequences rows and put its reading in line."""
        for reading in plan_readings(generation):
            first, *others = reading.sequences
            for each in reading.sequences:
                if each.control is not None:
                    ids = numbered(each.row.input_ids, each.pictures)
                    each.control.learn(ids, embedding_of(self._model.embed, each.pictures))
            # The row may hold those whose states, which it does not keep, nobody needs.
            n_unasked = generation.n_unasked
            n_known = len(reading.tokens) if n_unasked is None else n_unasked + 1
            known = first.names[:n_known]
            reading.n_read = self._slots.give(first, known)
            for other in others:
                self._slots.give(other, [])
            self._readings.append(reading)

    def remove(self, generation: Generation) -> None:
        """Forget a generation that ended."""
        self._readings = [each for each in self._readings if each.generation is not generation]

    def next_readings(self, budget: int) -> list[PromptReading]:
        """What to read next: from the first in line, and those behind it that fit beside it.

        Texts that are only read stand behind prompts whose clients wait for a first token.

        Args:
            budget: most tokens of this step, padding included.
        """
        chosen: list[PromptReading] = []
        n_used = longest = 0
        for reading in sorted(self._readings, key=lambda each: each.generation.is_only_read):
            if self._model.pads_prompts:
                chunk = min(reading.n_left, budget)
                longest = max(longest, chunk)
                n_used = longest * (len(chosen) + 1)
            else:
                chunk = min(reading.n_left, budget - n_used)
                n_used += chunk
            if chunk == 0 or n_used > budget or not self._fit([*chosen, reading], longest):
                break
            reading.chunk = chunk
            chosen.append(reading)
        return chosen

    def settle(self, reading: PromptReading) -> None:
        """Let a text that was read to its end go on: sequences that began alike get copies."""
        if reading.n_left == 0 and reading in self._readings:
            self._readings.remove(reading)
            first, *others = reading.sequences
            for other in others:
                self._model.cache.copy_row(first.held_slot, other.held_slot, first.n_held)
                other.n_held = first.n_held

    def is_waiting(self, generation: Generation) -> bool:
        """Whether a part of the generation is still to be read."""
        return any(reading.generation is generation for reading in self._readings)

    def _fit(self, readings: list[PromptReading], longest: int) -> bool:
        """Whether these have room in their rows when all are padded to the longest."""
        if len(readings) == 1 or not self._model.pads_prompts:
            return True
        return max(each.n_read for each in readings) + longest <= self._model.max_length


def plan_readings(generation: Generation) -> list[PromptReading]:
    """What has to be read before a generation can go on.

    Sequences that have nothing of their own yet share one reading.
    """
    sequences = generation.to_read
    if all(not sequence.row.generated for sequence in sequences):
        return [PromptReading(generation, sequences, list(generation.fitted.input_ids))]
    return [
        PromptReading(generation, [each], [*each.row.input_ids, *each.row.generated])
        for each in sequences
    ]
