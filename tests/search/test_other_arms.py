"""A bias on purpose, tried on arms of another stiffness than the file's."""

import numpy as np
import pytest

from flexctl.control import controller_at, design_on
from flexctl.loop.closed_loop import close_around
from flexctl.loop.eigenvalues import spectral_abscissa
from flexctl.loop.linear import linearise_loop
from flexctl.model.changed_arm import soften_arm
from flexctl.model.lookup import load_design, load_model
from flexctl.model.record import BasisChoice
from flexctl.plant.plant import assemble_plant
from flexctl.robustness.stiffness.pose_loop import Case
from flexctl.search.bias_advice import (
    bias_on_softer_arms,
    stable_on_arms,
    tolerated_by_other_arms,
)
from flexctl.search.changed_loops import over_bias
from tests.arms import wrong_plant

BASIS = BasisChoice(kind="modes", order=2)


@pytest.fixture(scope="module")
def case():
    design = load_design("rrp-stiff-decoupling")
    return Case.of(load_model(design.model), design, truth_basis=BASIS, n_path=1)


def abscissa(case, bias, error):
    """Of the loop rebuilt with numbers, on the arm that the file misses by `error`."""
    arm = soften_arm(case.setup.design_arm, 1 / (1 + error))
    plant = wrong_plant(case.setup.design_arm, case.design.basis, bias)
    controller = design_on(plant, case.design)
    loop = close_around(controller, assemble_plant(arm, BASIS, interpreted=True))
    return spectral_abscissa(linearise_loop(loop, controller.reference.final, 0.0).poles)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("bias", "error"),
    [pytest.param(0.0, 0.0, marks=pytest.mark.slow), (0.0, 0.3), (-0.3, 0.3), (-0.3, -0.5)],
)
def test_it_is_stable_where_the_loop_made_of_numbers_is(case, bias, error):
    assert stable_on_arms(case, [error])(bias) == (abscissa(case, bias, error) < 0)


LOADED = {"tip_load": {"include": ["M"]}}
SPRING = {"rotor_inertia": 0.02, "stiffness": 100.0, "damping": 0.5}


@pytest.mark.slow_but("dropped", "elements")
@pytest.mark.parametrize(
    ("more", "truth"),
    [
        (LOADED | {"flexible_joint": SPRING}, {"order": 2}),
        ({}, {"kind": "elements", "order": 2}),
        ({"shear_stiffness": {"y": 1e4}}, {"order": 2}),
        (LOADED, {"order": 4, "drop_above": 150.0}),  # softer, the arm keeps a mode more
    ],
    ids=["modes", "elements", "shear", "dropped"],
)
def test_an_arm_with_a_wrong_file_is_the_one_assembled_anew(make, more, truth):
    arm, basis = make["single"](**more), BasisChoice(**{"kind": "modes"} | truth)
    design = make["design"]([0.0], [0.5], "decoupling", basis={"kind": "modes", "order": 1})
    case = Case.of(arm, design, truth_basis=basis, n_path=1)

    (found,) = over_bias(case, 0.3)(-0.1)

    controller = controller_at(case.closed.controller, {"stiffness_error": -0.1})
    softer = assemble_plant(soften_arm(arm, 1 / 1.3), basis, interpreted=True)
    expected = linearise_loop(close_around(controller, softer), controller.reference.final, 0.0)
    poles = np.sort_complex(expected.poles)
    assert np.sort_complex(found.poles) == pytest.approx(poles, rel=1e-8)


@pytest.mark.slow
def test_what_is_borne_is_borne_at_every_smaller_error_tried(case):
    tolerated = tolerated_by_other_arms(case, -0.4, 0.8)

    assert np.isclose(tolerated, 0.8 * np.array([0.25, 0.5, 0.75, 1.0])).any()
    assert max(abscissa(case, -0.4, sign * tolerated) for sign in (-1.0, 1.0)) < 0


@pytest.mark.slow
def test_a_bias_for_softer_arms_holds_on_them_and_a_smaller_one_does_not(case):
    start = -0.1
    bias = bias_on_softer_arms(case, start, 0.3)

    assert bias < start
    assert abscissa(case, bias, 0.3) < 0
    assert abscissa(case, bias + 0.005, 0.3) > 0
