"""`offprof.load`: the report of a trace in a notebook."""

from __future__ import annotations

import html
import os
from pathlib import Path

import offprof
import pytest
from conftest import Run
from offprof.loaded_trace import LoadedTrace, find_program


@pytest.fixture
def trace(offprof: Run, tmp_path: Path) -> Path:
    for command in (
        ("zoo", "make", "mlp", "--batch", 8, "--layers", 2, "-o", "model.pt"),
        ("run", "model.pt", "--calibration", "brief", "-o", "t.json.gz"),
    ):
        end = offprof(*command)
        assert end.returncode == 0, end.stderr
    return tmp_path / "t.json.gz"


def test_report_is_the_page_of_the_program(trace: Path, offprof: Run, tmp_path: Path) -> None:
    assert offprof("report", trace, "--no-frontier", "-o", tmp_path / "report.html").returncode == 0
    page = (tmp_path / "report.html").read_text()
    report = LoadedTrace((trace,)).report(frontier=False)

    def without_footer(text: str) -> str:  # it contains the command line
        return text.split("<footer")[0]

    assert without_footer(report) == without_footer(page)


def test_a_notebook_shows_the_report_in_a_frame(trace: Path) -> None:
    loaded = offprof.load(trace)
    frame = loaded._repr_html_()
    assert frame.startswith("<iframe srcdoc=")
    assert "<!DOCTYPE html>" in html.unescape(frame)
    assert loaded._repr_html_() is not None


def test_repr_is_the_call(trace: Path) -> None:
    assert repr(offprof.load(trace)) == f"offprof.load({str(trace)!r})"


def test_refuses_no_path_and_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(offprof.InputError, match="needs the path"):
        offprof.load()
    with pytest.raises(offprof.InputError, match="there is no file"):
        offprof.load(tmp_path / "none.json")


def test_refuses_a_file_that_is_no_trace(tmp_path: Path) -> None:
    file = tmp_path / "t.json"
    file.write_text("{}")
    with pytest.raises(offprof.InputError):
        offprof.load(file).report()


def test_program_is_found_beside_the_package() -> None:
    assert os.access(find_program(), os.X_OK)
