"""A model whose stiffness is wrong, part by part."""

import numpy as np
import pytest

from flexctl.beam.matrices import assemble_matrices
from flexctl.errors import InputError
from flexctl.model.record import BasisChoice
from flexctl.plant.plant import assemble_plant
from flexctl.plant.stiffness_error import StiffnessError

ARMS = ("rrp", "two-link", "sliding-first", "sprung")
BASES = (("modes", 2), ("elements", 1))


def wrong_plant(arm, kind, order, values):
    error = None if values is None else StiffnessError(values=values)
    basis = BasisChoice(kind=kind, order=order)
    return assemble_plant(arm, basis, interpreted=True, stiffness_error=error)


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
    exact = wrong_plant(arm, kind, order, None)
    wrong = wrong_plant(arm, kind, order, (0.3,) * len(exact.stiffness_parts))
    other = wrong_plant(scaled(arm, 1.3), kind, order, None)
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
    exact = wrong_plant(arm, kind, order, None)
    count, q = len(exact.stiffness_parts), exact.pose()
    K = exact.elastic_stiffness(q)

    def part(k):
        values = tuple(float(k == i) for i in range(count))
        return wrong_plant(arm, kind, order, values).elastic_stiffness(q) - K

    parts = [part(k) for k in range(count)]

    assert sum(parts) == pytest.approx(K, rel=1e-9, abs=1e-9 * np.abs(K).max())
    ranks = [np.linalg.matrix_rank(P, tol=1e-9 * np.abs(P).max()) for P in parts]
    assert ranks == [1] * count, "a part is one mode or one spring"


def test_a_wrong_mode_of_a_line_moves_its_own_frequency_alone(arm_of):
    arm = arm_of("two-link")
    exact = wrong_plant(arm, "elements", 3, None)
    names = exact.stiffness_parts
    line = [k for k, name in enumerate(exact.coordinates) if name.startswith("link2.y")]
    values = tuple(0.44 * (name == "link2.y.2") for name in names)

    own = assemble_matrices(exact.bodies[1].beam(0.4), "y", exact.bodies[1].planes["y"])
    wrong = wrong_plant(arm, "elements", 3, values).elastic_stiffness(exact.pose())
    K = wrong[np.ix_(line, line)]
    squares = np.linalg.eigvals(np.linalg.solve(own.mass, K)).real

    expected = own.frequencies() ** 2
    expected[1] *= 1.44
    assert np.sort(squares) == pytest.approx(np.sort(expected), rel=1e-7)


def test_errors_that_are_not_as_many_as_parts_are_refused(arm_of):
    with pytest.raises(
        InputError, match=r"stiffness_error: expected an array of shape \(4,\), got \(2,\)"
    ):
        wrong_plant(arm_of("two-link"), "modes", 2, (0.1, 0.2))


def test_unknown_errors_are_the_last_input_of_every_function(arm_of):
    arm = arm_of("two-link")
    values = (0.1, -0.2, 0.3, 0.4)
    error = StiffnessError(values=None)
    basis = BasisChoice(kind="modes", order=2)
    unknown = assemble_plant(arm, basis, interpreted=True, stiffness_error=error)
    known = wrong_plant(arm, "modes", 2, values)
    rng = np.random.default_rng(3)
    q, v, a = 0.01 * rng.normal(size=(3, known.n))

    found = np.array(unknown.casadi_functions["inverse_dynamics"](q, v, a, values)).ravel()

    assert found == pytest.approx(known.inverse_dynamics(q, v, a), rel=1e-12)
    assert unknown.nominal.mass_matrix(q) == pytest.approx(known.mass_matrix(q), rel=1e-15)
