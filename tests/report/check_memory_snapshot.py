"""Checks a memory snapshot of a step: check_memory_snapshot.py SNAPSHOT PEAK_BYTES, the predicted device peak of the step."""

from __future__ import annotations

import pickle
import sys
import unittest
from pathlib import Path
from typing import Any, ClassVar


class MemorySnapshot(unittest.TestCase):
    snapshot: ClassVar[dict[str, Any]]
    peak_bytes: ClassVar[int]

    def entries(self, *actions: str) -> list[dict[str, Any]]:
        [trace] = self.snapshot["device_traces"]
        return [entry for entry in trace if entry["action"] in actions]

    def test_has_the_members_of_a_snapshot(self) -> None:
        self.assertEqual(
            set(self.snapshot), {"segments", "device_traces", "allocator_settings", "external_annotations"}
        )

    def test_reaches_the_predicted_peak_to_the_byte(self) -> None:
        changes = [
            entry["size"] if entry["action"] == "alloc" else -entry["size"]
            for entry in self.entries("alloc", "free_completed")
        ]
        end = sum(block["requested_size"] for segment in self.snapshot["segments"] for block in segment["blocks"])
        live = peak = end - sum(changes)
        for change in changes:
            live += change
            peak = max(peak, live)
        self.assertEqual(peak, self.peak_bytes)

    def test_a_free_has_the_address_and_the_size_of_its_allocation(self) -> None:
        live: dict[int, int] = {}
        for entry in self.entries("alloc", "free_completed"):
            if entry["action"] == "alloc":
                self.assertNotIn(entry["addr"], live)
                live[entry["addr"]] = entry["size"]
            elif entry["addr"] in live:
                self.assertEqual(live.pop(entry["addr"]), entry["size"])

    def test_times_do_not_decrease(self) -> None:
        times = [entry["time_us"] for entry in self.snapshot["device_traces"][0]]
        self.assertEqual(times, sorted(times))

    def test_blocks_fill_their_segments(self) -> None:
        for segment in self.snapshot["segments"]:
            address = segment["address"]
            for block in segment["blocks"]:
                self.assertEqual(block["address"], address)
                address += block["size"]
            self.assertEqual(address - segment["address"], segment["total_size"])

    def test_allocations_name_operator_line_and_module(self) -> None:
        frames = [tuple(frame.values()) for entry in self.entries("alloc") for frame in entry["frames"]]
        self.assertIn(("operator", 0, "aten::linear"), frames)
        self.assertIn(("model.py", 10, "blocks.layer0.attention"), frames)


if __name__ == "__main__":
    MemorySnapshot.snapshot = pickle.loads(Path(sys.argv[1]).read_bytes())
    MemorySnapshot.peak_bytes = int(Path(sys.argv[2]).read_text())
    unittest.main(argv=sys.argv[:1])
