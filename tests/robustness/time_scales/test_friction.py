"""Two time scales of an arm with friction: viscous dampers stay while the stiffness changes."""

import numpy as np
import pytest

from flexctl.control import design_controller
from flexctl.loop.closed_loop import close_around
from flexctl.loop.linear import linearise_loop
from flexctl.loop.setup import Setup
from flexctl.model.changed_arm import soften_arm, soften_design
from flexctl.model.record import BasisChoice
from flexctl.plant.plant import assemble_plant
from flexctl.robustness.time_scales.redesigned_loop import RedesignedLoop
from flexctl.robustness.time_scales.separated_loop import separate_loop
from tests.two_scales import arm_of, design_of, pose_of

pytestmark = pytest.mark.usefixtures("no_compiler")


def rubbing(viscous=0.3):
    arm = arm_of("mixed")
    links = [
        {**link, "friction": {"viscous": viscous, "coulomb": 0.1, "side": side}}
        for link, side in zip(arm.table()["link"], ("motor", "link", "motor"), strict=True)
    ]
    return type(arm).model_validate({**arm.table(), "name": "arm", "link": links})


def given(arm):
    """A composite design with fast gains of its own."""
    m, names = 3, ["rotor2", "rotor3", *(f"link{j}.y.{k}" for j in (1, 3) for k in (1, 2))]
    gains = 0.1 * np.arange(1.0, 1 + m * len(names)).reshape(m, -1) / 20
    fast = {"Kp": gains.tolist(), "Kv": (0.1 * gains).tolist(), "columns": names}
    return design_of(arm, "rotor", fast, gains=(6.0, 3.0))


def loop_of(s=1.0, fixed="none"):
    arm = soften_arm(rubbing(), s, fixed)
    controller = design_controller(arm, soften_design(given(rubbing()), s), interpreted=True)
    return close_around(controller, assemble_plant(arm, BasisChoice(order=3), interpreted=True))


@pytest.mark.slow_but("all-20.0", "joints-20.0")
@pytest.mark.parametrize("s", [0.3, 20.0])
@pytest.mark.parametrize("fixed", ["none", "joints", "all"])
def test_the_pencil_keeps_the_dampers_of_viscous_friction(fixed, s):
    final = pose_of(rubbing())
    rebuilt = linearise_loop(loop_of(s, fixed), final, 0.0).poles
    found = separate_loop(loop_of(), final, fixed).poles(1 / np.sqrt(s))
    assert np.sort_complex(found) == pytest.approx(np.sort_complex(rebuilt), rel=1e-7, abs=1e-7)


@pytest.mark.parametrize("viscous", [0.0, 0.3])
def test_a_loop_that_is_redesigned_scales_no_time_where_joints_rub(viscous):
    arm, basis = rubbing(viscous), BasisChoice(order=2)
    controller = design_controller(arm, given(arm), interpreted=True)
    setup = Setup(design_arm=arm, true_arm=arm, design_basis=basis, truth_basis=basis)
    redesigned = RedesignedLoop(
        setup=setup, controller=controller, fixed="none", times=(0.0,), say=str, why="a test"
    )
    assert redesigned.scales_time == (viscous == 0)
