"""Tests the behaviour of gpu_check.py for users who have a GPU for a few minutes, with a program that imitates offprof."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import unittest

here = pathlib.Path(__file__).parent
sys.path.insert(0, str(here))
import gpu_check  # noqa: E402
from children import Children, TimedOut  # noqa: E402
from results import SCHEMA, Check, Results, anonymous  # noqa: E402


class GpuCheckTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.out = self.folder / "out"
        self.pipe = self.folder / "pipe"
        os.mkfifo(self.pipe)

    def command(self, *options, device="cuda"):
        return [sys.executable, str(here / "gpu_check.py"), "--program", str(here / "fake_offprof.py"),
                "--device", device, "--out", str(self.out), "--scratch", str(self.folder / "scratch"),
                "--quick", *options]  # fmt: skip

    def check(self, *options, device="cuda", **environment):
        return subprocess.run(self.command(*options, device=device), env={**os.environ, **environment},
                              capture_output=True, text=True, check=False)  # fmt: skip

    def rows(self):
        result = json.loads((self.out / "gpu_check.json").read_text(encoding="utf-8"))
        self.assertEqual(result["schema"], SCHEMA)
        return {row["check"]: row["verdict"] for row in result["checks"]}

    def hanging(self, *options):
        """Starts a check whose run never ends. Returns its process and the pipe that the run keeps open."""
        environment = {**os.environ, "FAKE_HANG": "llama", "FAKE_PIPE": str(self.pipe)}
        job = subprocess.Popen(self.command(*options), env=environment, stdout=subprocess.DEVNULL)
        self.addCleanup(job.wait)
        pipe = self.pipe.open(encoding="utf-8")
        self.addCleanup(pipe.close)
        self.assertEqual(pipe.read(5), "hangs")
        return job, pipe

    def test_a_killed_run_keeps_the_rows_that_were_done(self):
        job, _ = self.hanging("--only", "memory-*")
        job.kill()
        job.wait()
        self.assertEqual(self.rows(), {"memory-transformer": "kept", "memory-llama": "unfinished"})
        self.assertIn("| memory-transformer | kept |", (self.out / "table.md").read_text(encoding="utf-8"))
        # After SIGKILL the job cannot end its children, so the test does that.
        os.killpg(self.group_of_the_run(), signal.SIGKILL)

    def group_of_the_run(self):
        for entry in pathlib.Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and str(self.folder).encode() in (entry / "cmdline").read_bytes():
                    return os.getpgid(int(entry.name))
            except (FileNotFoundError, ProcessLookupError, PermissionError):
                continue
        return self.fail("the run that hangs is gone")

    def test_a_terminated_run_ends_all_its_processes(self):
        job, pipe = self.hanging("--only", "memory-llama")
        job.terminate()
        self.assertEqual(pipe.read(), "")  # reaches the end when no process has it open for writing
        self.assertEqual(job.wait(), 128 + signal.SIGTERM)

    def test_a_later_part_adds_to_the_rows_of_an_earlier_one(self):
        self.assertEqual(self.check("--only", "memory-transformer").returncode, 0)
        self.assertEqual(self.check("--only", "memory-llama").returncode, 0)
        self.assertEqual(self.rows(), {"memory-transformer": "kept", "memory-llama": "kept"})

    def test_rows_of_another_device_are_dropped(self):
        self.check("--only", "memory-transformer")
        self.check("--only", "memory-llama", FAKE_DEVICE="Another GPU, 2 SMs")
        self.assertEqual(self.rows(), {"memory-llama": "kept"})

    def test_rows_of_a_virtual_gpu_and_a_real_one_are_not_mixed(self):
        self.check("--only", "memory-transformer", device="virtual:h200")
        self.check("--only", "memory-llama")
        self.assertEqual(self.rows(), {"memory-llama": "kept"})

    def test_gradients_that_differ_are_a_miss(self):
        done = self.check("--only", "memory-llama", FAKE_GRADIENTS="1 of 2 parameters differ; w differs by up to 1")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(self.rows(), {"memory-llama": "missed"})

    def test_gradients_that_differ_without_offloading_are_no_miss(self):
        done = self.check("--only", "memory-llama",
                          FAKE_GRADIENTS="not reproducible without offloading, by up to 1e-07")  # fmt: skip
        self.assertEqual(done.returncode, 0)
        self.assertIn("not reproducible", (self.out / "table.md").read_text(encoding="utf-8"))

    def test_no_check_starts_after_the_time_limit(self):
        done = self.check("--only", "memory-llama", "--minutes", "0")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(self.rows(), {"memory-llama": "unfinished"})

    def test_results_are_few_files_without_models_and_large_traces(self):
        self.check("--only", "memory-*")
        self.check("--only", "memory-llama", FAKE_TRACE_BYTES=str(gpu_check.MOST_TRACE_BYTES + 1))
        files = list(self.out.iterdir())
        self.assertTrue(all(file.is_file() for file in files))
        self.assertLessEqual(len(files), 8)
        self.assertEqual(sum(file.name.endswith(".pt") for file in files), 0)
        self.assertTrue((self.folder / "scratch" / "llama.json.gz").exists())

    def test_recorded_rows_contain_no_user_host_or_path(self):
        self.check("--only", "memory-llama", "--record", str(self.folder / "recorded"))
        self.assertEqual(sorted(file.name for file in (self.folder / "recorded").iterdir()),
                         ["gpu_check_fake_gpu.json", "gpu_check_fake_gpu.md"])  # fmt: skip
        row = {"misses": ["offprof run /home/somebody/x/model.pt: on node17 ~/a/b failed, 12 GB/s"], "seconds": 1.5}
        self.assertEqual(anonymous(row, {"node17"}),
                         {"misses": ["offprof run model.pt: on NAME b failed, 12 GB/s"], "seconds": 1.5})  # fmt: skip

    def test_an_unknown_check_is_bad_usage(self):
        self.assertEqual(self.check("--only", "memry-*").returncode, 2)

    def test_each_part_ends_within_nine_minutes(self):
        seconds: dict[int, int] = {}
        for entry in gpu_check.entries():
            shares_a_recording = entry.name.startswith(("tracing-", "copies-"))
            seconds[entry.part] = seconds.get(entry.part, 0) + (0 if shares_a_recording else entry.seconds)
        self.assertLessEqual(max(seconds.values()), 8.5 * 60)


class ChildrenTest(unittest.TestCase):
    def test_a_child_is_killed_at_its_time_limit(self):
        with self.assertRaisesRegex(TimedOut, "killed after .* s: sleep infinity"):
            Children().run(["sleep", "infinity"], 0.05)

    def test_processes_of_a_child_are_killed_with_it(self):
        with tempfile.TemporaryDirectory() as folder:
            pipe = pathlib.Path(folder) / "pipe"
            os.mkfifo(pipe)
            children = Children()
            environment = {"FAKE_HANG": "m.pt", "FAKE_PIPE": str(pipe)}
            command = [str(here / "fake_offprof.py"), "run", "m.pt"]
            runs = threading.Thread(target=children.run, args=(command, 3600, environment))
            runs.start()
            with pipe.open(encoding="utf-8") as held:
                self.assertEqual(held.read(5), "hangs")
                children.kill()
                self.assertEqual(held.read(), "")
            runs.join()

    def test_returns_output_and_status(self):
        self.assertEqual(Children().run(["sh", "-c", "echo a; echo b >&2; exit 3"], 60), (3, "a\n", "b\n"))


class ResultsTest(unittest.TestCase):
    def test_a_file_that_cannot_be_read_is_set_aside(self):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "gpu_check.json").write_text("{", encoding="utf-8")
            results = Results(folder, simulated=False)
            results.put(Check("a"))
            self.assertEqual({file.name for file in pathlib.Path(folder).iterdir()},
                             {"gpu_check.json", "gpu_check.unreadable", "table.md"})  # fmt: skip


if __name__ == "__main__":
    unittest.main()
