"""llama.cpp as a child process, over its own 4-bit file: prompts decoded together, best token each.

Through the batch interface of llama-cpp-python: its server answers one request at a time, and
would measure that instead.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any

from bench.children.protocol import Message, serve

CELLS = 256
"""A context's length per sequence is made a multiple of this, as llama.cpp does itself."""

MOST_TOKENS = 2048
"""Prompt tokens of one call."""


def main() -> None:
    """Serve the GGUF file that the arguments name."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("gguf")
    parser.add_argument("--threads", type=int, required=True)
    arguments = parser.parse_args()

    def load() -> Callable[[Message], int]:
        model = LlamaModel(arguments.gguf, arguments.threads)
        return lambda message: model.generate(message["prompts"], message["new_tokens"])

    serve(load, ("llama-cpp-python",))


class LlamaModel:
    """A GGUF file in llama.cpp, with one context for each shape of load.

    Args:
        gguf: the file.
        n_threads: threads that compute.
    """

    def __init__(self, gguf: str, n_threads: int) -> None:
        # Only in the peer's environment.
        import llama_cpp  # type: ignore[import-not-found]

        self._library = llama_cpp
        self._n_threads = n_threads
        llama_cpp.llama_backend_init()
        parameters = llama_cpp.llama_model_default_params()
        self._model = llama_cpp.llama_model_load_from_file(gguf.encode(), parameters)
        if not self._model:
            raise OSError(f"llama.cpp cannot load {gguf}")
        vocabulary = llama_cpp.llama_model_get_vocab(self._model)
        self._n_vocab = llama_cpp.llama_vocab_n_tokens(vocabulary)
        self._contexts: dict[tuple[int, int], Any] = {}
        self._batch = llama_cpp.llama_batch_init(MOST_TOKENS, 0, 1)

    def generate(self, prompts: Sequence[Sequence[int]], new_tokens: int) -> int:
        """Greedy tokens behind each prompt; the number of all of them.

        Raises:
            ValueError: the prompts together are longer than one call takes.
        """
        if sum(map(len, prompts)) > MOST_TOKENS:
            raise ValueError(f"prompts of more than {MOST_TOKENS} tokens together")
        context = self._context(len(prompts), max(map(len, prompts)) + new_tokens)
        library = self._library
        library.llama_memory_clear(library.llama_get_memory(context), True)
        parts: list[Sequence[int]] = list(prompts)
        lengths = [0] * len(prompts)
        for _ in range(new_tokens):
            ends = self._read(context, parts, lengths)
            parts = [[self._best(context, end)] for end in ends]
        return new_tokens * len(prompts)

    def _read(self, context: Any, parts: list[Sequence[int]], lengths: list[int]) -> list[int]:
        """Read a part behind each sequence; the places of their last tokens in the batch."""
        batch, place, ends = self._batch, 0, []
        for sequence, part in enumerate(parts):
            for token in part:
                batch.token[place] = token
                batch.pos[place] = lengths[sequence]
                batch.n_seq_id[place] = 1
                batch.seq_id[place][0] = sequence
                batch.logits[place] = False
                lengths[sequence] += 1
                place += 1
            batch.logits[place - 1] = True
            ends.append(place - 1)
        batch.n_tokens = place
        status = self._library.llama_decode(context, batch)
        if status != 0:
            raise RuntimeError(f"llama_decode ended with {status}")
        return ends

    def _best(self, context: Any, place: int) -> int:
        import numpy

        scores = self._library.llama_get_logits_ith(context, place)
        return int(numpy.ctypeslib.as_array(scores, shape=(self._n_vocab,)).argmax())

    def _context(self, n_sequences: int, length: int) -> Any:
        """A context for such loads; the warm-up round makes it."""
        cells = -(-length // CELLS) * CELLS
        if (n_sequences, cells) not in self._contexts:
            library = self._library
            parameters = library.llama_context_default_params()
            parameters.n_ctx = cells * n_sequences
            parameters.n_seq_max = n_sequences
            parameters.n_batch = MOST_TOKENS
            parameters.n_threads = self._n_threads
            parameters.n_threads_batch = self._n_threads
            context = library.llama_init_from_model(self._model, parameters)
            if not context:
                raise MemoryError("llama.cpp made no context")
            self._contexts[n_sequences, cells] = context
        return self._contexts[n_sequences, cells]


if __name__ == "__main__":
    main()
