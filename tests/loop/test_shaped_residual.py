"""What a shaped motion leaves of the vibration in a run, over the error of its frequency."""

import numpy as np
import pytest

from flexctl.control import design_controller
from flexctl.loop.closed_loop import close_loop
from flexctl.model import BasisChoice, Design
from flexctl.plant import assemble_plant
from flexctl.simulation.simulation import simulate
from tests.arms import single_link

pytestmark = pytest.mark.usefixtures("no_compiler")

T = 0.31  # [s] of the motion, after which much is left of one without shaper
LEFT = {  # impulses half a period apart add up as cosines, r = w/w_shaper
    "ZV": lambda r: abs(np.cos(np.pi * r / 2)),
    "ZVD": lambda r: np.cos(np.pi * r / 2) ** 2,
    "EI": lambda r: abs(0.475 + 0.525 * np.cos(np.pi * r)),
}


def swing(w, shaper=None):
    """Amplitude [m] at the tip after the joint has moved by 1 mrad, of the only mode w [rad/s]."""
    reference = {"kind": "cycloid", "from": [0.0], "to": [1e-3], "duration": T}
    reference |= {"shaper": shaper} if shaper else {}
    table = {"name": "shaped", "summary": "s", "source": "own", "model": "arm"}
    table |= {"method": "prescribed-motion", "reference": reference, "loop": {"duration": 2.0}}
    arm = single_link(damping=0.0)
    controller = design_controller(arm, Design.model_validate(table), BasisChoice(order=1))
    run = simulate(close_loop(controller, arm, BasisChoice(order=1)), times=np.array([2.0]))
    return np.hypot(run.q[1, -1], run.v[1, -1] / w)


@pytest.fixture(scope="module")
def mode():
    """Frequency [rad/s] of the link with its joint held, by hand from its plant's matrices."""
    plant = assemble_plant(single_link(damping=0.0), modes=1)
    q = np.zeros(2)
    return np.sqrt(plant.tangent_stiffness(q)[1, 1] / plant.mass_matrix(q)[1, 1])


@pytest.mark.slow_but("ZVD-0.1")
@pytest.mark.parametrize("error", [-0.2, 0.0, 0.1])
@pytest.mark.parametrize("kind", LEFT)
def test_a_run_leaves_what_the_closed_form_says(mode, kind, error):
    shaped = swing(mode, {"kind": kind, "frequency": (1 + error) * mode})

    # of 1 mrad the squares of deflections are a millionth
    assert shaped / swing(mode) == pytest.approx(LEFT[kind](1 / (1 + error)), abs=1e-5)
