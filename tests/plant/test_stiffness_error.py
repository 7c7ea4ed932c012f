"""A model whose stiffness is wrong, part by part."""

import casadi as ca
import numpy as np
import pytest

from flexctl.beam.matrices import assemble_matrices
from flexctl.errors import InputError
from flexctl.model.record import BasisChoice
from flexctl.plant.equilibrium import find_equilibrium
from flexctl.plant.plant import assemble_plant
from tests.arms import plant_of, wrong_plant

ARMS = ("rrp", "two-link", "sliding-first", "sprung")
BASES = (("modes", 2), ("elements", 1))


def scaled(arm, factor):
    """The arm with all EI and springs times a factor and its dampers as they are."""
    links = []
    for link in arm.links:
        EI = {direction: value * factor for direction, value in link.EI.items()}
        ratio = tuple(zeta / np.sqrt(factor) for zeta in link.damping_ratio)
        joint = link.flexible_joint
        if joint is not None:
            joint = joint.model_copy(update={"stiffness": joint.stiffness * factor})
        update = {"EI": EI, "damping_ratio": ratio, "flexible_joint": joint}
        links.append(link.model_copy(update=update))
    return arm.model_copy(update={"links": tuple(links)})


@pytest.fixture
def arm_of(make, arms):
    def arm(name):
        if name != "sprung":
            return arms[name]
        spring = {"rotor_inertia": 0.02, "stiffness": 100.0, "damping": 0.1}
        link = {"joint": "revolute", "length": 0.5, "mass_per_length": 0.2, "EI": {"y": 4.0}}
        link |= {"damping_ratio": 0.01}
        carried = {"flexible_joint": spring | {"carried": True, "gear": 3.0}}
        return make["arm"](
            [link | {"flexible_joint": spring}, link | carried], payload={"mass": 0.1}
        )

    return arm


@pytest.mark.slow  # takes long
@pytest.mark.parametrize(("kind", "order"), BASES)
@pytest.mark.parametrize("name", ARMS)
@pytest.mark.parametrize("term", ["inverse_dynamics", "forward_dynamics", "elastic_force"])
def test_one_error_of_all_parts_is_another_stiffness_of_the_arm(arm_of, name, kind, order, term):
    arm, rng = arm_of(name), np.random.default_rng(5)
    exact, other = plant_of(arm, kind, order), plant_of(scaled(arm, 1.3), kind, order)
    wrong = exact.of_any_stiffness.at({"stiffness_error": 0.3})
    q = exact.pose() + 0.01 * rng.normal(size=exact.n)
    v, third = rng.normal(size=exact.n), rng.normal(size=exact.n)
    given = {
        "inverse_dynamics": (q, v, third),
        "forward_dynamics": (q, v, third[: exact.m]),
        "elastic_force": (q,),
    }[term]

    found, expected, right = (getattr(p, term)(*given) for p in (wrong, other, exact))

    assert found == pytest.approx(expected, rel=1e-9, abs=1e-10 * np.abs(expected).max())
    assert np.abs(right - expected).max() > 1e-3 * np.abs(expected).max()


@pytest.mark.parametrize(("kind", "order"), BASES)
@pytest.mark.parametrize("name", ARMS)
@pytest.mark.slow_but("two-link-*", "sliding-first-*", "sprung-modes-2")
def test_the_parts_make_up_the_whole_stiffness(arm_of, name, kind, order):
    arm = arm_of(name)
    exact = plant_of(arm, kind, order)
    free, count, q = exact.of_any_stiffness, len(exact.stiffness_parts), exact.pose()
    K = exact.elastic_stiffness(q)

    parts = [free.at({"stiffness_error": unit}).elastic_stiffness(q) - K for unit in np.eye(count)]

    assert sum(parts) == pytest.approx(K, rel=1e-9, abs=1e-9 * np.abs(K).max())
    ranks = [np.linalg.matrix_rank(P, tol=1e-9 * np.abs(P).max()) for P in parts]
    assert ranks == [1] * count, "a part is one mode or one spring"


def test_a_wrong_mode_of_a_line_moves_its_own_frequency_alone(arm_of):
    arm = arm_of("two-link")
    exact = plant_of(arm, "elements", 3)
    line = [k for k, name in enumerate(exact.coordinates) if name.startswith("link2.y")]

    own = assemble_matrices(exact.bodies[1].beam(0.4), "y", exact.bodies[1].planes["y"])
    wrong = wrong_plant(arm, exact.basis, {"link2.y.2": 0.44}).elastic_stiffness(exact.pose())
    K = wrong[np.ix_(line, line)]
    squares = np.linalg.eigvals(np.linalg.solve(own.mass, K)).real

    expected = own.frequencies() ** 2
    expected[1] *= 1.44
    assert np.sort(squares) == pytest.approx(np.sort(expected), rel=1e-7)


def free_plant(arm, *names):
    choice = BasisChoice(kind="modes", order=2)
    return assemble_plant(arm, choice, interpreted=True, parameters=names)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (
            {"stiffness_error": (0.1, 0.2)},
            r"stiffness_error: expected an array of shape \(4,\), got \(2,\)",
        ),
        ({"stiffness_error": -1.0}, r"link1\.y\.1\]: expected a number above -1, got -1"),
        (
            {"stiffness_error[link3.y.1]": 0.1},
            r"nearest: stiffness_error\), got 'stiff",
        ),
    ],
)
def test_errors_that_no_plant_has_are_refused(arm_of, values, words):
    plant = free_plant(arm_of("two-link"), "stiffness_error")
    with pytest.raises(InputError, match=words) as error:
        plant.at(values)
    assert "\n" not in str(error.value)


def test_a_part_that_no_plant_has_cannot_be_free(arm_of):
    with pytest.raises(InputError, match=r"nearest: stiffness_error\), got 'stiff"):
        free_plant(arm_of("two-link"), "stiffness_error[rotor1]")


def test_an_error_that_is_not_free_cannot_change(arm_of):
    plant = free_plant(arm_of("two-link"), "stiffness_error[link2.y.1]")

    assert plant.parameters == ("stiffness_error[link2.y.1]",)
    with pytest.raises(InputError, match=r"link1\.y\.1\]: expected 0, as it is not free, got 0\.1"):
        plant.at({"stiffness_error": 0.1})


def test_a_rigid_arm_has_no_errors(arm_of):
    plant = free_plant(arm_of("two-link").rigid, "stiffness_error")

    assert plant.parameters == ()
    assert plant.at({"stiffness_error": 0.1}).content == plant.content


def test_free_errors_are_numbers_beside_those_of_the_arm(arm_of):
    arm, errors = arm_of("sprung"), {"rotor1": 0.1, "rotor2": -0.2, "link2.y.2": 0.3}
    free = free_plant(arm, "link1.EI.y", "stiffness_error")
    values = {f"stiffness_error[{part}]": error for part, error in errors.items()}
    stiffer = arm.links[0].model_copy(update={"EI": {"y": 5.0}})
    other = arm.model_copy(update={"links": (stiffer, *arm.links[1:])})
    known, at = wrong_plant(other, free.basis, errors), free.at({"link1.EI.y": 5.0, **values})
    q, v, a = 0.01 * np.random.default_rng(3).normal(size=(3, known.n))

    assert at.numbers == pytest.approx([5.0, 0.1, -0.2, 0, 0, 0, 0.3])
    assert at.inverse_dynamics(q, v, a) == pytest.approx(known.inverse_dynamics(q, v, a), rel=1e-12)
    assert at.casadi_functions is free.casadi_functions
    assert at.nominal.content == free_plant(arm, "link1.EI.y").content


def test_a_model_with_wrong_springs_rests_where_its_own_forces_balance(arm_of):
    arm = arm_of("sprung").model_copy(update={"gravity": (0.0, -1.0, 0.0)})
    plant = plant_of(arm, "modes", 1).of_any_stiffness
    wrong = plant.at({"stiffness_error[rotor1]": 0.5, "stiffness_error[link2.y.1]": -0.2})
    q, tau = find_equilibrium(wrong, np.zeros(wrong.n))
    held = np.zeros(wrong.n)
    held[list(wrong.drives)] = tau

    assert np.abs(tau).max() > 0.1
    assert wrong.gravity(q) + wrong.elastic_force(q) == pytest.approx(held, abs=1e-11)


def test_errors_of_zero_leave_the_functions_as_they_are(arm_of):
    free = free_plant(arm_of("two-link"), "stiffness_error")
    assert free.folded.content == free_plant(arm_of("two-link")).content


def test_the_derivative_by_an_error_is_that_of_a_small_one(arm_of):
    plant = free_plant(arm_of("sprung"), "stiffness_error")
    q = plant.pose() + 0.01 * np.random.default_rng(4).normal(size=plant.n)
    errors, h = np.linspace(-0.2, 0.3, len(plant.parameters)), 1e-3
    symbols = ca.SX.sym("errors", len(errors))
    k = plant.casadi_functions["elastic_force"](q, symbols)
    by_errors = ca.Function("by_errors", [symbols], [ca.densify(ca.jacobian(k, symbols))])

    def force(x):
        return plant.at({"stiffness_error": x}).elastic_force(q)

    units = np.eye(len(errors))
    expected = [(force(errors + h * e) - force(errors - h * e)) / (2 * h) for e in units]

    # the forces are linear in the errors: the difference has no error but round-off
    found, scale = np.array(by_errors(errors)).T, np.abs(expected).max()
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9 * scale)
