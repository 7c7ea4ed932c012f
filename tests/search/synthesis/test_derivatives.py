"""Norms and spectra of closed loops: against other engines, derivatives against differences."""

import control
import numpy as np
import pytest
import slycot

from flexctl.search.synthesis.clusters import measure_clusters, partitions
from flexctl.search.synthesis.eigenvalues import (
    abscissa_pieces,
    damping_pieces,
    excess_pieces,
    radius_pieces,
)
from flexctl.search.synthesis.gramians import h2_pieces
from flexctl.search.synthesis.interconnection import Interconnection, System
from flexctl.search.synthesis.peaks import hinf_pieces

SEEDS = range(12)


def random_system(seed, *, feedthrough=True):
    random = np.random.default_rng(seed)
    n, q, r = random.integers(1, 9), random.integers(1, 4), random.integers(1, 4)
    sampled = bool(seed % 2)
    A = random.standard_normal((n, n))
    w = np.linalg.eigvals(A)
    if sampled:
        A = A / np.abs(w).max() * random.uniform(0.3, 0.99)
    else:
        A = A - (w.real.max() + 10 ** random.uniform(-3, 0)) * np.eye(n)
    D = random.standard_normal((r, q)) * (feedthrough and seed % 3 > 0)
    B, C = random.standard_normal((n, q)), random.standard_normal((r, n))
    return System(A=A, B=B, C=C, D=D, sampled=sampled)


def moved(system, direction, step):
    n = len(system.A)
    M = np.block([[system.A, system.B], [system.C, system.D]]) + step * direction
    return System(A=M[:n, :n], B=M[:n, n:], C=M[n:, :n], D=M[n:, n:], sampled=system.sampled)


MEASURES = {
    "hinf": hinf_pieces,
    "h2": h2_pieces,
    "abscissa": lambda system: abscissa_pieces(system.A),
    "radius": lambda system: radius_pieces(system.A),
    "damping": lambda system: damping_pieces(system.A),
    "excess": lambda system: excess_pieces(system.A, -0.5, system.sampled),
}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("measure", MEASURES)
def test_derivatives_are_those_of_differences(measure, seed):
    system = random_system(seed, feedthrough=measure != "h2")
    random = np.random.default_rng(99 + seed)
    n = len(system.A)
    direction = random.standard_normal((n + len(system.C), n + system.B.shape[1]))
    if measure == "h2" and not system.sampled:
        direction[n:, n:] = 0
    at, step = MEASURES[measure], 1e-6
    found = at(system)
    slopes = found.sensitivities[found.values.argmax()]
    own = (slopes * direction[: len(slopes), : slopes.shape[1]]).sum()
    ends = [at(moved(system, direction, sign * step)).largest for sign in (1, -1)]

    assert own == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_h_infinity_norm_is_that_of_slicot(seed):
    s = random_system(seed)
    sizes = len(s.A), s.B.shape[1], len(s.C)
    kind = "D" if s.sampled else "C"
    norm, _ = slycot.ab13dd(kind, "I", "N", "D", *sizes, s.A, np.eye(sizes[0]), s.B, s.C, s.D)

    assert hinf_pieces(s).largest == pytest.approx(norm, rel=1e-8)


@pytest.mark.parametrize("seed", range(40))
def test_no_frequency_has_more_than_the_h_infinity_norm(seed):
    # stiff: poles over seven decades; by a grid, as SLICOT misses peaks of such systems
    random = np.random.default_rng(seed)
    n = random.integers(2, 6)
    T, B, C = random.standard_normal((3, n, n))
    A = T @ np.diag(-(10 ** random.uniform(-3, 4, n))) @ np.linalg.inv(T)
    system = System(A=A, B=B[:, :2], C=C[:2], D=C[:2, :2], sampled=False)
    norm = hinf_pieces(system).largest
    grid = np.r_[0, np.logspace(-5, 6, 800)]
    resolvents = np.linalg.inv(1j * grid[:, None, None] * np.eye(n) - A)
    gains = np.linalg.norm(C[:2] @ resolvents @ B[:, :2] + C[:2, :2], 2, axis=(1, 2))

    assert gains.max() <= norm * (1 + 1e-6)  # condition of T times round-off
    assert norm <= 1.05 * gains.max()


@pytest.mark.parametrize("seed", SEEDS)
def test_the_h2_norm_is_that_of_python_control(seed):
    s = random_system(seed, feedthrough=False)
    norm = control.norm(control.ss(s.A, s.B, s.C, s.D, s.sampled), 2)

    assert h2_pieces(s).largest == pytest.approx(norm, rel=1e-8)


def test_every_peak_near_the_norm_is_a_piece():
    # two equal resonances side by side, a third at half the height
    blocks = [control.tf([2 * 0.01 * w], [1, 2 * 0.01 * w, w * w]) for w in (1.0, 5.0)]
    system = control.ss(control.append(*blocks, 0.5 * control.tf([0.6], [1, 0.6, 900])))
    found = hinf_pieces(System(A=system.A, B=system.B, C=system.C, D=system.D, sampled=False))
    heights = [1 / np.sqrt(1 - 0.01**2) / w for w in (1.0, 5.0)]
    assert found.values[0] == pytest.approx(heights[0], rel=1e-3)

    balanced = control.ss(control.append(blocks[0], 5 * blocks[1]))
    parts = (balanced.A, balanced.B, balanced.C, balanced.D)
    both = hinf_pieces(System(**dict(zip("ABCD", parts, strict=True)), sampled=False))
    assert len(both.values) == 2
    assert both.values == pytest.approx([heights[0]] * 2, rel=1e-3)


@pytest.mark.parametrize("sampled", [False, True])
def test_moments_of_clusters_change_as_differences_do(sampled):
    random = np.random.default_rng(0)
    A, direction = random.standard_normal((2, 6, 6))
    for clusters in partitions(A, 10):
        here, ahead, behind = (
            measure_clusters(A + step * direction, clusters, sampled) for step in (0, 1e-6, -1e-6)
        )
        means = (here.of_means * direction).sum(axis=(1, 2))
        moments = (here.of_moments * direction).sum(axis=(1, 2))
        assert (ahead.means - behind.means) / 2e-6 == pytest.approx(means, abs=1e-6)
        difference = (ahead.moments - behind.moments) / 2e-6
        assert difference == pytest.approx(moments, rel=1e-4, abs=1e-4)


def test_the_chain_rule_holds_with_feedthrough_and_controller_states():
    random = np.random.default_rng(1)
    n, q, m, r, p, k = 4, 2, 2, 3, 2, 2
    sizes = {"A": (n, n), "B1": (n, q), "B": (n, m), "C1": (r, n), "C": (p, n)}
    sizes |= {"D11": (r, q), "D12": (r, m), "D21": (p, q), "D": (p, m)}
    loop = Interconnection(**{k: random.standard_normal(v) for k, v in sizes.items()}, order=k)
    K, direction = 0.3 * random.standard_normal((2, m + k, p + k))
    weights = random.standard_normal((1, n + k + r, n + k + q))

    def value(K):
        s = loop.closed(K)
        return (weights[0] * np.block([[s.A, s.B], [s.C, s.D]])).sum()

    difference = (value(K + 1e-6 * direction) - value(K - 1e-6 * direction)) / 2e-6
    own = (loop.slopes(K, weights)[0] * direction).sum()
    assert own == pytest.approx(difference, rel=1e-6)


def test_a_closed_loop_with_feedthrough_is_that_of_python_control():
    random = np.random.default_rng(2)
    plant = control.rss(3, 4, 4)
    plant.D = random.standard_normal((4, 4))
    K = control.rss(2, 2, 2)
    A, B, C, D = plant.A, plant.B, plant.C, plant.D
    loop = Interconnection(
        A=A, B1=B[:, :2], B=B[:, 2:], C1=C[:2], C=C[2:],
        D11=D[:2, :2], D12=D[:2, 2:], D21=D[2:, :2], D=D[2:, 2:], order=2,
    )  # fmt: skip
    own = loop.closed(np.block([[K.D, K.C], [K.B, K.A]]))
    other = plant.lft(K)
    system = control.ss(own.A, own.B, own.C, own.D)

    assert system(1.7j) == pytest.approx(other(1.7j))


@pytest.mark.parametrize("sampled", [False, True])
def test_the_h2_norm_of_a_system_on_the_axis_is_infinite(sampled):
    A = np.diag([1.0, 0.5]) if sampled else np.diag([0.0, -1.0])
    s = System(A=A, B=np.ones((2, 1)), C=np.ones((1, 2)), D=np.zeros((1, 1)), sampled=sampled)
    assert h2_pieces(s).largest == np.inf
