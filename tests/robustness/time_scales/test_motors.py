"""Two time scales of an arm with motors: their dampers stay while the stiffness changes."""

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
from tests.arms import with_motors
from tests.two_scales import arm_of, design_of, pose_of

pytestmark = pytest.mark.usefixtures("no_compiler")

VOLTS = {"command": "voltage", "resistance": 2.6, "torque_constant": 0.08, "back_emf": 0.09}


def motorised():
    arm = arm_of("mixed")
    return with_motors(
        arm, *(VOLTS | ({} if k.flexible_joint else {"gear": 4.0}) for k in arm.links)
    )


def given(angle):
    """A composite design with fast gains of its own, in volts: no Riccati equation sees dampers."""
    m, names = 3, ["rotor2", "rotor3", *(f"link{j}.y.{k}" for j in (1, 3) for k in (1, 2))]
    gains = 0.1 * np.arange(1.0, 1 + m * len(names)).reshape(m, -1) / 20
    fast = {"Kp": gains.tolist(), "Kv": (0.1 * gains).tolist(), "columns": names}
    return design_of(motorised(), angle, fast, gains=(6.0, 3.0))


def loop_of(angle, s=1.0, fixed="none"):
    arm, design = soften_arm(motorised(), s, fixed), soften_design(given(angle), s)
    controller = design_controller(arm, design, interpreted=True)
    return close_around(controller, assemble_plant(arm, BasisChoice(order=3), interpreted=True))


@pytest.mark.slow_but("rotor-joints-0.3", "rotor-all-20.0", "rotor-joints-20.0")
@pytest.mark.parametrize("s", [0.3, 20.0])
@pytest.mark.parametrize("fixed", ["none", "joints", "all"])
@pytest.mark.parametrize("angle", ["link", "rotor"])
def test_the_pencil_keeps_the_dampers_of_motors(angle, fixed, s):
    final = pose_of(motorised())
    pencil = separate_loop(loop_of(angle), final, fixed)
    rebuilt = linearise_loop(loop_of(angle, s, fixed), final, 0.0).poles

    found = pencil.poles(1 / np.sqrt(s))
    assert np.sort_complex(found) == pytest.approx(np.sort_complex(rebuilt), rel=1e-7, abs=1e-7)


@pytest.mark.parametrize("back_emf", [0.0, 0.09])
def test_a_loop_that_is_redesigned_scales_no_time_where_motors_damp(back_emf):
    arm = motorised()
    links = [
        {**link, "motor": link["motor"] | {"back_emf": back_emf}} for link in arm.table()["link"]
    ]
    arm = type(arm).model_validate({**arm.table(), "name": "arm", "link": links})
    controller = design_controller(arm, given("rotor"), interpreted=True)
    basis = BasisChoice(order=2)
    setup = Setup(design_arm=arm, true_arm=arm, design_basis=basis, truth_basis=basis)
    redesigned = RedesignedLoop(
        setup=setup, controller=controller, fixed="none", times=(0.0,), say=str, why="a test"
    )
    assert redesigned.scales_time == (back_emf == 0)
    # at the true stiffness both ways give the loop as it is
    own = close_around(controller, assemble_plant(arm, basis, interpreted=True))
    expected = linearise_loop(own, controller.reference.start, 0.0).poles
    found = redesigned.spectra(1.0)[0]
    np.testing.assert_allclose(np.sort_complex(found), np.sort_complex(expected), rtol=1e-6)
