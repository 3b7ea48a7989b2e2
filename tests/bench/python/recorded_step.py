"""Measures how much recording slows a training step of a Python program.

A step runs in turn unrecorded and recorded, from `begin_step` to `end_step`. Usage: recorded_step.py DEVICE. Prints one
JSON object.
"""

import json
import statistics
import sys
import time

from offprof.virtual_gpu import open_virtual_gpu

DEVICE = sys.argv[1]
if DEVICE.startswith("virtual:"):
    open_virtual_gpu(DEVICE.removeprefix("virtual:"))  # before torch

import torch  # noqa: E402
from offprof.code_locator import CodeLocator  # noqa: E402
from offprof.native import load_extension  # noqa: E402
from torch import nn  # noqa: E402

ROUNDS = 15
VOCABULARY, WIDTH, BLOCKS, BATCH, LENGTH = 1000, 256, 4, 4, 64


class Model(nn.Module):
    """A small transformer that returns the loss of predicting each next token."""

    def __init__(self) -> None:
        super().__init__()
        block = nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, dropout=0.1, batch_first=True)
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.blocks = nn.TransformerEncoder(block, BLOCKS, enable_nested_tensor=False)
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        logits = self.head(self.blocks(self.embedding(tokens)))
        return nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())


class Program:
    """A model, its optimizer, and the recording of its steps."""

    def __init__(self) -> None:
        extension = load_extension()
        request = extension.make_request("transformer", DEVICE, ["keep"], 1, 1, 1, "", "")
        locator = CodeLocator()
        self._recording = extension.Recording(request, lambda what: None, locator.locate)
        self._phases = extension.Phase
        place = "cpu" if DEVICE == "host" else "cuda"
        self._model = Model().to(place)
        self._parameters = list(self._model.parameters())
        self._optimizer = torch.optim.AdamW(self._parameters)
        self._tokens = torch.randint(0, VOCABULARY, (BATCH, LENGTH), device=place)
        locator.learn([self._model])

    def step(self) -> float:
        """Makes one step and returns its seconds. The first step of a recording is not recorded, the next ones are."""
        recording = self._recording
        began = time.process_time()
        recording.begin_step(self._parameters, [])
        loss = self._model(self._tokens)
        recording.begin_phase(self._phases.BACKWARD)
        loss.backward()
        recording.end_backward()
        recording.begin_phase(self._phases.OPTIMIZER)
        self._optimizer.step()
        self._optimizer.zero_grad()
        recording.end_step()
        return time.process_time() - began

    def plain_and_recorded_step(self) -> tuple[float, float]:
        """Makes the first two steps of a new recording and returns their seconds."""
        self._recording.restart()
        return self.step(), self.step()


def main() -> None:
    torch.set_num_threads(1)
    program = Program()
    times = [program.plain_and_recorded_step() for _ in range(ROUNDS)]
    plain, recorded = (statistics.median(column) for column in zip(*times[1:], strict=True))
    print(json.dumps({"plain_ms": plain * 1e3, "recorded_ms": recorded * 1e3, "ratio": recorded / plain}))


if __name__ == "__main__":
    main()
