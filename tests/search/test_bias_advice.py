"""Underestimating on purpose against a search over all biases."""

from types import SimpleNamespace

import numpy as np
import pytest

from flexctl.robustness.stiffness.record import Interval, StabilityLimit
from flexctl.search.bias_advice import (
    OfferedBias,
    best_bias,
    bias_for,
    common_ends,
    tolerated_with,
)


def interval(lower, upper):
    """Give an interval that ends there; None: nothing ends it."""
    ends = [
        None if a is None else StabilityLimit(alpha=a, frequency=1.0, mode="m")
        for a in (lower, upper)
    ]
    return Interval(lower=ends[0], upper=ends[1])


def ends(exact, *path):
    """Give the common ends of a margin with these intervals of its pose and of the motion."""
    poses = [SimpleNamespace(interval=one) for one in path]
    return common_ends(SimpleNamespace(exact=exact, path=poses))


def offered(ends, bias):
    lower, upper = tolerated_with(ends, bias)
    return OfferedBias(bias=bias, lower=lower, upper=upper)


def tolerated(bias, lower, upper):
    """Largest error in both directions of K_file that a biased controller tolerates."""
    return min((1 + upper) / (1 + bias) - 1, 1 - (1 + lower) / (1 + bias))


@pytest.mark.parametrize(
    ("lower", "upper"), [(-0.4, 0.1), (-0.05, 0.3), (-0.2, 0.0), (-0.9, 2.5), (-0.1, 0.1)]
)
def test_no_other_bias_bears_more_in_both_directions(lower, upper):
    found = offered((lower, upper), best_bias((lower, upper)))
    others = [tolerated(b, lower, upper) for b in np.linspace(-0.95, 3, 4001)]

    assert found.tolerates == pytest.approx(tolerated(found.bias, lower, upper), rel=1e-12)
    assert found.tolerates >= max(others) - 1e-15


@pytest.mark.parametrize("upper", [0.0, 0.005, 0.5, 4.0])
def test_where_any_underestimate_is_harmless_all_of_the_stiffness_may_be_wrong(upper):
    without_limit = ends(interval(None, upper))
    found = offered(without_limit, best_bias(without_limit))

    assert found.tolerates == pytest.approx(1.0, rel=1e-15)
    assert (1 + found.bias) * 2 == pytest.approx(1 + upper, rel=1e-15)


@pytest.mark.parametrize("bias", [-0.35, -0.1, 0.0])
def test_with_any_bias_that_much_is_borne_above_and_below(bias):
    lower, upper = tolerated_with(ends(interval(-0.9, 0.2), interval(-0.4, 0.5)), bias)

    assert min(upper, -lower) == pytest.approx(tolerated(bias, -0.4, 0.2), rel=1e-12)
    assert (1 + bias) * (1 + upper) == pytest.approx(1.2, rel=1e-15)
    assert (1 + bias) * (1 + lower) == pytest.approx(0.6, rel=1e-15)


def test_the_worst_ends_of_all_poses_count():
    assert ends(interval(-0.5, 0.2), interval(-0.3, 0.4)) == (-0.3, 0.2)


@pytest.mark.parametrize(("lower", "tolerates"), [(-0.3, 0.3), (None, 1.0)])
def test_what_bears_any_overestimate_needs_no_bias(lower, tolerates):
    any_over = ends(interval(lower, None))
    found = offered(any_over, best_bias(any_over))

    assert (found.bias, found.tolerates) == (0.0, pytest.approx(tolerates, rel=1e-15))
    assert bias_for(any_over, 0.5) == 0.0


@pytest.mark.parametrize("path", [[None], [interval(None, 0.1), None]])
def test_none_is_offered_where_the_loop_is_unstable_without_error(path):
    assert ends(interval(None, 0.1), *path) is None


def test_no_bias_is_offered_with_which_the_loop_is_unstable_with_the_right_stiffness():
    assert bias_for((-0.4, 0.1), 0.5) == pytest.approx(1.1 / 1.5 - 1, rel=1e-12)
    assert bias_for((-0.2, 0.1), 0.5) is None
