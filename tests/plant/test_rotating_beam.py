"""A beam that turns steadily: centrifugal stiffening, known to four digits since Wright (1982)."""

from functools import cache

import casadi as ca
import numpy as np
import pytest
import scipy.linalg

# Speeds and frequencies in units sqrt(EI / (rho A l^4)), out of plane; [WrightSmith82].
FIRST = {0: 3.5160, 1: 3.6816, 2: 4.1373, 3: 4.7973, 4: 5.5850, 5: 6.4495, 6: 7.3604}
FIRST |= {8: 9.2568, 10: 11.2023, 12: 13.1702}
SECOND = {0: 22.0345, 1: 22.1810, 2: 22.6149, 3: 23.3203, 4: 24.2733, 5: 25.4461, 6: 26.8091}
HUB = {2: (4.8337, 23.366), 6: (10.4439, 32.0272)}  # hub as long as the beam
CLAMPED = 1.875104068711961**2


def steady_turn(plant):
    """Function of the speed: M, G, K (n, n) of small motions about q = 0, v = (speed, 0, ...)."""
    q, v, a = (ca.SX.sym(name, plant.n) for name in "qva")
    force = plant.casadi_functions["inverse_dynamics"](q, v, a)
    parts = ca.Function("parts", [q, v, a], [ca.jacobian(force, x) for x in (a, v, q)])
    zero, first = np.zeros(plant.n), np.eye(plant.n)[0]
    return lambda speed: [np.array(part) for part in parts(zero, speed * first, zero)]


@pytest.fixture(scope="module")
def squares(make, plant_of):
    """squares(EI, speed, ...): frequencies squared of a beam whose joint is led at this speed.

    `twist` [rad] turns the planes about the beam; `hub` is the radius at which it is clamped.
    """

    @cache
    def linear(planes, foreshortening, order, twist, hub):
        link = {"joint": "revolute", "length": 1.0, "mass_per_length": 1.0}
        link |= {"EI": dict.fromkeys(planes, 1.0), "foreshortening": foreshortening}
        links = [link | {"dh": {"alpha": twist}}]
        if hub:
            # the second joint, never let loose, clamps the beam to a hub without mass
            links.insert(0, {"joint": "revolute", "dh": {"a": hub}, "joint_inertia": 1.0})
        plant = plant_of(make["arm"](links), "modes", order)
        return plant.m, steady_turn(plant)

    def of(planes, speed, foreshortening=True, order=8, twist=0.0, hub=0.0):
        m, parts = linear(planes, foreshortening, order, twist, hub)
        M, G, K = (x[m:, m:] for x in parts(speed))
        assert np.abs(G).max() < 1e-12  # a straight line without axial motion: no gyroscopics
        assert np.abs(K - K.T).max() < 1e-9 * np.abs(K).max()
        return scipy.linalg.eigh((K + K.T) / 2, M, eigvals_only=True)

    return of


@pytest.mark.parametrize("speed", FIRST)
def test_first_frequency_out_of_plane_is_that_of_wright(speed, squares):
    # clamped modes know nothing of the pull: 8 of them come within 6e-5, from above
    assert np.sqrt(squares("z", speed)[0]) == pytest.approx(FIRST[speed], rel=1e-4)


@pytest.mark.parametrize("speed", SECOND)
def test_second_frequency_out_of_plane_is_that_of_wright(speed, squares):
    assert np.sqrt(squares("z", speed)[1]) == pytest.approx(SECOND[speed], rel=1e-4)


@pytest.mark.parametrize("speed", SECOND)
def test_in_plane_the_square_of_the_speed_is_taken_off(speed, squares):
    found = np.sqrt(squares("y", speed)[:2] + speed**2)

    assert found == pytest.approx([FIRST[speed], SECOND[speed]], rel=1e-4)


@pytest.mark.slow_but("0.3")
@pytest.mark.parametrize("twist", [0.3, 1.1])
def test_beam_with_setting_angle_loses_the_share_of_the_speed_that_lies_in_its_plane(
    twist, squares
):
    found = squares("z", 5.0, twist=twist)[:2]

    assert np.sqrt(found + (5.0 * np.sin(twist)) ** 2) == pytest.approx(
        [FIRST[5], SECOND[5]], rel=1e-4
    )


def test_planes_of_a_beam_with_setting_angle_are_coupled_by_the_turn(squares):
    # both planes free and equally stiff: the twist is only another choice of axes
    straight = squares("yz", 4.0, order=4)

    assert squares("yz", 4.0, order=4, twist=0.7) == pytest.approx(straight, rel=1e-9)


@pytest.mark.parametrize("speed", HUB)
def test_hub_with_radius_stiffens_the_beam_further(speed, squares):
    found = np.sqrt(squares("z", speed, hub=1.0)[:2])

    assert found == pytest.approx(HUB[speed], rel=1e-4)


@pytest.mark.parametrize("speed", HUB)
def test_hub_with_radius_in_plane(speed, squares):
    found = np.sqrt(squares("y", speed, hub=1.0)[:2] + speed**2)

    assert found == pytest.approx(HUB[speed], rel=1e-4)


@pytest.mark.parametrize("mode", range(2))
def test_frequencies_fall_towards_the_exact_ones_as_shapes_are_added(mode, squares):
    exact = [FIRST[6], SECOND[6]][mode]
    errors = [np.sqrt(squares("z", 6.0, order=n)[mode]) - exact for n in (2, 4, 8)]

    assert (np.diff(errors) < 0).all()
    assert errors[-1] > -5e-5  # half a unit of the last printed digit


def test_without_foreshortening_the_first_mode_in_plane_vanishes_at_its_own_frequency(squares):
    y = "y"

    assert squares(y, CLAMPED, foreshortening=False)[0] == pytest.approx(0, abs=1e-8)
    assert squares(y, 1.01 * CLAMPED, foreshortening=False)[0] < 0
    assert squares(y, CLAMPED)[0] > 10


def test_without_foreshortening_the_turn_does_not_stiffen_out_of_plane(squares):
    found = squares("z", 6.0, foreshortening=False)[0]

    assert found == pytest.approx(CLAMPED**2, rel=1e-9)


def test_free_joint_shows_the_gyroscopic_exchange_of_spin_and_bending(make, plant_of):
    """A beam held off its hub's radius: its bending at speed O pulls its mass in and out."""
    offset = {"joint": "revolute", "dh": {"a": 0.5}, "joint_inertia": 2.0}
    beam = {"joint": "revolute", "dh": {"theta": np.pi / 2}, "length": 1.0}
    beam |= {"mass_per_length": 1.0, "EI": {"y": 1.0}}
    plant = plant_of(make["arm"]([offset, beam]), "modes", 3)
    _, G, _ = steady_turn(plant)(3.0)
    shapes = plant.bodies[1].planes["y"]
    x, weights = np.polynomial.legendre.leggauss(20)
    momentum = 2 * 3.0 * (-0.5) * shapes.value((x + 1) / 2) @ weights / 2

    # the beam lies along y and deflects along -x, the radius: torque 2 O (r . w') of the mass
    assert G[0, 2:] == pytest.approx(momentum, rel=1e-9)
    assert G[2:, 0] == pytest.approx(-momentum, rel=1e-9)
