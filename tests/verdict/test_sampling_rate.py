"""The smallest sampling rate of laws with states of their own, in every verdict the same."""

import numpy as np
import pytest

from flexctl.errors import ComputationError
from flexctl.loop.linear import linearise
from flexctl.verdict.evaluation import evaluate
from flexctl.verdict.partial_verdicts import linear_poses_metrics
from flexctl.verdict.sampling_rate import sampling_rate_of

pytestmark = pytest.mark.usefixtures("no_compiler")
RATE = "margins.min_sampling_rate"
T = 0.002
LOW = {"kind": "low-pass", "frequency": 200.0}
LEAD = {"kind": "lead", "frequency": 60.0, "ratio": 3.0}
ROLL_OFF = {"kind": "roll-off", "frequency": 400.0, "order": 3}
DIFFERENCE = [{"kind": "encoder"}, {"kind": "difference", "time_constant": 0.003}]


def close(make, method="joint-pd", **tables):
    gains = {"Gp": [20.0], "Gv": [5.0]} | ({"derivative_filter": 100.0} if method == "pid" else {})
    design = make["design"]([0.0], [0.5], method, gains=gains, **tables)
    return make["close"](make["single"](), design)


@pytest.mark.parametrize(
    ("method", "tables"),
    [
        ("pid", {}),
        ("joint-pd", {"filters": [LOW]}),
        ("joint-pd", {"loop": {"sample_time": T}, "instruments": DIFFERENCE}),
    ],
)
def test_tuning_and_evaluations_have_the_same_rate(make, method, tables):
    loop = close(make, method, **tables)
    whole = evaluate(loop).min_sampling_rate
    assert whole is not None
    assert linear_poses_metrics(loop, [RATE])[RATE] == pytest.approx(whole, rel=1e-9)


@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize(
    ("method", "filters"),
    [
        ("pid", []),
        ("joint-pd", [LOW | {"frequency": 500.0}, LOW | {"frequency": 400.0}]),
        ("pid", [LEAD, ROLL_OFF]),
    ],
)
def test_a_law_made_for_that_period_is_stable_up_to_it(make, method, filters, sampled):
    # made anew every filter has its own input held, not the series of them
    loop = close(make, method, filters=filters, loop={"sample_time": T} if sampled else {})
    rate = sampling_rate_of(loop, linearise(loop)) or np.nan
    for share, stable in ((0.999, True), (1.001, False)):
        anew = close(make, method, filters=filters, loop={"sample_time": share / rate})
        assert bool(linearise(anew).poles.real.max() < 0) == stable


def test_a_law_by_tustin_is_another_one_at_every_rate(make):
    loop = close(make, "pid", loop={"sample_time": T, "discretisation": "tustin"})
    with pytest.raises(ComputationError, match="Tustin"):
        linear_poses_metrics(loop, [RATE])
