"""Laws designed anew for another sampling period: their loops are those of such designs."""

import numpy as np
import pytest

from flexctl.control import design_controller
from flexctl.loop.closed_loop import close_loop
from flexctl.loop.linear import linearise
from flexctl.loop.remade_law import remade
from flexctl.model.record import BasisChoice
from tests.arms import make_arm
from tests.designs import make_design

SLENDER = {"joint": "revolute", "dh": {"a": 0.4}, "hub": {"mass": 1.0, "com": [0.2, 0.0, 0.0]}}
pytestmark = pytest.mark.usefixtures("no_compiler")
MODES = BasisChoice(kind="modes", order=1)
T = 2e-3
ROTOR = {"rotor_inertia": 0.05, "stiffness": 60.0, "damping": 0.01}
ENCODER = {"kind": "encoder", "noise": 1e-5}
LATE = ENCODER | {"delay": 1.5 * T}
GAUGE = {"kind": "gauge", "xi": 0.0, "noise": 1e-4, "delay": T}
DIFFERENCE = {"kind": "difference", "time_constant": 0.004}
LINK = {"side": "link"}
NOTCH = {"kind": "notch", "frequency": 20.0, "zero_damping": 0.1, "pole_damping": 0.6}
GAINS = {"Gp": [12.0], "Gv": [2.0]}
SUMMED = {"gains": GAINS | {"Gi": [4.0]}}
SAMPLED = {"sample_time": T, "delay": 0.7 * T}
OBSERVED = {"observer": {"noise": {"tip": 0.01}}}
IDEAL = {"measures": ["encoder", "tachometer", "strain_gauge"]}
CASES = {
    "late": {"instruments": [LATE, DIFFERENCE], "loop": SAMPLED, **SUMMED},
    "late and filtered": {"instruments": [LATE, DIFFERENCE], "loop": SAMPLED, "filters": [NOTCH]},
    "behind the spring": {"instruments": [LATE | LINK, DIFFERENCE | LINK], "loop": SAMPLED},
    "dual encoders": {"instruments": [LATE | LINK, ENCODER, DIFFERENCE], "loop": SAMPLED, **SUMMED},
    "tustin": {"loop": SAMPLED | {"discretisation": "tustin"}, "filters": [NOTCH], **SUMMED},
    "observer": {"instruments": [ENCODER], "loop": SAMPLED, **OBSERVED},
    "tustin observer": {
        "instruments": [ENCODER],
        "loop": SAMPLED | {"discretisation": "tustin", "prewarp": 80.0},
        **OBSERVED,
        **SUMMED,
    },
    "late observer": {"instruments": [LATE, GAUGE], "loop": SAMPLED, **OBSERVED, **SUMMED},
    "filtered observer": {"instruments": [LATE], "loop": SAMPLED, "filters": [NOTCH], **OBSERVED},
    "ideal observer": {"loop": SAMPLED | IDEAL, **SUMMED},
    "continuous observer": {"loop": IDEAL, **SUMMED},
    "continuous instruments": {"instruments": [ENCODER], **OBSERVED},
}


def closed(make, arm, tables, order=2):
    ideal = "measures" in tables.get("loop", {})
    method = "decoupling" if ideal else "joint-pd"  # which needs more than joints
    design = make["design"]([0.0], [0.5], method, **{"gains": GAINS} | tables)
    return close_loop(design_controller(arm, design, MODES), arm, modes=order)


def alive(linear, period):
    """Eigenvalues but for those of states that are gone after a sample or two."""
    p = linear.poles
    return np.sort_complex(p[p.real > np.log(1e-3) / period])


@pytest.mark.slow_but(
    "flexible-late-0.0014",
    "flexible-dual encoders-0.0014",
    "flexible-continuous instruments-0.0014",
    "rigid-behind the spring-0.0014",
    "rigid-continuous instruments-0.008",
)
@pytest.mark.parametrize("period", [T, 0.7 * T, 4 * T])
@pytest.mark.parametrize(
    ("joint", "case"),
    [
        *(("flexible", case) for case in CASES),
        *(("rigid", case) for case in CASES if case != "dual encoders"),
    ],
)
def test_the_loop_is_that_of_a_law_designed_with_that_period(make, joint, case, period):
    arm, tables = (
        make["single"](**({"flexible_joint": ROTOR} if joint == "flexible" else {})),
        CASES[case],
    )
    loop = closed(make, arm, tables)
    again = remade(loop, linearise(loop))(period)
    timed = tables.get("loop", {}) | {"sample_time": period}
    other = linearise(closed(make, arm, tables | {"loop": timed}))
    np.testing.assert_allclose(alive(again, period), alive(other, period), rtol=1e-6, atol=1e-6)


def test_a_nonlinear_law_that_reads_links_under_gravity_is_remade():
    spring = {"rotor_inertia": 0.05, "stiffness": 400.0, "damping": 0.3}
    arm = make_arm([SLENDER | {"flexible_joint": spring}] * 2, gravity=(0.0, -9.81, 0.0))
    own = [LATE | LINK, {"kind": "tachometer"}]

    def loop_at(period):
        design = make_design(
            [0.0] * 2, [0.5, 0.3], "computed-torque", instruments=own,
            gains={"Gp": [60.0], "Gv": [12.0]}, loop={"sample_time": period, "delay": 0.5e-3},
        )  # fmt: skip
        return close_loop(design_controller(arm, design), arm)

    loop = loop_at(T)
    again, other = remade(loop, linearise(loop))(0.6 * T), linearise(loop_at(0.6 * T))
    np.testing.assert_allclose(alive(again, T), alive(other, T), rtol=1e-6, atol=1e-6)
