"""Opens a report in headless Chromium: no errors, all interactions work, screenshots at three widths.

check_report_in_browser.py PAGE PEAK_BYTES SCREENSHOTS PROGRAM

PAGE compares two traces; PEAK_BYTES is the predicted device peak of the last one; PROGRAM is offprof. Exit status 77 if there is no Chromium.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import ClassVar

from browser import PROGRAMS, Browser, find_browser

WIDTHS = (800, 1280, 1920)
MEGABYTE = 1_000_000


def text_of(selector: str) -> str:
    return f"document.querySelector('{selector}').textContent"


class Report(unittest.TestCase):
    page: ClassVar[Path]
    peak_bytes: ClassVar[int]
    screenshots: ClassVar[Path]
    program: ClassVar[Path]
    browser: ClassVar[Browser]

    def setUp(self) -> None:
        self.browser.problems.clear()
        self.browser.open(self.page, 1280)

    def tearDown(self) -> None:
        self.browser.call("Runtime.evaluate", expression="0")  # reads the events until now
        self.assertEqual(self.browser.problems, [])

    def rows(self) -> list[str]:
        rows: list[str] = self.browser.evaluate(
            "[...document.querySelectorAll('#saved-table tbody tr')].map((row) => row.textContent)"
        )
        return rows

    def set_filter(self, text: str) -> None:
        self.browser.evaluate(
            f"(() => {{ const box = document.querySelector('#saved-filter'); box.value = '{text}'; "
            "box.dispatchEvent(new Event('input')); })()"
        )

    def times_of_axis(self) -> list[str]:
        times: list[str] = self.browser.evaluate(
            "[...document.querySelectorAll('#timeline line.axis + text')].map((text) => text.textContent)"
        )
        return times

    def test_is_small(self) -> None:
        self.assertLess(self.page.stat().st_size, 3 * MEGABYTE)

    def test_draws_the_predicted_peak_to_the_byte(self) -> None:
        peak = self.browser.evaluate("document.querySelector('#memory-chart').dataset.peakBytes")
        self.assertEqual(int(peak), self.peak_bytes)

    def test_loads_nothing_and_stays_within_the_window(self) -> None:
        self.assertEqual(self.browser.evaluate("performance.getEntriesByType('resource').length"), 0)
        for width in (*WIDTHS, 400):
            self.browser.open(self.page, width)
            self.assertLessEqual(self.browser.evaluate("document.documentElement.scrollWidth"), width)

    def test_verdict_needs_no_script(self) -> None:
        self.browser.reload_without_scripts()
        root = self.browser.call("DOM.getDocument")["root"]["nodeId"]
        verdict = self.browser.call("DOM.querySelector", nodeId=root, selector="#verdict p")["nodeId"]
        self.assertIn("peaks at", self.browser.call("DOM.getOuterHTML", nodeId=verdict)["outerHTML"])
        self.assertGreater(self.browser.call("DOM.getBoxModel", nodeId=verdict)["model"]["height"], 0)

    def test_hover_names_operator_module_and_line(self) -> None:
        self.browser.hover("#memory-chart", 0.4, 0.8)
        tooltip = self.browser.evaluate(text_of("#tooltip"))
        self.assertFalse(self.browser.evaluate("document.querySelector('#tooltip').hidden"))
        self.assertRegex(tooltip, r"in (linear|LinearBackward0)blocks\.layer\d+.*model\.py:\d+")
        self.browser.hover("h1")
        self.assertTrue(self.browser.evaluate("document.querySelector('#tooltip').hidden"))

    def test_hover_over_the_timeline_names_the_operator(self) -> None:
        self.browser.hover("#timeline", 0.3, 0.25)
        self.assertRegex(self.browser.evaluate(text_of("#tooltip")), r"linear|LinearBackward0")

    def test_what_is_drawn_as_computation_is_no_stall(self) -> None:
        times = self.browser.evaluate("({...document.querySelector('#timeline').dataset})")
        self.assertGreater(int(times["stallsNs"]), 0)
        self.assertLessEqual(int(times["computeNs"]) + int(times["stallsNs"]), int(times["stepNs"]))

    def test_memory_is_stacked_by_kind_operator_module_and_line(self) -> None:
        for by, expected in (
            ("kind", "saved tensors"),
            ("op", "linear"),
            ("module", "blocks.layer*"),
            ("line", "model.py:"),
        ):
            self.browser.click(f'#memory-controls [data-value="{by}"]')
            self.assertIn(expected, self.browser.evaluate(text_of("#memory-legend")))
            peak = self.browser.evaluate("document.querySelector('#memory-chart').dataset.peakBytes")
            self.assertEqual(int(peak), self.peak_bytes)

    def test_drag_zooms_both_charts_and_double_click_shows_the_whole_step(self) -> None:
        whole = self.times_of_axis()
        self.browser.drag("#memory-chart", 0.5, 0.6)
        zoomed = self.times_of_axis()
        self.assertNotEqual(zoomed, whole)
        self.browser.click("#memory-chart", 0.5, 0.5, count=2)
        self.assertEqual(self.times_of_axis(), whole)
        self.browser.drag("#timeline", 0.2, 0.4)
        self.assertNotEqual(self.times_of_axis(), whole)
        self.browser.click("#zoom-all")
        self.assertEqual(self.times_of_axis(), whole)
        self.browser.click("#zoom-in")
        self.assertNotEqual(self.times_of_axis(), whole)

    def test_a_point_of_the_frontier_shows_its_policy(self) -> None:
        points = self.browser.evaluate("document.querySelectorAll('#frontier circle').length")
        self.assertGreater(points, 1)
        before = self.browser.evaluate(text_of("#picked-file"))
        self.browser.click("#frontier circle:nth-of-type(1)")
        self.assertNotEqual(self.browser.evaluate(text_of("#picked-file")), before)
        self.assertIn("offprof.policy/1", self.browser.evaluate(text_of("#picked-file")))
        self.assertIn("peak of the chosen policy", self.browser.evaluate(text_of("#picked-peak")))

    def test_the_policy_of_a_point_can_be_simulated(self) -> None:
        self.browser.click("#frontier circle:nth-of-type(1)")
        command = self.browser.evaluate(text_of("#frontier-details .code")).split()
        self.assertEqual((command[0], command[3:]), ("offprof", ["--policy", "policy.json"]))
        with tempfile.TemporaryDirectory() as folder:
            policy = Path(folder) / "policy.json"
            policy.write_text(self.browser.evaluate(text_of("#picked-file")))
            words = [self.program, command[1], command[2], "--policy", policy, "--format", "json"]
            end = subprocess.run(words, capture_output=True, text=True, check=False)
            self.assertEqual(end.returncode, 0, end.stderr)
            predicted = json.loads(policy.read_text())["predicted"]
            self.assertEqual(json.loads(end.stdout)["predicted"]["device_peak_bytes"], predicted["device_peak_bytes"])

    def test_texts_of_the_frontier_do_not_overlap(self) -> None:
        for width in (400, 800):
            self.browser.open(self.page, width)
            overlaps = self.browser.evaluate(
                "(() => { const texts = [...document.querySelectorAll('#frontier text')].map((text) => "
                "[text.textContent, text.getBoundingClientRect()]); const overlaps = []; "
                "texts.forEach(([a, one], i) => texts.slice(i + 1).forEach(([b, two]) => { "
                "if (one.left < two.right && two.left < one.right && one.top < two.bottom && two.top < one.bottom) "
                "overlaps.push(a + ' / ' + b); })); return overlaps; })()"
            )
            self.assertEqual(overlaps, [], f"{width} px")

    def test_a_heading_sorts_the_table(self) -> None:
        self.browser.click("#saved-table th:nth-child(1) button")
        ascending = self.rows()
        self.browser.click("#saved-table th:nth-child(1) button")
        self.assertEqual(self.rows(), ascending[::-1])
        self.assertEqual(
            self.browser.evaluate("document.querySelector('#saved-table th').getAttribute('aria-sort')"), "descending"
        )

    def test_the_filter_takes_words_columns_and_sizes(self) -> None:
        everything = self.rows()
        self.set_filter("module:layer1")
        by_module = self.rows()
        self.assertTrue(0 < len(by_module) < len(everything))
        self.assertTrue(all("layer1" in row for row in by_module))
        self.set_filter("line:model.py:11")
        self.assertTrue(0 < len(self.rows()) < len(everything))
        self.set_filter(">100TiB")
        self.assertEqual(self.rows(), [])
        self.assertIn("0 of", self.browser.evaluate(text_of("#saved-count")))

    def test_a_module_in_the_table_becomes_the_filter(self) -> None:
        self.browser.click("#saved-table button.filter")
        self.assertRegex(
            self.browser.evaluate("document.querySelector('#saved-filter').value"), r"^module:blocks\.layer"
        )

    def test_the_table_adds_up_by_module(self) -> None:
        self.browser.click('#saved-controls [data-value="module"]')
        self.assertIn("blocks.layer*", self.rows()[0])

    def test_the_tree_map_is_entered_and_left(self) -> None:
        caption = self.browser.evaluate(text_of("#tree-caption"))
        self.browser.click("#tree-map g.pick", 0.3, 0.03)
        self.assertNotEqual(self.browser.evaluate(text_of("#tree-caption")), caption)
        self.browser.click("#tree-up")
        self.assertEqual(self.browser.evaluate(text_of("#tree-caption")), caption)

    def test_the_other_trace_can_be_shown(self) -> None:
        caption = self.browser.evaluate(text_of("#memory-caption"))
        self.browser.click('#page-controls [data-value="0"]')
        self.assertNotEqual(self.browser.evaluate(text_of("#memory-caption")), caption)

    def test_the_traces_have_the_same_axis(self) -> None:
        times, step = self.times_of_axis(), "document.querySelector('#timeline').dataset.stepNs"
        shown = self.browser.evaluate(step)
        self.browser.click('#page-controls [data-value="0"]')
        self.assertNotEqual(self.browser.evaluate(step), shown)
        self.assertEqual(self.times_of_axis(), times)

    def test_tables_are_as_wide_as_their_content(self) -> None:
        wider = "[...document.querySelectorAll('.scroll')].filter((box) => box.scrollWidth > box.clientWidth).length"
        for width in WIDTHS[1:]:
            self.browser.open(self.page, width)
            self.assertEqual(self.browser.evaluate(wider), 0, f"{width} px")

    def test_compares_the_traces(self) -> None:
        self.assertIn("device_peak_bytes", self.browser.evaluate(text_of("#comparison-metrics")))
        self.assertIn("saved tensors", self.browser.evaluate(text_of("#comparison-peaks")))

    def test_the_button_changes_the_theme(self) -> None:
        background = "getComputedStyle(document.body).backgroundColor"
        light = self.browser.evaluate(background)
        self.browser.click("#theme")
        self.assertNotEqual(self.browser.evaluate(background), light)

    def test_screenshots(self) -> None:
        self.screenshots.mkdir(parents=True, exist_ok=True)
        for width in WIDTHS:
            for style, dark, medium in (("light", False, "screen"), ("dark", True, "screen"), ("print", True, "print")):
                self.browser.open(self.page, width, dark, medium)
                file = self.screenshots / f"{width}-{style}.png"
                self.browser.screenshot(file)
                self.assertGreater(file.stat().st_size, 20_000)


def main(arguments: list[str]) -> int:
    program = find_browser()
    if program is None:
        print(f"skipped: there is no {' or '.join(PROGRAMS)}; scripts/setup.sh --browser installs one")
        return 77
    Report.page, Report.screenshots, Report.program = (Path(arguments[i]) for i in (0, 2, 3))
    Report.peak_bytes = int(Path(arguments[1]).read_text())
    with Browser(program) as browser:
        Report.browser = browser
        result = unittest.TextTestRunner(verbosity=2).run(unittest.defaultTestLoader.loadTestsFromTestCase(Report))
    return 0 if result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
