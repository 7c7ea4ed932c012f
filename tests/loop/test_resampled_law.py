"""Laws that read instruments at another sampling period: differences are those of every period."""

import numpy as np
import pytest
import scipy.optimize

import flexctl
from flexctl.control import design_controller
from flexctl.errors import ComputationError
from flexctl.loop.closed_loop import close_loop
from flexctl.loop.linear import linearise
from flexctl.loop.linear_loop import sampled_loop, sampled_loops
from flexctl.loop.resampled_law import resampled
from flexctl.model.record import BasisChoice
from flexctl.verdict.sampling_rate import smallest_sampling_rate

MODES = BasisChoice(kind="modes", order=1)
T = 2e-3
ROTOR = {"rotor_inertia": 0.05, "stiffness": 60.0, "damping": 0.01}
ENCODER = {"kind": "encoder", "noise": 1e-5}
DIFFERENCE = {"kind": "difference", "time_constant": 0.004}
NOTCH = {"kind": "notch", "frequency": 20.0, "zero_damping": 0.1, "pole_damping": 0.6}
GAINS = {"Gp": [12.0], "Gv": [2.0]}


@pytest.fixture(scope="module", autouse=True)
def _interpreted(no_compiler):
    """Functions are called a few times."""


def closed(make, arm, instruments, method="joint-pd", **tables):
    tables = {"gains": GAINS, "loop": {"sample_time": T, "delay": 0.001}} | tables
    design = make["design"]([0.0], [0.5], method, instruments=instruments, **tables)
    return close_loop(design_controller(arm, design, MODES), arm, modes=2)


CASES = {
    "difference": ([ENCODER, {"kind": "difference"}], {}),
    "filtered": ([ENCODER, DIFFERENCE], {}),
    "exact encoder": ([{"kind": "encoder"}, DIFFERENCE], {}),
    "integral": ([ENCODER, DIFFERENCE], {"gains": GAINS | {"Gi": [4.0]}}),
    "notch": ([ENCODER, DIFFERENCE], {"filters": [NOTCH]}),
    "pid": (
        [ENCODER],
        {"method": "pid", "gains": GAINS | {"Gi": [0.0], "derivative_filter": 90.0}},
    ),
}


@pytest.mark.parametrize("period", [T, 0.7 * T, 4 * T])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("joint", ["rigid", "flexible"])
def test_the_loop_is_that_of_a_law_designed_with_that_period(make, joint, case, period):
    arm = make["single"](**({"flexible_joint": ROTOR} if joint == "flexible" else {}))
    instruments, tables = CASES[case]
    loop = closed(make, arm, instruments, **tables)
    again = resampled(linearise(loop), loop.controller)(period)
    other = linearise(loop.at({"loop.sample_time": period}))

    def alive(linear):
        # beyond, multipliers belong to samples that are gone after one step
        p = linear.poles
        return np.sort_complex(p[p.real > np.log(1e-3) / period])

    np.testing.assert_allclose(alive(again), alive(other), rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("case", CASES)
def test_maps_made_together_have_the_multipliers_of_each(make, case):
    instruments, tables = CASES[case]
    loop = closed(make, make["single"](), instruments, **tables)
    at = resampled(linearise(loop), loop.controller)
    periods = np.array([0.3, 1.0, 2.5]) * T
    laws = [at(period) for period in periods]
    for step, law in zip(sampled_loops(laws[0], periods, laws), laws, strict=True):
        expected = np.poly(sampled_loop(law, law.sample_time, law.delay))
        np.testing.assert_allclose(np.poly(step), expected, rtol=1e-8, atol=1e-9)


def rigid_radius(period, inertia, kp, kd):
    """Spectral radius of 1/(J s^2), held, under kp y + kd (y - y_before)/T."""
    held = period**2 / (2 * inertia)
    law = np.array([kp + kd / period, -kd / period])
    step = np.polymul([1.0, 0.0], np.polymul([1.0, -1.0], [1.0, -1.0]))
    return np.abs(np.roots(np.polyadd(step, held * np.polymul([1.0, 1.0], law)))).max()


def test_a_rigid_link_with_differences_needs_the_rate_of_its_own_polynomial():
    arm = flexctl.load_model("single-link-hub")
    link = arm.links[0].model_copy(update={"EI": {}})
    arm = arm.model_copy(update={"links": (link,), "truth": None})
    design = flexctl.load_design("hub-pd")
    table = {k: v for k, v in design.table().items() if k != "expect"}
    table |= {"name": "differences", "loop": {"sample_time": 1e-3, "duration": 4.0}}
    table["instruments"] = [{"kind": "encoder"}, {"kind": "difference"}]
    controller = design_controller(arm, type(design).model_validate(table), MODES)
    loop = linearise(close_loop(controller, arm, modes=1))
    rate = smallest_sampling_rate(loop, own_states=True, law_at=resampled(loop, controller))

    inertia = float(loop.plant.M[0, 0])
    kp, kd = (float(gain[0]) for gain in (design.gains.Gp, design.gains.Gv))
    limit = scipy.optimize.brentq(lambda x: rigid_radius(x, inertia, kp, kd) - 1, 1e-2, 1.0)
    assert rate == pytest.approx(1 / limit, rel=1e-4)


def test_late_readings_become_others_at_another_rate(make):
    loop = closed(make, make["single"](), [ENCODER | {"delay": T}, DIFFERENCE])
    with pytest.raises(ComputationError, match="late readings"):
        resampled(linearise(loop), loop.controller)
