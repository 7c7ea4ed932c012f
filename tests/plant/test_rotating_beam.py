"""A beam that turns steadily: centrifugal stiffening, known to four digits since Wright (1982)."""

import casadi as ca
import numpy as np
import pytest
import scipy.linalg

# out of plane, hub radius 0: speed, first and second frequency, in units sqrt(EI / (rho A l^4))
WRIGHT = {
    0: (3.5160, 22.0345),
    2: (4.1373, 22.6149),
    6: (7.3604, 26.8091),
    10: (11.2023, None),
}


@pytest.fixture(scope="module")
def turning(build, interpreted):
    """Frequencies squared (n,) about a steady turn, by plane: turning(plane, speed, order, fs)."""

    def squares(plane, speed, foreshortening=True, order=4):
        link = {"joint": "revolute", "length": 1.0, "mass_per_length": 1.0, "EI": {plane: 1.0}}
        plant = interpreted(
            build["arm"]([link | {"foreshortening": foreshortening}]), "modes", order
        )
        e = plant.equations
        q, v = e.energies.q, e.energies.v
        linear = [ca.densify(x) for x in (ca.jacobian(e.h + e.k, q), ca.jacobian(e.h, v), e.M)]
        K, G, M = (
            np.array(x)[1:, 1:]
            for x in ca.Function("linear", [q, v], linear)(
                np.zeros(plant.n), np.eye(plant.n)[0] * speed
            )
        )
        assert np.abs(G).max() < 1e-12  # a straight line without axial motion: no gyroscopics
        assert np.abs(K - K.T).max() < 1e-9 * np.abs(K).max()
        return scipy.linalg.eigh((K + K.T) / 2, M, eigvals_only=True)

    return squares


@pytest.mark.parametrize("speed", WRIGHT)
def test_out_of_plane_frequencies_are_those_of_wright(turning, speed):
    # clamped modes know nothing of the pull: 12 of them come within 1e-4, from above
    found = np.sqrt(turning("z", speed, order=12))

    for mode, exact in enumerate(WRIGHT[speed]):
        if exact:
            assert found[mode] == pytest.approx(exact, abs=1e-4)


@pytest.mark.parametrize("speed", [2, 6])
def test_in_plane_squares_are_lower_by_the_square_of_the_speed(turning, speed):
    difference = turning("z", speed) - turning("y", speed)

    assert difference == pytest.approx(np.full(4, speed**2), rel=1e-9)


def test_without_foreshortening_the_first_mode_in_plane_vanishes_at_its_own_frequency(turning):
    clamped = 1.875104068711961**2

    assert turning("y", clamped, foreshortening=False)[0] == pytest.approx(0, abs=1e-9)
    assert turning("y", 1.01 * clamped, foreshortening=False)[0] < 0
    assert turning("y", clamped)[0] > 10


def test_the_turn_of_a_hub_with_radius_stiffens_the_beam_further(build, interpreted):
    # a rigid massless link as long as the beam carries it: hub radius 1, Wright (1982)
    arm = build["arm"](
        [
            {"joint": "revolute", "dh": {"a": 1.0}, "hub": {"inertia": [0, 0, 1.0]}},
            {"joint": "revolute", "length": 1.0, "mass_per_length": 1.0, "EI": {"z": 1.0}},
        ]
    )
    plant = interpreted(arm, "modes", 10)
    e = plant.equations
    q, v = e.energies.q, e.energies.v
    linear = ca.Function("linear", [q, v], [ca.densify(ca.jacobian(e.h + e.k, q)), e.M])
    for speed, exact in ((2.0, [4.8337, 23.366]), (6.0, [10.4439, 32.0272])):
        K, M = (np.array(x)[2:, 2:] for x in linear(np.zeros(plant.n), np.eye(plant.n)[0] * speed))
        found = np.sqrt(scipy.linalg.eigh((K + K.T) / 2, M, eigvals_only=True))

        assert found[0] == pytest.approx(exact[0], abs=1e-4)
        assert found[1] == pytest.approx(exact[1], abs=1e-3)
