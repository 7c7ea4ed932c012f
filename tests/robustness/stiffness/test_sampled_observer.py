"""Errors of the stiffness of a sampled observer: the form found inside it, and its margin."""

import numpy as np
import pytest

from flexctl.control import design_controller
from flexctl.loop.closed_loop import close_around
from flexctl.loop.equilibrium import find_loop_equilibrium
from flexctl.loop.linear import linearise_at, linearise_loop
from flexctl.loop.linear_loop import sampled_loop
from flexctl.model.record import BasisChoice
from flexctl.plant import STIFFNESS_ERROR
from flexctl.robustness.lft import cost_of_scalings
from flexctl.robustness.stiffness import structured_errors
from flexctl.robustness.stiffness.margin import stiffness_margin
from flexctl.robustness.stiffness.model_errors import RestingLaw, all_together, by_mode
from flexctl.robustness.stiffness.pose_loop import loop_at
from flexctl.robustness.stiffness.structured_errors import bound_errors, structured_loop

T = 2e-3
ROTOR = {"rotor_inertia": 0.05, "stiffness": 60.0, "damping": 0.01}


@pytest.fixture(scope="module", autouse=True)
def _interpreted(no_compiler):
    """Functions are called a few times."""


def closed(make, method, delay, joint=None, late=0.0, order=2):
    arm = make["single"](**({"flexible_joint": ROTOR} if joint else {}))
    own = [{"kind": "encoder", "noise": 1e-5, "delay": late}, {"kind": "gauge", "xi": 0.1}]
    own[1]["noise"] = 1e-3
    own += [{"kind": "torque", "noise": 1e-2}] if joint else []
    design = make["design"](
        [0.0], [0.5], method, instruments=own, observer={},
        loop={"sample_time": T, "delay": delay}, gains={"Gp": [60.0], "Gv": [12.0]},
    )  # fmt: skip
    basis = BasisChoice(kind="modes", order=order)
    controller = design_controller(arm, design, basis, parameters=(STIFFNESS_ERROR,))
    return close_around(controller, controller.plant.nominal)


@pytest.mark.slow_but(
    "False-0.002-decoupling-0.0-None",
    "False-0.002-joint-pd-0.0028-None",
    "False-0.0-decoupling-0.0-None",
)
@pytest.mark.parametrize(
    ("method", "delay", "joint"),
    [("decoupling", 0.0, None), ("joint-pd", 1.4 * T, None), ("decoupling", T, "flexible")],
)
@pytest.mark.parametrize("late", [0.0, T])
@pytest.mark.parametrize("together", [True, False])
def test_the_form_is_the_law_under_errors(make, method, delay, joint, late, together):
    loop = closed(make, method, delay, joint, late)
    law = RestingLaw(loop, np.array([0.5]), 0.0)
    groups = (all_together if together else by_mode)(loop.controller.plant)
    form, J_0 = law.form(groups), law(np.zeros(law.parts))
    errors = np.array([0.3, -0.2, 0.5])[: law.parts]
    delta = [0.3] if together else errors
    expected = law(np.full(law.parts, 0.3) if together else errors)
    size = np.abs(expected).max(axis=1, keepdims=True) + np.abs(J_0).max(axis=1, keepdims=True)
    size[size == 0] = 1.0
    np.testing.assert_allclose(
        (J_0 + form.change(np.array(delta))) / size, expected / size, atol=1e-8
    )


def test_the_margin_is_where_a_multiplier_leaves_the_circle(make):
    # against the eigenvalues of the loop closed again with the errors
    loop = closed(make, "decoupling", T, order=1)
    arm, design = loop.truth.arm, loop.controller.design
    basis = loop.controller.plant.basis
    margin = stiffness_margin(arm, design, n_path=0, truth_basis=basis, design_basis=basis)
    found = margin.exact.upper.alpha

    def largest(alpha):
        linear = linearise_loop(loop.under_errors(alpha), np.array([0.5]), 0.0)
        return np.abs(np.linalg.eigvals(sampled_loop(linear, T, linear.delay))).max()

    assert largest(0.0) < 1
    assert largest(0.999 * found) < 1 < largest(1.001 * found)


def test_an_observer_that_predicts_in_many_steps_is_followed_to_the_same_margin(make, monkeypatch):
    # where the exact problem is too large; here it is not, and gives the reference
    loop = closed(make, "decoupling", T, order=1)
    exact = loop_at(loop, np.array([0.5]), 0.0)
    monkeypatch.setattr("flexctl.robustness.lft.real_crossings.MOST_UNKNOWNS", 0)
    followed = loop_at(loop, np.array([0.5]), 0.0)

    assert followed.moves
    end, proven = followed.end(1)
    assert not proven
    monkeypatch.undo()
    assert not exact.moves
    assert end == pytest.approx(exact.end(1)[0], rel=1e-3)


@pytest.mark.parametrize("period", [T, 0.0])
def test_an_observer_of_a_springs_torque_is_followed_under_gravity(make, period):
    # a torque that another stiffness does not explain moves the estimate, though integrals hold
    arm = make["single"](flexible_joint=ROTOR | {"damping": 0.2}, damping=0.03)
    arm = make["arm"](arm.table()["link"], (0.0, -9.81, 0.0), {"mass": 0.25})
    own = [{"kind": "encoder", "noise": 1e-4}, {"kind": "torque", "noise": 1e-3}]
    design = make["design"](
        [0.0], [0.5], "computed-torque", instruments=own, observer={},
        loop={"sample_time": period}, gains={"Gp": [60.0], "Gv": [14.0], "Gi": [20.0]},
    )  # fmt: skip
    basis = BasisChoice(kind="modes", order=1)
    controller = design_controller(arm, design, basis, parameters=(STIFFNESS_ERROR,))
    loop = close_around(controller, controller.plant.nominal)
    at = loop_at(loop, np.array([0.5]), 0.0)
    assert at.moves
    found = at.interval.upper.alpha

    def growth(alpha):
        wrong = loop.under_errors(alpha)
        rest = find_loop_equilibrium(wrong, np.array([0.5]), 0.0)
        return linearise_at(wrong, rest, 0.0).poles.real.max()

    assert growth(0.0) < 0
    assert growth(0.999 * found) < 0 < growth(1.001 * found)


def test_integrals_hold_nothing_where_an_estimate_moves(make):
    # two joints, whose inertia depends on the pose: held by integrals, no form would be found
    earth = (0.0, -9.81, 0.0)
    links = [dict(link) for link in make["two-link"](earth, EI=40.0).table()["link"]]
    links[1]["flexible_joint"] = ROTOR | {"stiffness": 300.0}
    arm = make["arm"](links, earth, {"mass": 0.1})
    own = [{"kind": "encoder", "noise": 1e-4}, {"kind": "torque", "noise": 1e-3}]
    design = make["design"](
        [-1.0, 0.4], [-0.6, 0.8], "computed-torque", instruments=own, observer={},
        loop={"sample_time": T}, gains={"Gp": [100.0], "Gv": [16.0], "Gi": [20.0]},
    )  # fmt: skip
    basis = BasisChoice(kind="modes", order=1)
    controller = design_controller(arm, design, basis, parameters=(STIFFNESS_ERROR,))
    loop = close_around(controller, controller.plant.nominal)
    assert loop_at(loop, loop.controller.reference.final, 0.0).moves


@pytest.mark.slow
def test_errors_in_too_many_places_for_bounds_are_followed(make, monkeypatch):
    links = [link | {"damping_ratio": 0.02} for link in make["two-link"](EI=40.0).table()["link"]]
    arm = make["arm"](links, (0.0, 0.0, 0.0), {"mass": 0.1})
    design = make["design"](
        [0.0, 0.4], [0.5, 0.8], "composite", observer={}, loop={"sample_time": T, "delay": T},
        instruments=[{"kind": "encoder", "noise": 1e-5}], gains={"Gp": [20.0] * 2, "Gv": [9.0] * 2},
        fast_loop={"weights": {"strain_energy": 1.0, "kinetic_energy": 1.0, "effort": 0.1}},
    )  # fmt: skip
    basis = BasisChoice(kind="modes", order=1)
    controller = design_controller(arm, design, basis, parameters=(STIFFNESS_ERROR,))
    loop, end = close_around(controller, controller.plant.nominal), np.array([0.5, 0.8])
    cost = cost_of_scalings(structured_loop(loop, end, 0.0, {"modes": 1.0}))
    exact = bound_errors(loop, end, 0.0, {"modes": 1.0}, t=0.0, where="here").bounds
    assert exact.proven
    monkeypatch.setattr(structured_errors, "_HOPELESS", cost - 1)
    found = bound_errors(loop, end, 0.0, {"modes": 1.0}, t=0.0, where="here").bounds
    assert not found.proven
    assert "places, too many for bounds of them" in found.notes[-1]
    assert found.guaranteed_fraction == pytest.approx(exact.guaranteed_fraction, rel=0.05)
    assert found.worst_case.gamma >= exact.guaranteed_fraction
