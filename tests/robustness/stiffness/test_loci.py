"""Branches of eigenvalues against ones known beforehand."""

import numpy as np
import pytest

from flexctl.robustness.stiffness.pose_loop import follow
from flexctl.robustness.stiffness.record import Locus


def test_branches_that_cross_in_frequency_are_followed_through_in_any_order():
    alpha = np.linspace(-0.5, 1.0, 31)
    first, second = -1 + 10j * (1 + alpha), -4 + 1j * (12 - 4 * alpha)  # they cross at 1/7
    rng = np.random.default_rng(3)
    shuffled = [pair[rng.permutation(2)] for pair in np.stack([first, second], axis=1)]
    found = follow(Locus(alpha=alpha, poles=tuple(shuffled)))

    by_decay = found[:, np.argsort(-found[0].real)]
    np.testing.assert_array_equal(by_decay, np.stack([first, second], axis=1))


def test_the_order_is_that_at_zero():
    alpha = np.array([-1e-3, 0.0, 1e-3])
    poles = tuple(np.array(p, dtype=complex) for p in ([2, 1], [1, 2], [2, 1]))

    np.testing.assert_array_equal(follow(Locus(alpha=alpha, poles=poles)), [[1, 2]] * 3)


@pytest.mark.parametrize("left_out", [True, False])
def test_states_that_are_gone_after_a_sample_at_some_errors_do_not_disturb_the_others(left_out):
    alpha = np.linspace(-0.5, 0.5, 11)
    lasting = np.array([-1 + 5j, -1 - 5j])
    poles = [lasting * (1 + a) for a in alpha]
    for k, own in enumerate(poles):
        if k % 2:  # where rounding left something of it
            poles[k] = np.array([-38000.0, *own])
        elif not left_out:
            poles[k] = np.array([*own, complex(-np.inf, 0.0)])
    branches = follow(Locus(alpha=alpha, poles=tuple(poles)))
    assert branches.shape == (11, 3)
    first = branches[:, np.abs(branches[5] - lasting[0]).argmin()]
    np.testing.assert_allclose(first, lasting[0] * (1 + alpha))
