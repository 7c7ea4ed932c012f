"""A bias on purpose, run: against SciPy's integration, and a search over made-up runs."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from flexctl.control import design_on
from flexctl.loop.closed_loop import close_around, close_loop
from flexctl.model.lookup import load_design, load_model
from flexctl.model.record import BasisChoice
from flexctl.plant.plant import assemble_plant
from flexctl.robustness.stiffness.margin import stiffness_margin
from flexctl.robustness.stiffness.pose_loop import Case
from flexctl.search.bias_advice import advise_bias
from flexctl.search.bias_run import BiasRun, BiasRuns, try_biases
from flexctl.simulation.integrators import Tolerance
from flexctl.simulation.simulation import simulate
from tests.arms import wrong_plant

ONE = BasisChoice(kind="modes", order=1)


# Made-up runs


def made_up(times, fails_below=-np.inf):
    """Runs in which the tip strays times(-b) times as far, and that fail below a bias."""

    def run(bias):
        far = None if bias < fails_below else times(-bias)
        failed = "the run ends" if far is None else ""
        return BiasRun(bias=bias, tip_error_max=far, times=far, failed=failed)

    return SimpleNamespace(without=run(0.0), run=run)


@pytest.mark.parametrize("best", [-0.4, -0.23, -0.005])
def test_the_bias_that_suits_rest_is_the_only_one_run_where_it_serves(best):
    found, served = try_biases(made_up(lambda size: 1 + size), best)

    assert [run.bias for run in found] == [0.0, best]
    assert served == best


@pytest.mark.parametrize("limit", [0.013, 0.05, 0.11, 0.3])
@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("fails_below", [-np.inf, -0.35])
def test_a_smaller_one_is_found_and_serves(limit, power, fails_below):
    runs = made_up(lambda size: 1 + (size / limit) ** power, fails_below)
    found, served = try_biases(runs, -0.49)

    assert len(found) <= 6
    assert served is not None
    assert -limit <= served <= -0.01
    assert runs.run(served).serves


def test_the_chord_of_a_linear_error_is_its_limit_to_a_tenth_of_a_percent():
    _, served = try_biases(made_up(lambda size: 1 + size / 0.0834), -0.4)

    assert served == pytest.approx(-0.083, abs=1e-12)


@pytest.mark.parametrize("fails_below", [-np.inf, -0.004])
def test_none_serves_where_one_percent_is_too_much(fails_below):
    found, served = try_biases(made_up(lambda size: 1 + size / 0.008, fails_below), -0.49)

    assert served is None
    assert max(run.bias for run in found[1:]) == -0.01
    assert len(found) <= 6


def test_no_larger_bias_is_run_than_the_best_at_rest():
    found, served = try_biases(made_up(lambda size: 1 + size / 0.004), -0.008)

    assert [run.bias for run in found] == [0.0, -0.008]
    assert served is None


def test_nothing_is_compared_with_a_run_that_fails_without_bias():
    found, served = try_biases(made_up(lambda size: 1 + size, fails_below=0.1), -0.3)

    assert [run.bias for run in found] == [0.0]
    assert served is None


# Runs of arms


def single(make, method="decoupling", arm=None, **tables):
    """One link on a hub; its controller's model and the arm as it is have one mode."""
    tables.setdefault("basis", {"kind": "modes", "order": 1})
    kind = tables.get("kind")
    design = make["design"]([0.0], [2.0] if kind == "spin-up" else [0.5], method, **tables)
    return Case.of(arm or make["single"](), design, truth_basis=ONE, n_path=1)


def rebuilt(case, bias):
    """The loop of a controller made with a biased model, all parts by number."""
    plant = wrong_plant(case.setup.design_arm, case.setup.design_basis, bias, interpreted=False)
    return design_on(plant, case.design)


def states_by_scipy(loop, stepper, times):
    """States (2n, N) of a loop without a second one, the reference's end a time of its own."""
    scipy_loop, end = stepper(loop), loop.controller.reference.duration

    def rate(t, x):
        return scipy_loop.rates(x, *scipy_loop.torque(t, 0.0, x))

    moving = times[times <= end]
    options = {"method": "DOP853", "rtol": 1e-9, "atol": 1e-11}
    first = solve_ivp(rate, (0.0, end), scipy_loop.start(), t_eval=moving, **options)
    rest = times[times >= end]
    second = solve_ivp(rate, (end, rest[-1]), first.y[:, -1], t_eval=rest, **options)
    return np.hstack([first.y, second.y[:, 1:]])


@pytest.fixture(scope="module")
def single_runs(make):
    return BiasRuns(case=single(make))


@pytest.mark.slow  # takes long
@pytest.mark.parametrize("bias", [0.0, -0.05])
def test_the_tip_strays_as_far_as_by_scipy(single_runs, stepper, bias):
    case = single_runs.case
    loop = close_around(
        rebuilt(case, bias), assemble_plant(case.setup.true_arm, ONE, interpreted=True)
    )
    times = np.linspace(0, loop.duration, 4001)  # the peak lies between those of the run
    states = states_by_scipy(loop, stepper, times)[: loop.truth.n]
    theta = loop.controller.reference.sample(times)[0][0]
    tips = np.array([loop.truth.tip(q) for q in states.T]).reshape(-1, 3)
    rigid = np.stack([np.cos(theta), np.sin(theta), 0 * theta], axis=1)  # a link of 1 m
    error = np.linalg.norm(tips - rigid, axis=1)
    found, own = single_runs.run(bias), single_runs.without

    assert found.tip_error_max == pytest.approx(error.max(), rel=1e-5)
    assert found.tip_error_end == pytest.approx(error[times >= 0.95].max(), rel=1e-5)
    far = found.tip_error_max / own.tip_error_max, found.tip_error_end / own.tip_error_end
    assert found.times == pytest.approx(max(far), rel=1e-12)


def test_an_error_within_the_band_of_settling_does_not_count(make):
    found = BiasRuns(case=single(make, loop={"settle_within": 10.0})).run(-0.05)

    assert found.times == pytest.approx(found.tip_error_max / 5.0, rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "tables", "ends"),
    [
        ("decoupling", {"loop": {"sample_time": 1e-3, "delay": 1.5e-3}}, True),
        ("decoupling", {"loop": {"measures": ["encoder", "tachometer", "strain_gauge"]}}, True),
        ("decoupling", {"kind": "setpoint", "loop": {"duration": 1.0}}, True),
        ("decoupling", {"kind": "spin-up", "loop": {"duration": 1.0}}, False),
        ("composite", {}, True),
        ("joint-pd", {}, True),
    ],
    ids=["sampled", "observer", "setpoint", "spin-up", "composite", "joint-pd"],
)
def test_every_kind_of_law_is_run(make, method, tables, ends):
    runs = BiasRuns(case=single(make, method, **tables))
    found = runs.run(-0.01)

    assert found.failed == ""
    assert found.times is not None
    assert (found.tip_error_end is not None) == ends
    assert runs.without.times == 1.0


@pytest.mark.slow
def test_a_smaller_bias_is_advised_where_the_one_that_suffices_at_rest_spoils_the_motion():
    design = load_design("rrp-stiff")
    case = Case.of(load_model(design.model), design, n_path=3)
    found = stiffness_margin(case.setup.design_arm, design, n_path=3)
    advice = advise_bias(case, found, BiasRuns(case=case))
    served, best = advice.advised, advice.smallest

    assert advice.runs[1].bias == best.bias < served.bias < 0
    assert (advice.runs[1].failed, advice.runs[1].times > 2) == ("", True)
    assert served.upper == pytest.approx((1 + best.upper) * (1 + best.bias) / (1 + served.bias) - 1)
    assert 0 < served.other_arms <= served.tolerates == served.upper
    far = [
        simulate(
            close_loop(rebuilt(case, bias), case.setup.true_arm, case.truth.basis),
            tolerance=Tolerance.of(1e-9),
        ).tip_error.max()
        for bias in (0.0, served.bias, served.bias - 0.02)
    ]
    run = next(run for run in advice.runs if run.bias == served.bias)
    assert far[0] == pytest.approx(0.02154585, rel=1e-5)  # as the design's file expects
    assert run.tip_error_max == pytest.approx(far[1], rel=1e-5)
    assert far[1] < 2 * far[0] < far[2]


@pytest.mark.slow
def test_the_best_at_rest_is_advised_where_it_serves_in_motion_too(single_runs):
    case = single_runs.case
    found = stiffness_margin(case.setup.design_arm, case.design, truth_basis=ONE, n_path=1)
    advice = advise_bias(case, found, single_runs)
    least = advice.smallest or advice.at_rest  # the smallest bias that the error of 10 % asks for
    ran = simulate(close_loop(rebuilt(case, least.bias), case.setup.design_arm, ONE))

    assert advice.advised == least
    assert [run.bias for run in advice.runs] == [0.0, least.bias]
    assert advice.at_rest.bias <= least.bias < 0
    assert advice.runs[1].tip_error_max == pytest.approx(ran.tip_error.max(), rel=1e-5)
    assert advice.runs[1].times < 2
