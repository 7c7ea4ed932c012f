"""Claims of [TG95]: section 5, its verdicts and the numbers behind them."""

from types import SimpleNamespace

import numpy as np
import pytest

from examples.papers.theodore_ghosal import branches, motion
from examples.papers.theodore_ghosal.arm import arm
from flexctl.model.record import BasisChoice
from flexctl.plant.plant import assemble_plant

VERDICTS = {
    motion.desired: "holds",
    motion.joint_errors: "holds",
    motion.tip_error: "differs",
    motion.second_loop: "holds",
    motion.similar: "holds",
    motion.behind: "holds",
    motion.reason: "differs",
    branches.always_higher: "differs",
    branches.converge: "holds",
    branches.acceptable: "differs",
    branches.invariant: "differs",
    branches.varying: "holds",
    branches.proportional: "holds",
}


@pytest.mark.slow
@pytest.mark.parametrize("make", VERDICTS, ids=lambda make: make.__name__)
def test_every_claim_has_its_verdict(make):
    assert make().verdict == VERDICTS[make]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "number", "low", "high"),
    [
        (motion.desired, "peak", 2 - 1e-12, 2 + 1e-12),  # of a cycloid
        (motion.joint_errors, "modes", 0, 1e-12),
        (motion.tip_error, "modes", 0.0218, 0.0219),
        (motion.second_loop, "modes", 0.69, 0.70),
        (motion.second_loop, "rings", 4e-3, 5e-3),
        (motion.similar, "apart", 5e-4, 1e-3),
        (motion.behind, "with_J", 0, 1e-5),
        (motion.behind, "without_J_link2.z", 7e-4, 9e-4),
        (motion.behind, "without_J_link3.x", 1.6e-3, 2e-3),
        (motion.reason, "link3.x", -3e-5, -1e-5),
        # the same numbers as `flexctl track ... -m 2 --truth-modes 2 --beside e2`
        (branches.always_higher, "low", -0.0230, -0.0228),
        (branches.always_higher, "high", 0.39, 0.41),
        (branches.invariant, "link2.z.1", 54.57 / 62.70, 54.58 / 62.68),
        (branches.invariant, "link2.y.1", 71.96 / 76.86, 71.98 / 76.84),
        (branches.varying, "link3.y.1", 211.7 / 935.5, 211.9 / 935.3),
        (branches.always_higher, "low_without_J", -0.23, -0.21),
        (branches.converge, "apart", 5e-5, 1e-4),
        (branches.acceptable, "first_four", 8e-3, 9e-3),
        (branches.acceptable, "first_eight", 0.16, 0.18),
        (branches.proportional, "at_rest", 0, 1e-5),
    ],
)
def test_the_numbers_behind_a_claim(make, number, low, high):
    assert low <= make().numbers[number] <= high


@pytest.mark.parametrize("late", [2e-4, -3e-4])
def test_a_lag_is_the_shift_in_time(late):
    t = np.linspace(0, 1, 2001)
    first = SimpleNamespace(t=t, deflection={"a": np.sin(9 * t), "b": np.cos(20 * t)})
    second = SimpleNamespace(
        t=t, deflection={"a": np.sin(9 * (t - late)), "b": np.cos(20 * (t - late))}
    )
    found = motion.lag(second, first)

    assert found == pytest.approx({"a": late, "b": late}, rel=1e-3)


def test_with_the_load_of_the_paper_link_2_knows_no_inertia_beyond_it():
    def frequency(load):
        own = assemble_plant(arm(load=load), BasisChoice(order=1), interpreted=True)
        line = own.bodies[1].planes
        return {direction: float(line[direction].beta[0]) for direction in line}

    paper, full = frequency("M"), frequency("MJD")
    assert paper["y"] == pytest.approx(paper["z"])
    assert full["y"] == pytest.approx(paper["y"])  # link 3 lies along the axis of this bending
    assert full["z"] < 0.9 * paper["z"]
