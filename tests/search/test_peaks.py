"""Peaks of runs as pieces of limits: slopes after the motion, and windows of one sample."""

import numpy as np
import pytest

from flexctl import close_loop, design_controller, load_design, load_model, tune
from flexctl.model import Design, build_file
from flexctl.search.tuning.requirements import SETTLING
from flexctl.search.tuning.runs import Peaks, values_at
from flexctl.simulation import Tolerance, simulate
from flexctl.verdict import run_times
from flexctl.verdict.between_samples import phases

ARM = "single-link-hub"


def ran(loop):
    return simulate(
        loop, times=run_times(loop), tolerance=Tolerance.of(1e-10), integrator="explicit"
    )


def hub(name, **loop):
    table = {key: x for key, x in load_design(name).table().items() if key != "expect"}
    table["loop"] = {**table["loop"], **loop}
    return build_file(Design, table, name, None)


@pytest.mark.parametrize("free", ["gains.Gp", "gains.Gv"])
@pytest.mark.parametrize(("key", "after"), [(SETTLING, 0.03), ("residual.tip_error_max", 0.0)])
def test_slopes_after_the_motion_are_those_where_the_motion_ends_with_the_gains(free, key, after):
    # a shaper at a frequency of the loop: softer gains make the motion longer
    loop = close_loop(design_controller(ARM, hub("hub-shaped", settle_within=1e-6)), ARM)
    gain = loop.controller.design.gains.table()[free[-2:]]
    size = float(np.max(gain))
    peaks, step = Peaks(key=key, after=after), 1e-4

    def at(factor):
        return loop.at({free: factor * size})

    ends = [at(1 + d).controller.reference.duration for d in (-step, step)]
    assert abs(ends[1] - ends[0]) > 1e-7 * step
    here = peaks.signals(loop, ran(loop))
    places = peaks.find(here)[:1]
    moved = at(1 + step)
    slope = (values_at(peaks.signals(moved, ran(moved)), places) - values_at(here, places)) / step
    less, more = (peaks.largest(at(1 + d), ran(at(1 + d))) for d in (-step, step))
    assert slope[0] == pytest.approx((more - less) / (2 * step), rel=0.02)


@pytest.mark.parametrize("duration", [1.001, 1.003])
def test_a_last_tenth_of_one_sample_is_tuned(duration):
    found = tune(
        ARM,
        hub("hub-pd", duration=duration),
        {"gains.Gv": (3.0, 12.0)},
        minimise="residual.tip_error_end",
        subject_to=[],
        starts=1,
        evaluations=3,
        jobs=1,
    )
    assert found.objective_after <= found.objective_before


def test_the_sample_at_the_end_of_the_motion_belongs_to_both_phases_whatever_its_round_off():
    loop = close_loop(design_controller(ARM, "hub-shaped"), ARM)
    run, reference = ran(loop), loop.controller.reference
    k = int(np.abs(run.t - reference.duration).argmin())
    own = phases(run, reference)

    assert 0 < abs(run.t[k] - reference.duration) < 1e-11  # that it is off is what this is about
    assert own.moving[k]
    assert own.after[k]
    assert not own.moving[k + 1]
    assert not own.after[k - 1]


def test_its_error_counts_after_the_motion():
    # the largest after the motion is that at its end
    arm = load_model("theodore-ghosal-rrp")
    loop = close_loop(design_controller(arm, "rrp-shaped"), arm)
    run = ran(loop)
    k = int(np.abs(run.t - loop.controller.reference.duration).argmin())

    largest = Peaks(key="residual.tip_error_max").largest(loop, run)
    assert largest == pytest.approx(run.rest_error[k], rel=1e-12)
    assert largest > 1.01 * run.rest_error[k + 1]
