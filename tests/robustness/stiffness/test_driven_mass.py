"""What torques act on and what follows: matrices of no arm, against the textbook's inverses."""

import numpy as np
import pytest
import scipy.linalg

from flexctl.control.second_loop import (
    decoupled_model,
    design_second_loop,
    passive_rows,
    state_weight,
)
from flexctl.errors import ComputationError, DesignError, InputError
from flexctl.model.law import SecondLoop
from flexctl.plant.linearisation import LinearPlant
from flexctl.robustness.stiffness.driven_mass import split_mass

pytestmark = pytest.mark.usefixtures("no_compiler")

# of five coordinates the torques act on these, in this order: joint 1 and a rotor behind joint 2
DRIVES, PASSIVE = (0, 2), (1, 3, 4)
SIZES = np.array([1.0, 3e2, 1e-3, 4e4, 2e-2])


def definite(n, seed, scale=1.0):
    L = np.random.default_rng(seed).normal(size=(n, n))
    return (L @ L.T + n * np.eye(n)) * scale


def mass(seed=1):
    """Mass matrix whose coordinates differ by eight powers of ten."""
    return definite(5, seed) * np.outer(SIZES, SIZES)


def linear(seed=1):
    """A plant of no arm: two joints, of which the second has a rotor; K holds weights too."""
    rng = np.random.default_rng(seed)
    K_elastic = definite(5, seed + 1)
    K_elastic[:1], K_elastic[:, :1] = 0, 0  # no spring holds joint 1
    weight = rng.normal(size=(5, 5))
    names = ("joint1", "joint2", "rotor2", "link1.y.1", "link2.y.1")
    return LinearPlant(
        q0=np.zeros(5), tau0=np.zeros(2), M=definite(5, seed), D=rng.normal(size=(5, 5)),
        K=K_elastic + 0.1 * (weight + weight.T), K_elastic=K_elastic, B=np.eye(5)[:, list(DRIVES)],
        outputs=np.eye(5, 10), coordinates=names, actuators=("joint1", "joint2"),
        output_names=names,
    )  # fmt: skip


def parts(M):
    """M_rr, M_rf, M_fr, M_ff of the driven and the passive rows."""
    return [M[np.ix_(a, b)] for a in (DRIVES, PASSIVE) for b in (DRIVES, PASSIVE)]


def test_what_no_torque_acts_on_is_the_rest():
    assert passive_rows(5, DRIVES) == PASSIVE
    assert passive_rows(3, range(3)) == ()
    assert passive_rows(3, (2,)) == (0, 1)


def test_a_mass_is_split_by_rows():
    M = mass()
    M_rr, M_rf, M_fr, M_ff = parts(M)
    found = split_mass(M, DRIVES)
    inverse = np.linalg.inv(M_ff / np.outer(SIZES[[1, 3, 4]], SIZES[[1, 3, 4]]))
    inverse = inverse / np.outer(SIZES[[1, 3, 4]], SIZES[[1, 3, 4]])

    assert (found.drives, found.passive) == (DRIVES, PASSIVE)
    np.testing.assert_array_equal(found.M_ff, M_ff)
    np.testing.assert_array_equal(found.M_fr, M_fr)
    np.testing.assert_allclose(found.F, inverse @ M_fr, rtol=1e-11)
    np.testing.assert_allclose(found.N, M_rf @ inverse @ M_fr, rtol=1e-11)
    np.testing.assert_allclose(found.S_r, M_rr - M_rf @ inverse @ M_fr, rtol=1e-11)


def test_H_is_what_the_rest_adds_to_its_own_mass():
    M = definite(5, 3)
    M_rr, M_rf, M_fr, M_ff = parts(M)
    P = M_fr @ np.linalg.inv(M_rr) @ M_rf
    H = P @ np.linalg.inv(M_ff - P)
    found = split_mass(M, DRIVES)

    np.testing.assert_allclose(found.H, H, rtol=1e-10)
    H_M = M_fr @ np.linalg.solve(found.S_r, M_fr.T)
    np.testing.assert_allclose(H_M, H @ M_ff, rtol=1e-10)
    expected = np.sort(np.linalg.eigvals(H).real)[-2:]
    np.testing.assert_allclose(found.eigenvalues, expected, rtol=1e-10)
    assert found.lambda_max == found.eigenvalues[-1] == max(found.eigenvalues)


def test_the_largest_eigenvalue_of_several_is_the_last():
    found = split_mass(definite(6, 9), (0, 2, 5))
    assert len(found.eigenvalues) == 3
    assert found.lambda_max == max(found.eigenvalues) > min(found.eigenvalues)


def test_no_eigenvalue_of_H_is_below_zero():
    M = definite(5, 3)
    M[np.ix_(DRIVES, PASSIVE)], M[np.ix_(PASSIVE, DRIVES)] = 0, 0
    M[0, 1] = M[1, 0] = 1e-9  # all but uncoupled: the second eigenvalue is round-off
    assert min(split_mass(M, DRIVES).eigenvalues) >= 0


def test_an_error_of_the_stiffness_is_a_torque():
    M, dK = definite(5, 4), definite(5, 5)
    found = split_mass(M, DRIVES)
    _, M_rf, _, M_ff = parts(M)
    _, dK_rf, _, dK_ff = parts(dK)

    blocks = found.blocks(dK)
    np.testing.assert_array_equal(blocks[0], dK_rf)
    np.testing.assert_array_equal(blocks[1], dK_ff)
    expected = dK_rf - M_rf @ np.linalg.inv(M_ff) @ dK_ff
    np.testing.assert_allclose(found.error_torque(dK), expected, rtol=1e-10)


def test_where_nothing_follows_there_is_nothing_to_split():
    with pytest.raises(InputError, match="rigid"):
        split_mass(np.eye(2), (0, 1))


@pytest.mark.parametrize("row", [0, 3])
@pytest.mark.parametrize("change", [0.0, -1.0])
def test_a_motion_without_mass_is_refused(row, change):
    M = definite(5, 6)
    M[row, :], M[:, row] = 0, 0
    M[row, row] = change
    with pytest.raises(ComputationError, match="not positive definite"):
        split_mass(M, DRIVES)


def test_a_mass_that_is_not_definite_as_a_whole_is_refused():
    M = np.eye(5)
    M[0, 1] = M[1, 0] = 1.001  # S_r = 1 - 1.002 < 0
    with pytest.raises(ComputationError):
        split_mass(M, DRIVES)
    M[0, 1] = M[1, 0] = 0.999
    assert split_mass(M, DRIVES).lambda_max == pytest.approx(1 / (1 - 0.999**2) - 1)


def test_the_model_moves_its_drives_as_asked_and_the_rest_by_newton():
    arm, rng = linear(), np.random.default_rng(7)
    A, B = decoupled_model(arm, DRIVES)
    order = [*DRIVES, *PASSIVE]
    x, u = rng.normal(size=10), rng.normal(size=2)
    rate = A @ x + B @ u
    q, v, a = (np.empty(5) for _ in range(3))
    q[order], v[order], a[order] = x[:5], x[5:], rate[5:]

    np.testing.assert_allclose(rate[:5], x[5:], rtol=1e-14)
    np.testing.assert_allclose(a[list(DRIVES)], u, rtol=1e-14)
    left = (arm.M @ a + arm.D @ v + arm.K @ q)[list(PASSIVE)]
    np.testing.assert_allclose(left, 0, atol=1e-11)


def test_a_rigid_arm_is_a_double_integrator():
    rigid = LinearPlant(
        q0=np.zeros(2), tau0=np.zeros(2), M=definite(2, 1), D=np.zeros((2, 2)),
        K=np.zeros((2, 2)), K_elastic=np.zeros((2, 2)), B=np.eye(2), outputs=np.eye(2, 4),
        coordinates=("joint1", "joint2"), actuators=("joint1", "joint2"),
        output_names=("joint1", "joint2"),
    )  # fmt: skip
    A, B = decoupled_model(rigid, (0, 1))
    np.testing.assert_array_equal(A, np.eye(4, k=2))
    np.testing.assert_array_equal(B, np.eye(4, 2, -2))


WEIGHTS = {"joint_error": 300.0, "joint_rate": 0.3, "strain_energy": 2.0, "kinetic_energy": 5.0}


def second_loop(**changes):
    return SecondLoop.model_validate({"weights": WEIGHTS | {"effort": 1e-2} | changes})


def test_weights_are_energies_of_links_and_springs_and_squares_of_errors():
    arm, rng = linear(), np.random.default_rng(8)
    Q = state_weight(arm, DRIVES, second_loop())
    order = [*DRIVES, *PASSIVE]
    x = rng.normal(size=10)
    q, v = np.empty(5), np.empty(5)
    q[order], v[order] = x[:5], x[5:]
    joint_free = q.copy()
    joint_free[0] = 0  # joint 1 is driven and no spring acts on it
    errors, rates = q[list(DRIVES)], v[list(DRIVES)]
    moving = v.copy()
    moving[list(DRIVES)] = 0  # what the drives do is not energy of the links
    expected = 300 * errors @ errors + 0.3 * rates @ rates
    expected += 2 * joint_free @ arm.K_elastic @ joint_free / 2 + 5 * moving @ arm.M @ moving / 2

    assert x @ Q @ x == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(Q, Q.T, atol=1e-12)


@pytest.mark.parametrize("solver", ["scipy", "slycot"])
def test_the_gain_is_optimal_in_the_states_as_they_are(solver):
    arm = linear()
    second = SecondLoop.model_validate({"weights": WEIGHTS | {"effort": 1e-2}, "solver": solver})
    A, B = decoupled_model(arm, DRIVES)
    Q, R = state_weight(arm, DRIVES, second), 1e-2 * np.eye(2)
    P = scipy.linalg.solve_continuous_are(A, B, Q, R)
    found = design_second_loop(arm, DRIVES, second)

    np.testing.assert_allclose(found.cost, P, rtol=1e-7, atol=1e-9 * np.abs(P).max())
    np.testing.assert_array_equal(found.cost, found.cost.T)
    G = B.T @ P / 1e-2
    np.testing.assert_allclose(found.gain, G, rtol=1e-7, atol=1e-9 * np.abs(G).max())
    expected = np.sort_complex(np.linalg.eigvals(A - B @ G))
    np.testing.assert_allclose(np.sort_complex(found.poles), expected, rtol=1e-7)


def test_modes_that_no_torque_damps_are_named():
    arm = linear()
    K = np.diag([0.0, 4.0, 0.0, 9.0, 25.0])
    fields = {name: getattr(arm, name) for name in arm.__dataclass_fields__}
    fields |= {"M": np.eye(5), "D": np.zeros((5, 5)), "K": K, "K_elastic": K}
    with pytest.raises(DesignError, match=r"5 rad/s \(mode 3 of the links"):
        design_second_loop(LinearPlant(**fields), DRIVES, second_loop())
