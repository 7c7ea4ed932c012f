"""Finite rotations against an independent library and differences along motions."""

import casadi as ca
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from flexctl.body.rotation import elementary_rotation, rotation_matrix, space_rate

VECTORS = [
    [0.0, 0.0, 0.0],
    [1e-9, -2e-9, 1e-9],
    [0.3, -0.2, 0.1],
    [1.0, 1.2, -0.7],
    [1.8, -1.7, 1.8],
]


def evaluate(f, *arguments):
    symbols = [ca.SX.sym(f"x{i}", len(a)) for i, a in enumerate(arguments)]
    return np.array(ca.Function("f", symbols, [ca.densify(f(*symbols))])(*arguments))


@pytest.mark.parametrize("phi", VECTORS)
def test_the_matrix_is_that_of_the_rotation_vector(phi):
    R = evaluate(rotation_matrix, phi)

    assert pytest.approx(Rotation.from_rotvec(phi).as_matrix(), abs=1e-14) == R


@pytest.mark.parametrize("phi", VECTORS)
def test_the_space_rate_is_the_angular_velocity_in_the_axes_at_rest(phi):
    # phi(t) = phi + t rate, differenced over +-1e-4 s: error about 1e-8
    rate, h = np.array([0.7, -0.4, 0.9]), 1e-4
    before, after = (Rotation.from_rotvec(np.array(phi) + s * h * rate) for s in (-1, 1))
    omega = (after * before.inv()).as_rotvec() / (2 * h)

    assert evaluate(space_rate, phi, rate)[:, 0] == pytest.approx(omega, abs=1e-7)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("angle", [0.4, -np.pi / 2, np.pi, 7.0])
def test_elementary_rotations_turn_about_their_axis(axis, angle):
    expected = Rotation.from_rotvec(angle * np.eye(3)[axis]).as_matrix()
    constant = np.array(ca.DM(elementary_rotation(axis, angle)))

    assert constant == pytest.approx(expected, abs=1e-15)
    assert evaluate(lambda a: elementary_rotation(axis, a), [angle]) == pytest.approx(
        expected, abs=1e-15
    )


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_a_turn_about_one_axis_is_elementary(axis):
    angle = ca.SX.sym("angle")
    phi = ca.SX(3, 1)
    phi[axis] = angle
    R = ca.Function("R", [angle], [rotation_matrix(ca.densify(phi))])(0.6)

    assert np.array(R) == pytest.approx(
        Rotation.from_rotvec(0.6 * np.eye(3)[axis]).as_matrix(), abs=1e-15
    )
