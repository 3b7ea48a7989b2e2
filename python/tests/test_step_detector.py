"""Steps are found in the sequence of optimizers that step."""

from __future__ import annotations

from offprof.step_detector import StepDetector, Tick


def ticks(sequence: str) -> list[Tick]:
    """Returns the result of each step of the optimizers, which are letters."""
    detector = StepDetector()
    return [detector.feed(ord(letter)) for letter in sequence]


def test_every_step_of_a_single_optimizer_ends_a_step() -> None:
    assert ticks("AAAA") == [Tick.STEP_END] * 4


def test_two_optimizers_that_alternate_end_a_step_together() -> None:
    none, end = Tick.NONE, Tick.STEP_END
    assert ticks("ABABABAB") == [end, Tick.RESTART, none, end, none, end, none, end]


def test_a_second_optimizer_that_appears_later_restarts_the_recording() -> None:
    # A discriminator that steps three times for each step of the generator.
    found = ticks("AAABAAABAAAB")
    assert found[:4] == [Tick.STEP_END, Tick.STEP_END, Tick.STEP_END, Tick.RESTART]
    assert found[4:] == [Tick.NONE, Tick.NONE, Tick.NONE, Tick.STEP_END] + [Tick.NONE] * 3 + [Tick.STEP_END]


def test_an_order_that_changes_restarts_the_recording() -> None:
    assert ticks("ABABA" + "A")[-1] is Tick.RESTART


def test_optimizers_without_a_repeated_order_end_no_further_step() -> None:
    assert ticks("ABCDEF") == [Tick.STEP_END, Tick.RESTART] + [Tick.NONE] * 4
