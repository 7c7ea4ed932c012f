"""Numbers in sentences: three digits in a unit of a handy size, and nothing of round-off."""

from dataclasses import replace

import pytest

from flexctl.view.explain import explain
from flexctl.view.words.numbers import (
    angle,
    at_most,
    counted,
    figure,
    length,
    listed,
    percent,
    times,
)
from tests.verdict_record import evaluation


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (2.1834, "2.18 m"), (-2.1834, "-2.18 m"), (0.9995, "1 m"), (0.99949, "999 mm"),
        (0.006614, "6.61 mm"), (-0.006614, "-6.61 mm"), (5e-7, "0.0005 mm"),
        (4.9e-7, "less than 0.001 mm"), (-4.9e-7, "less than 0.001 mm"), (0.0, "0 mm"),
    ],
)  # fmt: skip
def test_lengths(value, words):
    assert length(value) == words


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (3.1416, "3.14 rad"), (-0.1714, "-0.171 rad"), (0.1, "0.1 rad"), (0.0999, "99.9 mrad"),
        (-0.00517, "-5.17 mrad"), (5e-7, "0.0005 mrad"), (0.0, "0 mrad"),
        (-4.9e-7, "less than 0.001 mrad"),
    ],
)  # fmt: skip
def test_angles(value, words):
    assert angle(value) == words


@pytest.mark.parametrize(
    ("value", "words"),
    [(0.0066, "at most 6.6 mm"), (1e-8, "less than 0.001 mm"), (0.0, "at most 0 mm")],
)
def test_bounds_of_next_to_nothing_are_strict(value, words):
    assert at_most(length(value)) == words
    residual = replace(evaluation("a").residual, tip_error_max=value)
    assert f"its tip error is {words} and settles" in explain(evaluation("a", residual=residual))


@pytest.mark.parametrize(
    ("value", "words"),
    [(12.34, "12.3"), (999.4, "999"), (999.7, "1000"), (12745.0, "12745"), (-0.0, "0")],
)
def test_large_figures_are_written_in_full(value, words):
    assert figure(value) == words


@pytest.mark.parametrize(("value", "words"), [(0.00291, "0.291 %"), (0.349, "34.9 %")])
def test_shares(value, words):
    assert percent(value) == words


@pytest.mark.parametrize(
    ("parts", "words"),
    [([], ""), (["a"], "a"), (["a", "b"], "a and b"), (["a", "b", "c", "d"], "a, b, c and d")],
)
def test_lists(parts, words):
    assert listed(parts) == words


@pytest.mark.parametrize(("count", "words"), [(0, "0 arms"), (1, "1 arm"), (2, "2 arms")])
def test_counts(count, words):
    assert counted(count, "arm") == words


@pytest.mark.parametrize(
    ("factor", "words"),
    [
        (1.274, "of 1.3"), (43.2, "of 43"), (434.0, "of 430"), (999.0, "of 1000"),
        (1000.0, "above 1000"), (1500.0, "above 1000"), (5.1e7, "above 1000"),
    ],
)  # fmt: skip
def test_factors(factor, words):
    assert times(factor) == f"a factor {words}"
