"""Uncertain loops: eigenvalues block by block, and their frequency response against its formula."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.linalg

from flexctl.robustness.lft.uncertain_loop import (
    Parameter,
    UncertainLoop,
    connected,
    frequency_response,
)

SIZES = ((4, 2), (3, 1), (2, 0))  # states and channels of each block


def loop_of(sizes, seed=0):
    """Uncoupled loops in one, their states and channels in a random order; of one error."""
    rng = np.random.default_rng(seed)
    n, r = map(sum, zip(*sizes, strict=True))
    A, U, V, D = (
        scipy.linalg.block_diag(*(rng.normal(size=(k[i], k[j])) for k in sizes))
        for i, j in ((0, 0), (0, 1), (1, 0), (1, 1))
    )
    states, channels = rng.permutation(n), rng.permutation(r)
    return UncertainLoop(
        A=A[np.ix_(states, states)] - 3 * np.eye(n),
        U=U[np.ix_(states, channels)],
        V=V[np.ix_(channels, states)],
        D=0.1 * D[np.ix_(channels, channels)],
        parameters=(Parameter(name="error", size=r),),
        states=tuple(f"x{k}" for k in range(n)),
    )


def test_eigenvalues_are_those_of_the_blocks_and_of_the_whole():
    loop, delta = loop_of(SIZES), np.array([0.3])
    found = loop.poles(delta)
    whole = np.linalg.eigvals(loop.matrix(delta))

    assert sorted(map(len, loop.blocks)) == sorted(size for size, _ in SIZES)
    assert sorted(np.concatenate(loop.blocks)) == list(range(loop.size))
    np.testing.assert_allclose(np.sort_complex(found), np.sort_complex(whole), rtol=1e-12)


def test_a_coupling_however_small_makes_one_block_and_a_negligible_one_two_parts():
    loop = loop_of(SIZES[:2])
    A = loop.A.copy()
    A[loop.blocks[0][0], loop.blocks[1][0]] = 1e-300
    coupled = replace(loop, A=A)
    sizes = sorted((len(states), len(channels)) for states, channels in coupled.parts(1e-12))

    assert len(coupled.blocks) == 1
    assert sizes == sorted(SIZES[:2])


def test_a_channel_couples_the_states_that_it_joins():
    loop = loop_of(SIZES[:2])
    loop.V[0] = 1.0

    assert len(loop.blocks) == 1


@pytest.mark.parametrize("links", [[], [(0, 3), (3, 1)], [(2, 0), (4, 2)], [(1, 1)]])
def test_connected_blocks_are_those_that_a_walk_reaches(links):
    acts = np.eye(5, dtype=bool)
    for i, j in links:
        acts[i, j] = True
    reach = np.linalg.matrix_power((acts | acts.T).astype(int), 5) > 0
    expected = sorted({tuple(np.flatnonzero(row)) for row in reach})

    assert sorted(map(tuple, connected(acts))) == expected


@pytest.mark.parametrize("count", [0, 1, 3, 40])
def test_the_response_is_that_of_its_formula_at_few_and_at_many_frequencies(count):
    loop = loop_of(((9, 2),))
    w = np.append(np.geomspace(0.1, 30, count), np.inf)
    found = frequency_response(loop)(w)
    expected = [
        loop.D + loop.V @ np.linalg.solve(1j * one * np.eye(loop.size) - loop.A, loop.U)
        for one in w[:-1]
    ]

    np.testing.assert_allclose(found, [*expected, loop.D], rtol=1e-12, atol=1e-14)
