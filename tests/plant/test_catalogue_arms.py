"""Arms of the catalogue against frequency equations and formulas that share no code with them."""

import numpy as np
import pytest
from scipy.optimize import brentq

from flexctl.model.lookup import load_model
from flexctl.model.settings import apply_settings
from flexctl.plant.assembly import tip_load
from flexctl.plant.linearisation import linearise
from tests.arms import plant_of
from tests.plant.two_link_witness import Link, TwoLink

LINE = {"length": 0.5, "rho": 0.2, "EI": 1.0}
SPRUNG = Link(**LINE, rotor=(0.02, 1.0, 100.0, 0.0, False))
DRIVEN = Link(**LINE, joint_inertia=0.02)
LOAD = {"payload_mass": 0.1, "payload_inertia": 0.005, "include": "MJDR"}
OLDER = {"first": Link(**LINE, hub_inertia=0.1), "payload_mass": 0.1, "payload_inertia": 0.0005}
OLDER |= {"second": Link(**LINE, hub_mass=1.0, hub_inertia=0.1), "include": "MJD"}
BY_HAND = {
    "subudhi-morris-2r": TwoLink(first=SPRUNG, second=SPRUNG, **LOAD),
    "subudhi-morris-2r-rigid-joints": TwoLink(first=DRIVEN, second=DRIVEN, **LOAD),
    "de-luca-siciliano-2r": TwoLink(**OLDER, theta_2=np.pi / 2),
}
on_both_links = pytest.mark.parametrize("link", [0, 1])
on_all = pytest.mark.parametrize("name", BY_HAND)


def masked(names, *beginnings):
    """True for the names that begin with none of these."""
    return np.array([not name.startswith(beginnings) for name in names])


@on_both_links
@on_all
def test_shapes_assume_the_load_of_the_formulas(name, link):
    load = tip_load(load_model(name), link, "y")
    found = np.array([load.mass * 0.1, load.inertia * 0.1 * 0.25, load.offset * 0.1 * 0.5])

    np.testing.assert_allclose(found, BY_HAND[name].tip_loads[link], rtol=1e-13, atol=1e-16)


@on_both_links
@on_all
def test_wave_numbers_are_roots_of_the_frequency_equation(name, link):
    found = plant_of(load_model(name)).bodies[link].planes["y"].beta

    np.testing.assert_allclose(found, BY_HAND[name].shapes[link].b[:, 0], rtol=1e-12)


@on_all
def test_the_mass_matrix_is_that_of_the_derivation_by_hand(name):
    plant = plant_of(load_model(name))
    q = np.random.default_rng(3).uniform(-0.03, 0.03, plant.n)
    expected = BY_HAND[name].mass_matrix(q)

    np.testing.assert_allclose(plant.mass_matrix(q), expected, atol=1e-13 * np.abs(expected).max())


def test_with_link_2_straight_ahead_link_1_swings_slower():
    settings = ["link1.tip_load.reference_pose.joint2=0.0"]
    ahead = plant_of(apply_settings(load_model("de-luca-siciliano-2r"), settings))
    aside = plant_of(load_model("de-luca-siciliano-2r"))
    hertz = [
        p.bodies[0].planes["y"].beta[0] ** 2 / 0.25 * 5**0.5 / (2 * np.pi) for p in (ahead, aside)
    ]

    assert hertz == pytest.approx([0.44098256, 0.47969304], rel=1e-7)


EI, LENGTH, RHO, HUB, SPRING, PAYLOAD = 2.4507, 0.7, 2.975, 1.95e-3, 1000.0, 0.117


def mismatch(w):
    """Zero at the frequencies w [rad/s] of a beam on a root spring with hub and tip mass.

    With phi = a (cos - cosh) + b sin + c sinh: EI phi'' = (k - J w^2) phi' at the root, phi'' = 0
    and EI phi''' = -M w^2 phi at the tip.
    """
    beta = (RHO * w**2 / EI) ** 0.25
    x = beta * LENGTH
    c, s, C, S = np.cos(x), np.sin(x), np.cosh(x), np.sinh(x)
    root = SPRING - HUB * w**2
    pull = PAYLOAD * w**2 / (EI * beta**3)
    rows = [
        [-2 * EI * beta, -root, -root],
        [-c - C, -s, S],
        [s - S + pull * (c - C), -c + pull * s, C + pull * S],
    ]
    return np.linalg.det(np.array(rows)) / C


def exact_squares():
    """Squares [rad^2/s^2] of the three lowest frequencies."""
    grid = np.linspace(1.0, 150.0, 600)
    values = [mismatch(w) for w in grid]
    ends = [k for k in range(len(grid) - 1) if values[k] * values[k + 1] < 0]
    return np.array([brentq(mismatch, *grid[k : k + 2], xtol=1e-13) for k in ends]) ** 2


def test_the_link_on_an_elastic_joint_has_the_printed_squares():
    assert exact_squares().round(2).tolist() == [34.14, 1383.24, 11084.49]


@pytest.mark.slow
def test_the_link_on_an_elastic_joint_has_the_exact_frequencies():
    plant = plant_of(load_model("romano-flexible-joint-link"), order=12)
    found = linearise(plant).frequencies(masked(plant.coordinates, "rotor"))[:3]

    np.testing.assert_allclose(found**2, exact_squares(), rtol=2e-9)


@pytest.mark.parametrize(
    "held", [("joint", "rotor"), ("rotor",), ()], ids=["locked", "rotors-held", "free"]
)
@on_all
def test_frequencies_are_those_of_the_derivation_by_hand(name, held):
    plant, hand = plant_of(load_model(name)), BY_HAND[name]
    free = masked(plant.coordinates, *held)
    grid = np.ix_(free, free)
    A = np.linalg.solve(hand.mass_matrix(np.zeros(hand.n))[grid], hand.stiffness[grid])
    squares = np.sort(np.linalg.eigvals(A).real)
    rigid = int((squares < 1e-6).sum())

    found = linearise(plant).frequencies(free)[rigid:]
    np.testing.assert_allclose(found, np.sqrt(squares[rigid:]), rtol=1e-8)
