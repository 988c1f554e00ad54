"""Our engine as a child process; tokenising and spelling the text are in its time."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from bench.children.protocol import Message, serve
from bench.model_choice import ModelChoice
from bench.our_engine import OurEngine


def main() -> None:
    """Serve the model that the arguments name."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source")
    parser.add_argument("--precision", required=True)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--slots", type=int, default=64)
    parser.add_argument("--general", action="store_true")
    arguments = parser.parse_args()

    def load() -> Callable[[Message], int]:
        choice = ModelChoice(arguments.source, None, arguments.precision, arguments.device)
        engine = OurEngine(choice, slots=arguments.slots, is_general=arguments.general)
        return lambda message: engine.run(message["requests"]).n_tokens

    serve(load, ("neodim", "torch", "transformers"))


if __name__ == "__main__":
    main()
