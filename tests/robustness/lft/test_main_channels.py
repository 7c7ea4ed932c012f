"""Main channels of errors: exact where the others do nothing, and nearer the more are kept."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.linalg

from flexctl.robustness.lft import cost_of_scalings, find_mu_bounds, in_main_channels
from flexctl.robustness.lft.uncertain_loop import Parameter, UncertainLoop

N, SIZES, MORE = 6, (2, 1, 3), (9, 7, 11)


def loop_of(sizes, U, V, D):
    rng = np.random.default_rng(3)
    return UncertainLoop(
        A=0.5 * rng.normal(size=(N, N)) - 3 * np.eye(N),
        U=U,
        V=V,
        D=D,
        parameters=tuple(Parameter(name=f"e{k}", size=n) for k, n in enumerate(sizes)),
        states=tuple(f"x{k}" for k in range(N)),
    )


def small(seed=0):
    rng, r = np.random.default_rng(seed), sum(SIZES)
    parts = (rng.normal(size=shape) for shape in ((N, r), (r, N), (r, r)))
    return loop_of(SIZES, *(scale * part for scale, part in zip((1, 1, 0.3), parts, strict=True)))


def with_more_channels(loop, least=0.0, seed=1):
    """The same loop through combinations of more channels, the others' effects of size `least`."""
    rng = np.random.default_rng(seed)
    turns = [np.linalg.qr(rng.normal(size=(n, n)))[0] for n in MORE]
    T = scipy.linalg.block_diag(*(Q[:, :n] for Q, n in zip(turns, SIZES, strict=True)))
    U, V, D = loop.U @ T.T, T @ loop.V, T @ loop.D @ T.T
    noise = (least * rng.normal(size=part.shape) for part in (U, V, D))
    return loop_of(MORE, *(part + extra for part, extra in zip((U, V, D), noise, strict=True)))


def under(loop, delta):
    return loop.counted_from(np.asarray(delta))[0]


def test_channels_that_do_nothing_are_left_out_exactly():
    loop = small()
    many = with_more_channels(loop)
    found = in_main_channels(many, cost_of_scalings(loop))
    assert [one.size for one in found.parameters] == list(SIZES)
    assert found.approximate
    for delta in np.random.default_rng(2).uniform(-0.6, 0.6, (20, 3)):
        np.testing.assert_allclose(under(found, delta), under(loop, delta), atol=1e-10)


def test_a_loop_of_few_channels_stays_as_it_is():
    loop = small()
    assert in_main_channels(loop, cost_of_scalings(loop)) is loop


def test_the_more_channels_are_kept_the_nearer_it_is():
    many = with_more_channels(small(), least=1e-2)
    deltas, far = np.random.default_rng(2).uniform(-0.6, 0.6, (20, 3)), []
    for most in (60, 600, 3000, 20000):
        found = in_main_channels(many, most)
        assert cost_of_scalings(found) <= most
        far.append(max(np.abs(under(found, d) - under(many, d)).max() for d in deltas))
    assert far == sorted(far, reverse=True)
    assert far[-1] < 0.02 * far[0]


def test_an_error_without_channels_keeps_none():
    loop = small()
    none = replace(loop, parameters=(*loop.parameters, Parameter(name="none", size=0)))
    assert in_main_channels(none, 1).parameters[-1].size == 0


@pytest.mark.slow_but("1")
@pytest.mark.parametrize("seed", range(3))
def test_bounds_are_those_of_the_loop_with_few_channels(seed):
    loop = small(seed)
    many = with_more_channels(loop, seed=seed + 5)
    expected = find_mu_bounds(loop, prove=False).guaranteed_fraction
    found = find_mu_bounds(in_main_channels(many, cost_of_scalings(loop)), prove=False)
    assert found.guaranteed_fraction == pytest.approx(expected, rel=2e-3)
