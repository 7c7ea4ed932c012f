"""Runs along shaped references: what is left of every mode of the loop, against its closed form."""

import numpy as np
import pytest
import scipy.linalg

from flexctl.loop.linear import linearise_loop
from flexctl.simulation.simulation import simulate
from tests.designs import make_design
from tests.loops import close

SMALL = 1e-3  # rad: what is not linear is a millionth of that
LATE = 1.6  # s: later than every motion ends here


def run_of(arm, reference, gains=None, **more):
    """A stiff joint PD around an arm, and its run."""
    gains = {"Gp": [600.0], "Gv": [40.0]} | (gains or {})
    ends = {"from": [0.0], "to": [SMALL]}
    loop = {"duration": 2.0} | more
    tables = {"gains": gains, "reference": reference | ends, "basis": {"order": 1}}
    design = make_design([0.0], [SMALL], "joint-pd", **tables)
    closed = close(arm, design.model_copy(update={"loop": type(design.loop)(**loop)}), order=1)
    return closed, simulate(closed, times=np.array([0.0, LATE]))


def slowest_mode(linear):
    """Pole p of the slowest ringing mode of a loop, and the row w' with (w' x)' = p w' x."""
    n = len(linear.plant.M)
    force = np.hstack([-linear.plant.K, -linear.plant.D]) + linear.plant.B @ linear.feedback
    A = np.vstack([np.eye(n, 2 * n, n), np.linalg.solve(linear.plant.M, force)])
    poles, rows, _ = scipy.linalg.eig(A, left=True, right=True)
    ringing = [k for k, p in enumerate(poles) if p.imag > 0 and -p.real < 0.5 * abs(p)]
    k = min(ringing, key=lambda k: abs(poles[k]))
    return poles[k], rows[:, k].conj()


def excited(closed, run):
    """Return the pole of the slowest mode, and its complex amplitude late in a run."""
    linear = linearise_loop(closed, closed.controller.reference.final, 0.0)
    pole, row = slowest_mode(linear)
    return pole, row @ np.concatenate([run.q[:, -1] - linear.plant.q0, run.v[:, -1]])


MOTIONS = {
    "cycloid": {"kind": "cycloid", "duration": 0.25},
    "bang-bang": {"kind": "bang-bang", "duration": 0.25},
    "setpoint": {"kind": "setpoint"},
}


@pytest.fixture(scope="module")
def unshaped(make):
    """unshaped(kind): pole and amplitude after the motion as it is asked for."""
    found = {}

    def of(kind):
        if kind not in found:
            found[kind] = excited(*run_of(make["single"](), MOTIONS[kind]))
        return found[kind]

    return of


@pytest.mark.slow_but("cycloid-EI-0.8", "cycloid-ZVD-1.15", "bang-bang-ZV-1.15")
@pytest.mark.parametrize("off", [0.8, 1.0, 1.15])
@pytest.mark.parametrize("shaper", ["ZV", "ZVD", "EI"])
@pytest.mark.parametrize("kind", MOTIONS)
def test_what_a_shaper_leaves_is_its_transfer_function_at_the_pole(
    make, unshaped, kind, shaper, off
):
    # of a mode with pole p the part sum A_i exp(-p t_i) is left, in amplitude and in phase, however
    # wrong the shaper's frequency is (`off`); at the pole itself nothing, or V of EI
    pole, before = unshaped(kind)
    ratio = -pole.real / abs(pole)
    choice = {"kind": shaper, "frequency": off * abs(pole), "damping_ratio": ratio}
    closed, run = run_of(make["single"](), MOTIONS[kind] | {"shaper": choice})
    own = closed.controller.reference.shaper

    _, after = excited(closed, run)

    left = (own.amplitudes * np.exp(-pole * own.times)).sum()
    assert abs(after - left * before) < 1e-5 * abs(before)  # of the run and of the small motion
    late = np.exp(pole.real * own.times[-1])
    assert abs(left) * late == pytest.approx(own.residual(abs(pole), ratio), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("integral", [None, [900.0]])
def test_a_shaper_of_the_loop_finds_its_slowest_ringing_mode(make, integral):
    own = {"kind": "ZV", "frequency": "loop1"}
    shaped = MOTIONS["cycloid"] | {"shaper": own}
    closed, run = run_of(make["single"](), shaped, gains={"Gi": integral})
    linear = linearise_loop(closed, closed.controller.reference.final, 0.0)
    ringing = [p for p in linear.poles if p.imag > 0 and -p.real < 0.5 * abs(p)]
    shaper = closed.controller.reference.shaper

    assert shaper.frequencies[0] == pytest.approx(min(map(abs, ringing)), rel=1e-9)
    if not integral:  # nor is anything left of it in the run
        before = run_of(make["single"](), MOTIONS["cycloid"])
        assert abs(excited(closed, run)[1]) < 1e-5 * abs(excited(*before)[1])


def test_a_law_that_is_sampled_ever_faster_sees_the_staircase_as_a_continuous_one(make):
    # a hold of T is a delay of T/2, so that the tip differs by the order of T
    shaper = {"kind": "ZVD", "frequency": 12.0}
    reference = {"kind": "setpoint", "shaper": shaper}
    _, exact = run_of(make["single"](), reference)
    errors = []
    for T in (2e-3, 1e-3):
        _, run = run_of(make["single"](), reference, sample_time=T)
        errors.append(np.abs(run.q[:, -1] - exact.q[:, -1]).max())

    assert errors[0] / errors[1] == pytest.approx(2.0, rel=0.25)
