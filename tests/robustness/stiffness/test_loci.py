"""Branches of eigenvalues against ones known beforehand."""

import numpy as np

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
