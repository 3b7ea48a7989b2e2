"""Tests times_row.py."""

import subprocess
import sys
import unittest

import times_row


def setting(predicted, measured, sets_drift=False):
    return {
        "predicted": {"step_time_ns": predicted},
        "measured": {"step_time_ns": measured},
        "sets_drift": sets_drift,
        "gradients": "bitwise",
    }


def accuracy():
    return {
        "mean_error": 0.02,
        "p95_error": 0.05,
        "max_error": 0.06,
        "mean_noise": 0.01,
        "p95_noise": 0.03,
        "kendall_tau": 1.0,
        "ranked_pairs": 2,
        "mean_error_less_noise": [0.01, 0.025],
        "p95_error_less_noise": [0.04, 0.055],
        "kendall_tau_less_noise": [0.9, 1.0],
    }


def report(settings):
    return {
        "settings": settings,
        "by_trace": dict(accuracy(), mean_error=0.04),
        "less_drift": accuracy(),
        "drift": 0.03,
        "recalibrated_drift": None,
        "verdicts": {"mean_error": "within"},
        "outcome": "hold",
        "memory_is_exact": True,
        "gradients_are_right": True,
        "repeated_visits": 0,
        "displaced_visits": 0,
    }


KEEP = setting(100, 100, sets_drift=True)


class TimesRow(unittest.TestCase):
    def test_tau_includes_all_pairs_except_those_of_keep(self):
        settings = [KEEP, setting(110, 120), setting(130, 125), setting(120, 140)]
        self.assertAlmostEqual(times_row.tau_of_all_pairs(report(settings)), (2 - 1) / 3)

    def test_equal_predictions_have_no_order(self):
        settings = [KEEP, setting(110, 120), setting(110, 125)]
        self.assertEqual(times_row.tau_of_all_pairs(report(settings)), 0)

    def test_equal_measurements_are_not_counted(self):
        settings = [KEEP, setting(110, 120), setting(110, 120), setting(130, 140)]
        self.assertEqual(times_row.tau_of_all_pairs(report(settings)), 1)

    def test_keep_for_all_predicts_the_measured_time_of_keep(self):
        errors = times_row.errors_of_keep(report([KEEP, setting(1, 125), setting(1, 200)]))
        self.assertEqual(errors, [0.2, 0.5])

    def test_there_is_no_keep_for_all_without_keep(self):
        self.assertEqual(times_row.errors_of_keep(report([setting(1, 125)])), [])
        self.assertIn("-", times_row.row(report([setting(1, 125)]), "m", "none", "1"))

    def test_a_row_has_one_cell_per_column(self):
        cells = times_row.row(report([KEEP, setting(110, 120), setting(130, 125)]), "mlp", "1GB/s", "2")
        named = dict(zip(times_row.COLUMNS, cells, strict=True))
        self.assertEqual(len(cells), len(times_row.COLUMNS))
        self.assertEqual(named["from the trace alone: mean error"], "4.00 %")
        self.assertEqual(named["drift-corrected: mean error"], "2.00 % (1.00 to 2.50)")
        self.assertEqual(named["tau, all pairs"], "1.000")
        self.assertEqual(named["tries"], "2")

    def test_the_head_and_its_rule_have_the_same_width(self):
        head = subprocess.run(
            [sys.executable, times_row.__file__, "--head"], stdout=subprocess.PIPE, text=True, check=True
        )
        names, rule = head.stdout.splitlines()
        self.assertEqual(names.count("|"), rule.count("|"))


if __name__ == "__main__":
    unittest.main()
