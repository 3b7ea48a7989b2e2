#!/usr/bin/env python3
"""Imitates the output of offprof without training anything. FAKE_HANG: a run of a model whose file name contains this
text writes to the named pipe FAKE_PIPE, keeps it open (also in a child process), and never ends. FAKE_TRACE_BYTES: size
of traces. FAKE_DEVICE: name of the device. FAKE_GRADIENTS: result of the comparison of gradients."""

import json
import os
import pathlib
import signal
import sys

arguments = sys.argv[1:]
hang = os.environ.get("FAKE_HANG")
if hang and arguments[0] == "run" and hang in pathlib.Path(arguments[1]).name:
    with open(os.environ["FAKE_PIPE"], "w", encoding="utf-8") as pipe:
        if os.fork() != 0:
            pipe.write("hangs")
            pipe.flush()
        while True:
            signal.pause()
if "-o" in arguments:
    output = pathlib.Path(arguments[arguments.index("-o") + 1])
    output.write_bytes(b"0" * int(os.environ.get("FAKE_TRACE_BYTES", "10")))
memory = {"device_peak_bytes": 100, "host_peak_bytes": 10}
print(json.dumps({
    "environment": {"device_name": os.environ.get("FAKE_DEVICE", "Fake GPU, 1 SMs"), "torch_version": "2.11.0"},
    "measured": memory, "replayed": memory, "gradients": os.environ.get("FAKE_GRADIENTS", "bitwise"),
}))  # fmt: skip
