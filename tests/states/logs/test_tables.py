"""Counters that stand under a heading."""

from __future__ import annotations

from states.logs.tables import Table


def counted(*texts: str) -> list[tuple[str, float, float | None]]:
    table = Table()
    return [(one.name, one.value, one.total) for text in texts for one in table.readings(text)]


def test_a_value_on_the_next_line() -> None:
    assert counted("           Step           Time", "           7000       14.00000") == [
        ("step", 7000, None)
    ]


def test_a_heading_with_two_words_in_a_cell() -> None:
    assert counted("Step\tTraining Loss\tValidation Loss", "500\t1.25\t1.5") == [("step", 500, None)]


def test_all_units_of_a_comma_separated_log() -> None:
    assert counted("epoch,step,lr", "0,100,0.5", "1,300,0.3") == [
        ("epoch", 0, None),
        ("step", 100, None),
        ("epoch", 1, None),
        ("step", 300, None),
    ]


def test_a_row_that_ends_in_a_bar() -> None:
    head = "      Epoch    GPU_mem   box_loss   cls_loss       Size"
    row = "       4/90      3.25G      1.125      1.375        640: 100%|███| 8/8 [00:01<00:00,  4.5it/s]"
    assert ("epoch", 4, 90) in counted(head, row)


def test_no_heading_no_counter() -> None:
    assert counted("  7000   14.0") == []
    assert counted("Name  Time", "  7000   14.0") == []
    assert counted("the step is taken here", "7000 14.0") == []


def test_a_row_of_another_shape_is_left_alone() -> None:
    assert counted("Step  Time", "2031-05-06 took 14 s") == []
