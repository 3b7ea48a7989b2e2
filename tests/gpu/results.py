"""Rows of gpu_check, in a JSON file and a table. Both files are replaced atomically after every row."""

import contextlib
import getpass
import json
import os
import pathlib
import re
import socket

SCHEMA = "offprof.gpu_check/1"
MOST_LOG_BYTES = 4 << 20


class Check:
    """One row: a check with its figures and the bounds that it missed."""

    def __init__(self, name):
        self.name = name
        self.figures = {}
        self.misses = []
        self.skipped = None
        self.finished = False

    def hold(self, what, value, bound, is_kept):
        """Records a figure and compares it with its bound. `value` is None if it could not be measured."""
        self.figures[what] = value
        if value is None:
            self.misses.append(f"{what} was not measured")
        elif not is_kept:
            self.misses.append(f"{what} is {value}, not {bound}")

    def verdict(self):
        if not self.finished:
            return "unfinished"
        if self.skipped:
            return "skipped"
        return "missed" if self.misses else "kept"

    def to_json(self):
        json_ = {"check": self.name, "verdict": self.verdict(), "figures": self.figures}
        if self.misses:
            json_["misses"] = self.misses
        if self.skipped:
            json_["why"] = self.skipped
        return json_


class Results:
    """gpu_check.json, table.md and log.txt in a folder. Keeps rows of earlier parts, unless they are of another device."""

    def __init__(self, folder, simulated, commit=None):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.simulated = simulated
        self.commit = commit
        self.device = None
        self.torch_version = None
        self.rows = {}
        self._read()

    def _read(self):
        """Reads the rows of earlier parts. A file in another format is renamed, not lost."""
        path = self.folder / "gpu_check.json"
        if not path.exists():
            return
        try:
            earlier = json.loads(path.read_text(encoding="utf-8"))
            rows = {row["check"]: row for row in earlier["checks"]}
        except (ValueError, KeyError, TypeError):
            os.replace(path, path.with_suffix(".unreadable"))
            return
        if earlier.get("schema") != SCHEMA or earlier.get("simulated") != self.simulated:
            return
        self.device = earlier.get("device")
        self.torch_version = earlier.get("torch_version")
        self.rows = rows

    def set_environment(self, environment):
        """Sets the environment of this part's runs. Drops rows of another device or another LibTorch."""
        device, version = environment.get("device_name"), environment.get("torch_version")
        if self.device not in (None, device) or self.torch_version not in (None, version):
            print(f"dropping the rows of {self.device}, LibTorch {self.torch_version}", flush=True)
            self.rows = {name: row for name, row in self.rows.items() if row.get("is_new")}
        self.device, self.torch_version = device, version

    def put(self, check):
        """Records a row, which may be unfinished, and writes all files."""
        self.rows[check.name] = {**check.to_json(), "commit": self.commit, "is_new": True}
        self.write()

    def log(self, name, text):
        """Appends the output of a child. Removes the oldest text if the log grows too large."""
        path = self.folder / "log.txt"
        before = path.read_text(encoding="utf-8") if path.exists() else ""
        whole = f"{before}\n### {name}\n{text}".encode()[-MOST_LOG_BYTES:]
        replace(path, whole.decode(errors="ignore"))

    def to_json(self):
        rows = [{key: value for key, value in row.items() if key != "is_new"} for row in self.rows.values()]
        return {
            "schema": SCHEMA,
            "device": self.device,
            "torch_version": self.torch_version,
            "simulated": self.simulated,
            "checks": rows,
        }

    def write(self):
        result = self.to_json()
        replace(self.folder / "gpu_check.json", json.dumps(result, indent=2) + "\n")
        replace(self.folder / "table.md", table(result))

    def record(self, folder):
        """Writes the JSON and the table for the repository, without user names, host names and paths."""
        folder = pathlib.Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        result = anonymous(self.to_json())
        name = "gpu_check_" + re.sub(r"[^a-z0-9]+", "_", (result["device"] or "no_device").split(",")[0].lower()).strip(
            "_"
        )
        replace(folder / f"{name}.json", json.dumps(result, indent=2) + "\n")
        replace(folder / f"{name}.md", table(result))


def replace(path, text):
    """Writes a file atomically: a reader sees either the complete old text or the complete new text."""
    beside = path.with_name(path.name + ".tmp")
    with open(beside, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(beside, path)


def table(result):
    rows = ["| check | verdict | figures |", "|---|---|---|"]
    for row in result["checks"]:
        figures = row.get("why") or ", ".join(f"{key} {value}" for key, value in row["figures"].items())
        misses = "; ".join(line.splitlines()[0] for line in row.get("misses", []))
        cell = (figures + (f"; **{misses}**" if misses else "")).replace("|", "\\|")
        rows.append(f"| {row['check']} | {row['verdict']} | {cell} |")
    if result["device"]:
        rows.append(f"\n{result['device']}, LibTorch {result['torch_version']}.")
    if result["simulated"]:
        rows.append("\nRun on a virtual GPU: nothing here was measured on a real GPU.")
    return "\n".join(rows) + "\n"


PATH = re.compile(r"(?<![\w.\-/~])~?/[\w.+\-]+(?:/[\w.+\-]*)*")


def names_of_this_machine():
    """Returns the names of the user and of the host. Omits very short names, which would match ordinary words."""
    names = {socket.gethostname(), socket.gethostname().split(".")[0]}
    with contextlib.suppress(KeyError, OSError):
        names.add(getpass.getuser())
    return {name for name in names if len(name) > 3 and name not in ("root", "localhost")}


def anonymous(value, names=None):
    """Returns the JSON with paths shortened to the file's name, and names of user and host replaced."""
    names = names_of_this_machine() if names is None else names
    if isinstance(value, dict):
        return {key: anonymous(item, names) for key, item in value.items()}
    if isinstance(value, list):
        return [anonymous(item, names) for item in value]
    if not isinstance(value, str):
        return value
    value = PATH.sub(lambda path: pathlib.PurePath(path.group()).name, value)
    for name in names:
        value = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", "NAME", value)
    return value
