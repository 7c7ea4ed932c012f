"""A sliding link whose modes follow its length: both engines, energy, frequencies, the same motion.

Modes that move with the length span another space at every length.  Where the terms of their change
were wrong, the engines would differ, the energy drift or the motion leave that of fine elements.
"""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import scipy.linalg
from scipy.integrate import solve_ivp

from examples.papers.theodore_ghosal.mode_rates import with_rates
from flexctl.beam.frequency_equation import roots_along
from flexctl.beam.load_path import SlidingLine
from flexctl.beam.moving_modes import find_moving_modes
from flexctl.beam.sliding_shapes import fit_sliding_shapes
from flexctl.errors import InputError
from flexctl.model.lookup import load_model
from flexctl.model.record import BasisChoice
from flexctl.plant.plant import assemble_plant

ARM = load_model("theodore-ghosal-rrp")
N_MODES = 2


@cache
def mixed(engine="recursion", foreshortening=False, n=N_MODES, tolerance=1e-12):
    """The RRP arm with exact clamped-mass modes on link 3 at every length."""
    table = ARM.model_dump(by_alias=True, exclude_unset=True)
    for link in table["link"][1:]:
        link |= {"foreshortening": foreshortening, "damping_ratio": 0.0}
    arm = type(ARM).model_validate(table)
    plant = assemble_plant(arm, BasisChoice(kind="modes", order=n), engine=engine, interpreted=True)
    line = SlidingLine(mass_per_length=0.331, mass=0.0828)
    shapes = fit_sliding_shapes(n, line, 0.1, 1.3, tolerance)
    third = plant.bodies[2]
    third = replace(
        third,
        planes=dict.fromkeys(third.planes, shapes.base),
        mixes=dict.fromkeys(third.planes, shapes),
    )
    return replace(plant, bodies=(*plant.bodies[:2], third))


@cache
def ordinary(kind, order):
    table = ARM.model_dump(by_alias=True, exclude_unset=True)
    for link in table["link"][1:]:
        link |= {"damping_ratio": 0.0}
    arm = type(ARM).model_validate(table)
    return assemble_plant(arm, BasisChoice(kind=kind, order=order), interpreted=True)


def random_state(plant, seed):
    random = np.random.default_rng(seed)
    q = np.concatenate([random.uniform(-1, 1, 2), random.uniform(0.15, 1.25, 1)])
    q = np.concatenate([q, 0.02 * random.normal(size=plant.n - 3)])
    return q, random.normal(size=plant.n), random.normal(size=3)


@pytest.mark.slow_but("2-False")
@pytest.mark.parametrize("foreshortening", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_the_engines_agree(foreshortening, seed):
    # one coarse mode will do: the terms are all there
    first, second = (mixed(engine, foreshortening, 1, 1e-6) for engine in ("recursion", "lagrange"))
    q, v, tau = random_state(first, seed)
    found, expected = (plant.forward_dynamics(q, v, tau) for plant in (first, second))
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-9 * np.abs(expected).max())


def test_coordinates_are_those_of_modes():
    assert mixed().coordinates == ordinary("modes", N_MODES).coordinates


def test_the_valid_range_has_an_entry_for_every_coordinate():
    low, high = mixed().valid_range
    assert low.shape == high.shape == (mixed().n,)


@pytest.mark.parametrize(("link", "direction"), [(1, "y"), (2, "x")], ids=["turns", "base"])
def test_a_mix_that_does_not_belong_to_its_plane_is_refused(link, direction):
    shapes = mixed().bodies[2].mixes["x"]
    body = ordinary("modes", N_MODES).bodies[link]
    with pytest.raises(InputError, match="expected a sliding link whose plane has the base"):
        replace(body, mixes={direction: shapes})


def clamped_third(plant, length):
    """Frequencies [rad/s] of link 3 with all else at rest, at one length."""
    q = plant.straight(np.array([0.0, 0.0, length]))
    own = [i for i, name in enumerate(plant.coordinates) if name.startswith("link3.x")]
    M, K = plant.mass_matrix(q)[np.ix_(own, own)], plant.elastic_stiffness(q)[np.ix_(own, own)]
    return np.sqrt(scipy.linalg.eigh(K, M, eigvals_only=True))


@pytest.mark.slow_but("1.3", "1.0", "0.65")
@pytest.mark.parametrize("length", [0.1, 0.3, 0.65, 1.0, 1.3])
def test_frequencies_are_exact_at_every_length(length):
    line = SlidingLine(mass_per_length=0.331, mass=0.0828)
    beta = roots_along(N_MODES, line.loads([length]))[0]
    exact = beta**2 * np.sqrt(1165.4916 / 0.331) / length**2
    np.testing.assert_allclose(clamped_third(mixed(), length), exact, rtol=1e-11)


@pytest.mark.parametrize("length", [0.3, 0.65])
def test_modes_of_another_length_give_higher_frequencies(length):
    # the file's reference length is 1.0 m: Rayleigh and Ritz from above
    exact = clamped_third(mixed(), length)
    assert (clamped_third(ordinary("modes", N_MODES), length) > exact * (1 + 1e-6)).all()


def as_elements(plant, fine, q, v):
    """State of `fine` elements in which link 3 is where `plant` has it, and moves as it does.

    A node stands at a fixed xi: its deflection changes by psi d' + psi_s d l'/l.
    """
    length, z = q[2], v[2] / q[2]
    n_nodes = fine.basis.order
    xi = np.arange(1, n_nodes + 1) / n_nodes
    line = SlidingLine(mass_per_length=0.331, mass=0.0828)
    modes = with_rates(find_moving_modes(N_MODES, line.loads([length])))
    # the fit has the signs of the longest line, where psi(1) > 0, and no tip passes through rest
    w, slope = (modes.evaluate(xi, k)[0] for k in (0, 1))
    w_s, slope_s = (modes.evaluate(xi, k, 1)[0] for k in (0, 1))
    positions, rates = np.zeros(fine.n), np.zeros(fine.n)
    positions[:3], rates[:3] = q[:3], v[:3]
    for direction in "xy":
        own = [i for i, name in enumerate(plant.coordinates) if f"link3.{direction}" in name]
        nodes = [i for i, name in enumerate(fine.coordinates) if f"link3.{direction}" in name]
        d, rate = q[own], v[own]
        positions[nodes[::2]], positions[nodes[1::2]] = d @ w, d @ slope / length
        rates[nodes[::2]] = rate @ w + z * d @ w_s
        rates[nodes[1::2]] = (rate @ slope + z * d @ slope_s - z * d @ slope) / length
    return positions, rates


@pytest.mark.parametrize("seed", range(3))
def test_kinetic_energy_is_that_of_elements_that_move_alike(seed):
    # without psi_s it would be 4e-3 to 7e-3 off; the elements interpolate at order four
    plant, fine = mixed(), ordinary("elements", 16)
    q, v, _ = random_state(plant, seed)
    still = [i for i, name in enumerate(plant.coordinates) if name.startswith("link2")]
    q[still] = v[still] = 0.0
    q[3:], v[2] = 5 * q[3:], 5.0
    found = plant.energies(q, v)[0]
    assert found == pytest.approx(fine.energies(*as_elements(plant, fine, q, v))[0], rel=2e-6)


def run(plant, shape, duration):
    """Slide link 3 out freely from 0.3 m at 2 m/s, bent at first as `shape` says."""
    q = plant.straight(np.array([0.0, 0.0, 0.3]))
    q[3:] = shape
    v = np.zeros(plant.n)
    v[:3] = 1.0, -1.5, 2.0

    def rate(_t, x):
        a = plant.forward_dynamics(x[: plant.n], x[plant.n :], np.zeros(3))
        return np.concatenate([x[plant.n :], a])

    found = solve_ivp(
        rate, (0, duration), np.concatenate([q, v]), method="DOP853", rtol=1e-9, atol=1e-12
    )
    assert found.success
    return found.y[: plant.n], found.y[plant.n :]


def test_energy_is_kept_while_the_modes_change():
    # of a coarse fit as well: whatever the shapes are, their derivatives are their own
    plant = mixed(n=1, tolerance=1e-6)
    shape = np.array([0.0, 0.0, 2e-3, -1e-3])
    q, v = run(plant, shape, 0.1)
    energy = [sum(plant.energies(*x)[:3]) for x in zip(q.T, v.T, strict=True)]
    assert q[2, -1] > 0.45
    np.testing.assert_allclose(energy, energy[0], rtol=1e-8)


@pytest.mark.slow  # takes long
def test_the_motion_is_that_of_elements():
    # from straight: turning and sliding bend the lines, and the basis shows in how they do
    plants = mixed(tolerance=1e-6), ordinary("elements", 2)
    ends = [run(plant, 0.0, 0.005)[0][:, -1] for plant in plants]
    tips = [plant.tip(q) for plant, q in zip(plants, ends, strict=True)]
    rigid = plants[0].tip(plants[0].straight(ends[0][:3]))
    assert np.linalg.norm(tips[0] - tips[1]) < 0.02 * np.linalg.norm(tips[0] - rigid)
