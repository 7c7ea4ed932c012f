"""Underestimating on purpose against a search over all biases."""

import numpy as np
import pytest

from flexctl.errors import InputError
from flexctl.robustness.stiffness.record import Interval, StabilityLimit
from flexctl.search.bias_advice import Bias, best_bias, tolerated_with


def interval(lower, upper):
    """Give an interval that ends there; None: nothing ends it."""
    ends = [
        None if a is None else StabilityLimit(alpha=a, frequency=1.0, mode="m")
        for a in (lower, upper)
    ]
    return Interval(lower=ends[0], upper=ends[1])


def tolerated(bias, lower, upper):
    """Largest error in both directions of K_file that a biased controller tolerates."""
    return min((1 + upper) / (1 + bias) - 1, 1 - (1 + lower) / (1 + bias))


@pytest.mark.parametrize(
    ("lower", "upper"), [(-0.4, 0.1), (-0.05, 0.3), (-0.2, 0.0), (-0.9, 2.5), (-0.1, 0.1)]
)
def test_no_other_bias_bears_more_in_both_directions(lower, upper):
    found = best_bias([interval(lower, upper)])
    assert found is not None
    others = [tolerated(b, lower, upper) for b in np.linspace(-0.95, 3, 4001)]

    assert found.tolerates == pytest.approx(tolerated(found.bias, lower, upper), rel=1e-12)
    assert found.tolerates >= max(others)


@pytest.mark.parametrize("upper", [0.0, 0.005, 0.5, 4.0])
def test_where_any_underestimate_is_harmless_all_of_the_stiffness_may_be_wrong(upper):
    found = best_bias([interval(None, upper)])
    assert found is not None

    assert found.tolerates == pytest.approx(1.0, rel=1e-15)
    assert (1 + found.bias) * 2 == pytest.approx(1 + upper, rel=1e-15)


@pytest.mark.parametrize("bias", [-0.35, -0.1, 0.0])
def test_with_any_bias_that_much_is_borne_above_and_below(bias):
    lower, upper = tolerated_with([interval(-0.9, 0.2), interval(-0.4, 0.5)], bias)

    assert min(upper, -lower) == pytest.approx(tolerated(bias, -0.4, 0.2), rel=1e-12)
    assert (1 + bias) * (1 + upper) == pytest.approx(1.2, rel=1e-15)
    assert (1 + bias) * (1 + lower) == pytest.approx(0.6, rel=1e-15)


def test_the_worst_ends_of_all_poses_count():
    several = best_bias([interval(-0.5, 0.2), interval(-0.3, 0.4)])
    assert several == best_bias([interval(-0.3, 0.2)])


@pytest.mark.parametrize(("lower", "tolerates"), [(-0.3, 0.3), (None, 1.0)])
def test_what_bears_any_overestimate_needs_no_bias(lower, tolerates):
    assert best_bias([interval(lower, None)]) == Bias(bias=0.0, tolerates=tolerates)


@pytest.mark.parametrize("intervals", [[], [None], [interval(None, 0.1), None]])
def test_none_is_offered_where_the_loop_is_unstable_without_error(intervals):
    assert best_bias(intervals) is None


@pytest.mark.parametrize(("bias", "tolerates"), [(-1.0, 0.5), (0.0, -0.1), (0.0, 1.1)])
def test_what_no_controller_can_have_is_refused(bias, tolerates):
    with pytest.raises(InputError, match="expected one"):
        Bias(bias=bias, tolerates=tolerates)
