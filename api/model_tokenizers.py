"""The tokenizers of this service's models: published by workers, parsed once in each process.

A text of a megabyte takes seconds, for which no other request is to wait. So that work is done in
other threads, and by the functions for batches: of tokenizers 0.23, only those let go of the
interpreter. Parsing does not, and takes half a second of a process's life.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import TypeVar

import gevent
from tokenizers import Encoding, Tokenizer

from api.submission import Submission
from workers.contract.errors import InvalidParams, MissingCapability, ModelLoading
from workers.contract.tokenizer_store import TokenizerFile, TokenizerStore

Value = TypeVar("Value")


class ModelTokenizers:
    """The tokenizers as this process knows them.

    Args:
        store: where workers publish them.
        submission: knows what models there are.
    """

    def __init__(self, store: TokenizerStore, submission: Submission) -> None:
        self._store = store
        self._submission = submission
        self._parsed: dict[str, tuple[str, Tokenizer]] = {}
        self._parsing = Lock()

    def json_text(self, model: str) -> str:
        """A model's `tokenizer.json`.

        Raises:
            UnknownModel: no text model has that name.
            ModelLoading: no worker has told its tokenizer yet.
            MissingCapability: the model has no such file.
            redis.RedisError: Redis does not answer.
        """
        self._submission.check_model(model)
        return _in_a_thread(self._file(model).unpack)

    def encode(self, model: str, text: str) -> Encoding:
        """A text's tokens, with whatever the tokenizer puts around them; raises as above."""
        tokenizer = self._tokenizer(model)
        return _in_a_thread(lambda: tokenizer.encode_batch([text])[0])

    def decode(self, model: str, ids: tuple[int, ...]) -> str:
        """The text of token ids, without special tokens; raises as above.

        Raises:
            InvalidParams: the vocabulary does not have one of them.
        """
        tokenizer = self._tokenizer(model)
        for each in set(ids):
            if tokenizer.id_to_token(each) is None:
                raise InvalidParams("token_ids", f"the model has no token {each}")
        return _in_a_thread(lambda: tokenizer.decode_batch([ids])[0])

    def _tokenizer(self, model: str) -> Tokenizer:
        self._submission.check_model(model)
        # Who comes while it is parsed waits for that, rather than parse it too.
        with self._parsing:
            known = self._parsed.get(model)
            if known is None or known[0] != self._store.digest(model):
                file = self._file(model)
                known = (file.digest, Tokenizer.from_str(_in_a_thread(file.unpack)))
                self._parsed[model] = known
            return known[1]

    def _file(self, model: str) -> TokenizerFile:
        file = self._store.get(model)
        if file is not None:
            return file
        if self._submission.is_ready(model):
            raise MissingCapability(f"the model {model} has no tokenizer.json")
        raise ModelLoading(f"the model {model} is not ready yet")


def _in_a_thread(work: Callable[[], Value]) -> Value:
    """What a function gives, which runs while this process goes on to answer other requests."""
    result: Value = gevent.get_hub().threadpool.apply(work)
    return result
