"""The smallest sampling rate of laws with states of their own, in every verdict the same."""

import numpy as np
import pytest
import scipy.linalg
from pydantic import ValidationError

from flexctl.control import design_controller
from flexctl.errors import ComputationError, InputError
from flexctl.loop.closed_loop import close_loop
from flexctl.loop.linear import linearise
from flexctl.model.lookup import load_design, load_model
from flexctl.verdict.evaluation import evaluate
from flexctl.verdict.partial_verdicts import linear_poses_metrics
from flexctl.verdict.sampling_rate import sampling_rate_of, smallest_sampling_rate
from tests.arms import rigid_link
from tests.designs import make_design
from tests.loops import hand_made

pytestmark = pytest.mark.usefixtures("no_compiler")
RATE = "margins.min_sampling_rate"
T = 0.002
LOW = {"kind": "low-pass", "frequency": 200.0}
LEAD = {"kind": "lead", "frequency": 60.0, "ratio": 3.0}
ROLL_OFF = {"kind": "roll-off", "frequency": 400.0, "order": 3}
NOTCH = {"kind": "notch", "frequency": "link1.y.2"}
GENTLE = {"Gp": [2.0], "Gv": [0.5]}
FAST = {"derivative_filter": 2000.0}
DIFFERENCE = [{"kind": "encoder"}, {"kind": "difference", "time_constant": 0.003}]


def close(make, method="joint-pd", **tables):
    gains = {"Gp": [20.0], "Gv": [5.0]} | ({"derivative_filter": 100.0} if method == "pid" else {})
    gains |= tables.pop("gains", {})
    design = make["design"]([0.0], [0.5], method, gains=gains, **tables)
    return make["close"](make["single"](), design)


@pytest.mark.slow_but("joint-pd-tables1", "pid-tables0")
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
    rate = sampling_rate_of(loop, linearise(loop)).rate
    for share, stable in ((0.999, True), (1.001, False)):
        anew = close(make, method, filters=filters, loop={"sample_time": share / rate})
        assert bool(linearise(anew).poles.real.max() < 0) == stable


@pytest.mark.slow_but(
    "pid-tables2-gains.derivative_filte*",
    "pid-tables2-gains.derivative_filte*",
    "joint-pd-tables0-filters[[]1].freque*",
)
@pytest.mark.parametrize("loop", [{}, {"sample_time": T / 4}])
@pytest.mark.parametrize(
    ("method", "tables", "key", "bound"),
    [
        ("joint-pd", {"filters": [LOW | {"frequency": 1500.0}]}, "filters[1].frequency", 1500.0),
        ("joint-pd", {"filters": [NOTCH], "gains": GENTLE}, "filters[1].frequency", None),
        ("pid", {"gains": FAST}, "gains.derivative_filter", 2000.0),
    ],
)
def test_a_rate_that_the_design_refuses_is_none(make, method, tables, key, bound, loop):
    closed = close(make, method, loop=loop, **tables)
    found = sampling_rate_of(closed, linearise(closed))
    assert found.limited_by == key
    assert linear_poses_metrics(closed, [RATE])[RATE] == found.rate
    if bound:
        assert found.rate == pytest.approx(bound / np.pi, rel=1e-4)
    anew = close(make, method, loop={"sample_time": 0.9999 / found.rate}, **tables)
    assert linearise(anew).poles.real.max() < 0
    with pytest.raises((InputError, ValidationError), match="Nyquist"):
        close(make, method, loop={"sample_time": 1.0001 / found.rate}, **tables)


def test_a_tracking_time_limits_the_period_too(make):
    gains = {"Gp": [20.0], "Gv": [5.0], "Gi": [1.0]}
    winds = {"sample_time": T, "anti_windup": "back-calculation", "tracking_time": 0.01}
    closed = close(make, gains=gains, loop=winds)
    found = sampling_rate_of(closed, linearise(closed))
    assert (found.rate, found.limited_by) == (pytest.approx(100, rel=1e-4), "loop.tracking_time")


LATE = {"kind": "encoder", "noise": 1e-5, "delay": 1.5 * T}
OBSERVED = {"instruments": [LATE], "observer": {"noise": {"tip": 0.01}}}
SAMPLED = {"sample_time": T, "delay": T / 2}
IDEAL = {"measures": ["encoder", "tachometer", "strain_gauge"]}
ANEW = {
    "tustin": ("pid", {"loop": {"sample_time": T, "discretisation": "tustin"}}),
    "sums by tustin": (
        "joint-pd",
        {"loop": {"sample_time": T, "discretisation": "tustin"}, "gains": {"Gi": [10.0]}},
    ),
    "late": ("joint-pd", {"instruments": [LATE, DIFFERENCE[1]], "loop": SAMPLED}),
    "observer": ("joint-pd", {"loop": SAMPLED, **OBSERVED}),
    "integral": ("joint-pd", {"loop": SAMPLED, "gains": {"Gi": [10.0]}, **OBSERVED}),
    "continuous": ("decoupling", {"loop": IDEAL}),
}


@pytest.mark.slow_but("tustin", "late")
@pytest.mark.parametrize("case", ANEW)
def test_a_law_that_is_designed_anew_is_stable_up_to_the_limit(make, case):
    method, tables = ANEW[case]
    loop = close(make, method, **tables)
    found = sampling_rate_of(loop, linearise(loop))
    assert found.limited_by is None
    assert linear_poses_metrics(loop, [RATE])[RATE] == found.rate
    for share, stable in ((0.5, True), (0.8, True), (0.999, True), (1.001, False)):
        timed = tables["loop"] | {"sample_time": share / found.rate}
        anew = close(make, method, **tables | {"loop": timed})
        assert bool(linearise(anew).poles.real.max() < 0) == stable


@pytest.mark.slow  # derives the observer for every period
@pytest.mark.parametrize(
    ("model", "design"),
    [
        ("vertical-2r", "vertical-2r-encoders"),
        ("vertical-2r-drives", "drives-lqg"),
        ("vertical-2r-drives", "drives-composite"),
    ],
)
def test_under_gravity_it_is_that_of_designs_of_such_periods(model, design):
    # on a truth with more modes the equilibrium depends on the gain of the observer, a little
    controller = design_controller(load_model(model), load_design(design))
    loop = close_loop(controller, load_model(model), modes=controller.plant.basis.order + 1)
    rate = sampling_rate_of(loop, linearise(loop)).rate
    for share, stable in ((0.997, True), (1.003, False)):
        anew = linearise(loop.at({"loop.sample_time": share / rate}))
        assert bool(anew.poles.real.max() < 0) == stable


def test_tustin_s_rule_is_made_below_its_prewarp_frequency_only(make):
    # near it the rule has ever larger gains: the loop is unstable before the design is refused
    rule = {"sample_time": T, "discretisation": "tustin", "prewarp": 1200.0}
    found = sampling_rate_of(loop := close(make, "pid", loop=rule), linearise(loop))
    assert 1200 < np.pi * found.rate < 1.01 * 1200


def test_instruments_with_a_period_of_their_own_allow_few_rates(make):
    own = [{"kind": "encoder", "sample_time": T / 2}, DIFFERENCE[1]]
    loop = close(make, loop={"sample_time": T}, instruments=own)
    with pytest.raises(
        ComputationError, match=r"no longer fit the sample_time of instruments\[1\]"
    ):
        linear_poses_metrics(loop, [RATE])


def test_a_band_of_instability_just_before_the_fastest_mode_folds_is_seen():
    # two inertias on a spring; the held damping of the first drives the mode before it folds
    w, mu = 17.85, 0.5686
    k, Gp, Gv = w**2 * mu / (1 + mu), 10.21, 7.364
    K = k * np.array([[1.0, -1.0], [-1.0, 1.0]])
    M, D = np.diag([1.0, mu]), 0.0326 * K / w
    A = np.block([[np.zeros((2, 2)), np.eye(2)], [-np.linalg.solve(M, K), -np.linalg.solve(M, D)]])
    B, G = np.array([[0.0], [0.0], [1.0], [0.0]]), np.array([[Gp, 0.0, Gv, 0.0]])

    def largest(rate):
        whole = scipy.linalg.expm(np.block([[A, B], [np.zeros((1, 5))]]) / rate)
        return np.abs(np.linalg.eigvals(whole[:4, :4] - whole[:4, 4:] @ G)).max()

    found = smallest_sampling_rate(hand_made(M, D, K, -G[:, :2], -G[:, 2:])) or np.nan
    dense = np.arange(3.0, 60.0, 0.01)
    unstable = dense[[largest(rate) > 1 for rate in dense]]

    assert found == pytest.approx(unstable.max(), abs=0.01)
    assert largest(5.5) < 1 < largest(6.0)  # a longer period is stable again


def test_a_loop_that_is_unstable_where_it_is_sampled_faster_has_no_such_rate(make, monkeypatch):
    name = "flexctl.verdict.sampling_rate.smallest_sampling_rate"
    monkeypatch.setattr(name, lambda *_, **__: None)
    loop = close(make)
    with pytest.raises(ComputationError, match="sampled faster the loop is unstable"):
        sampling_rate_of(loop, linearise(loop))


def test_a_difference_whose_filter_is_far_faster_than_the_samples_is_one_without(make):
    # exp(-T/time_constant) is no number but 0 then
    rates = []
    for time_constant in (0.0, 1e-6):
        difference = {"kind": "difference", "time_constant": time_constant}
        tables = {"loop": {"sample_time": T}, "instruments": [{"kind": "encoder"}, difference]}
        rates.append(evaluate(close(make, "joint-pd", **tables)).min_sampling_rate)

    assert rates[0] is not None
    assert rates[1] == pytest.approx(rates[0], rel=1e-9)


@pytest.mark.parametrize(
    ("more", "filters", "most"),
    [
        ({}, [], 6),  # as a filtered rate it would be stable down to 29 Hz only
        ({"Gi": 8.0}, [LOW | {"frequency": 25.0}], 20),
        ({}, [LOW | {"frequency": 25.0}, LOW | {"frequency": 20.0}], 80),
    ],
)
def test_a_continuous_law_with_a_difference_is_sampled_as_its_design_is(more, filters, most):
    def close_at(loop):
        difference = {"kind": "difference", "time_constant": 0.003}
        design = make_design(
            [0.0], [0.5], "joint-pd", gains={"Gp": 20.0, "Gv": 5.0} | more,
            instruments=[{"kind": "encoder"}, difference], filters=filters, loop=loop,
        )  # fmt: skip
        return close_loop(
            design_controller(rigid_link(inertia=1.0), design), rigid_link(inertia=1.0)
        )

    loop = close_at({})
    found = sampling_rate_of(loop, linearise(loop))
    rate = found.rate

    assert found.limited_by is None
    assert rate < most
    for share, stable in ((0.999, True), (1.001, False)):
        assert (
            bool(linearise(close_at({"sample_time": share / rate})).poles.real.max() < 0) == stable
        )
