"""The verdict on one design: its figures again from the run, its JSON, what never ranks."""

import json
from dataclasses import replace

import casadi as ca
import numpy as np
import pytest

from flexctl.loop.linear import linearise_loop
from flexctl.simulation.integrators import Tolerance
from flexctl.simulation.simulation import simulate
from flexctl.verdict.evaluation import Evaluation, count_law, evaluate
from flexctl.view.to_json import to_json
from tests import verdict_record

# what the command line promises, by table
KEYS = {
    "tracking": {"joint_error_max", "tip_error_max", "tip_error_rms"},
    "residual": {"tip_error_max", "settling_time"},
    "effort": {"peak", "rms", "energy"},
    "stability": {
        "spectral_abscissa",
        "min_damping_ratio",
        "stable",
        "settles_at_order",
        "path_spectral_abscissa",
    },
    "margins": {
        "gain_db",
        "phase_deg",
        "delay_seconds",
        "common_delay_seconds",
        "disk",
        "min_sampling_rate",
    },
    "spillover": {"order", "spectral_abscissa", "path_spectral_abscissa"},
    "cost": {"law_mul", "law_add"},
}
SECOND = {"joint_error": 300.0, "joint_rate": 0.3, "strain_energy": 1.0, "kinetic_energy": 1.0}


@pytest.fixture(scope="module")
def loop(make):
    second = {"weights": SECOND | {"effort": 1e-3}}
    design = make["design"](
        [0.0], [0.6], second_loop=second, loop={"duration": 2.0, "settle_within": 5e-2}
    )
    return make["close"](make["single"](), design, kind="elements", order=3)


@pytest.fixture(scope="module")
def verdict(loop, make, plant_of):
    finer = [plant_of(make["single"](), "elements", order) for order in (6, 1, 2)]
    return evaluate(loop, others=finer)


@pytest.fixture(scope="module")
def run(loop):
    return simulate(loop, tolerance=Tolerance.of(1e-10))


@pytest.mark.slow_but("residual", "effort", "stability", "spillover", "cost")
@pytest.mark.parametrize("table", KEYS)
def test_every_promised_key_is_there(verdict, table):
    answer = json.loads(json.dumps(to_json(verdict), allow_nan=False))
    assert answer[table].keys() >= KEYS[table]
    assert answer.keys() >= {"design", "method", "basis", "failed"}
    assert answer["failed"] is None
    assert answer["basis"] == {"kind": "modes", "order": 2}


def tip_distance(loop, run):
    """Distance of the tip from that of the rigid arm at the desired joints (N,) [m]."""
    plant, distance = loop.truth, []
    for k in range(len(run.t)):
        s = min(run.t[k] / 0.5, 1)
        angle = 0.6 * (s - np.sin(2 * np.pi * s) / (2 * np.pi))
        straight = np.concatenate([[angle], np.zeros(plant.n - 1)])
        distance.append(np.linalg.norm(plant.tip(run.q[:, k]) - plant.tip(straight)))
    return np.array(distance)


def test_tracking_is_what_the_run_shows(loop, run, verdict):
    error, moving = tip_distance(loop, run), run.t <= 0.5
    assert verdict.tracking.tip_error_max == pytest.approx(error[moving].max(), rel=1e-6)
    squares = np.trapezoid(error[moving] ** 2, run.t[moving]) / 0.5
    assert verdict.tracking.tip_error_rms == pytest.approx(np.sqrt(squares), rel=2e-3)
    s = run.t / 0.5
    joint = run.q[0] - 0.6 * (s - np.sin(2 * np.pi * s) / (2 * np.pi))
    expected = np.abs(joint[moving]).max()
    assert verdict.tracking.joint_error_max[0] == pytest.approx(expected, rel=1e-4, abs=1e-9)


def test_the_residual_is_what_a_run_with_more_samples_shows(loop, verdict):
    run = simulate(loop, times=np.linspace(0, 2, 8001), tolerance=Tolerance.of(1e-10))
    error, after = tip_distance(loop, run), run.t >= 0.5
    assert verdict.residual.tip_error_max == pytest.approx(error[after].max(), rel=1e-6)
    late = run.t[error > 5e-2].max() - 0.5
    assert late > 0.5
    assert verdict.residual.settling_time == pytest.approx(late, abs=3e-4)


def test_effort_is_what_a_run_with_more_samples_shows(loop, verdict):
    # the torque jumps where the second loop takes over: trapezoids there must be narrow
    run = simulate(loop, times=np.linspace(0, 2, 16_001), tolerance=Tolerance.of(1e-10))
    tau, rate, t = run.tau[0], run.v[0], run.t
    assert verdict.effort.peak[0] == pytest.approx(np.abs(tau).max(), rel=1e-6)
    rms = np.sqrt(np.trapezoid(tau**2, t) / t[-1])
    assert verdict.effort.rms[0] == pytest.approx(rms, rel=3e-4)
    work = np.trapezoid(np.abs(tau * rate), t)
    assert verdict.effort.energy == pytest.approx(work, rel=1e-3)


def test_stability_is_that_of_the_final_pose_under_the_second_loop(loop, verdict):
    poles = linearise_loop(loop, np.array([0.6]), 1.0).poles
    assert verdict.stability.spectral_abscissa == pytest.approx(poles.real.max(), rel=1e-9)
    worst = (-poles.real / np.abs(poles)).min()
    assert verdict.stability.min_damping_ratio == pytest.approx(worst, rel=1e-9)


def test_stability_along_the_path_is_that_of_the_gross_motion(loop, verdict):
    for k in (0, 10, 20):
        pose, _, _ = loop.controller.reference.sample(verdict.stability.path_t[[k]])
        poles = linearise_loop(loop, pose[:, 0], 0.0).poles
        assert verdict.stability.path_abscissa[k] == pytest.approx(poles.real.max(), rel=1e-9)


def test_spillover_is_listed_by_ascending_order(verdict):
    spillover = to_json(verdict)["spillover"]
    assert spillover["order"] == [1, 2, 3, 6]
    own = spillover["spectral_abscissa"][2]
    assert own == pytest.approx(verdict.stability.spectral_abscissa)


@pytest.mark.parametrize(
    ("abscissae", "settled"),
    [([-1.0, -2.0, -2.001, -2.0], 2), ([-1.0, -2.0, -3.0, -4.0], None), ([-2.0] * 4, 1)],
)
def test_an_order_is_settled_when_nothing_changes_after_it(abscissae, settled):
    from flexctl.verdict.stability import _settles, _Step

    ladder = [
        _Step(order, value, True) for order, value in zip((1, 2, 4, 6), abscissae, strict=True)
    ]
    assert _settles(ladder) == settled


def test_a_motion_that_never_settles_has_no_settling_time(make):
    design = make["design"]([0.0], [0.6], loop={"settle_within": 1e-6})
    verdict = evaluate(make["close"](make["single"](damping=0.001), design, order=2))
    assert verdict.residual.settling_time is None
    assert to_json(verdict)["residual"]["settling_time"] is None


def test_a_run_is_sampled_at_the_very_end_of_the_motion(make):
    # 0.5 s of 1.3 s lies between two of a thousand even samples
    design = make["design"]([0.0], [0.6], loop={"duration": 1.3})
    found = evaluate(make["close"](make["single"](), design)).trajectory

    assert 0.5 in found.t
    assert len(found.t) == 1002


def test_a_motion_that_is_always_within_its_band_settles_at_once(make):
    design = make["design"]([0.0], [0.6], loop={"settle_within": 10.0})
    verdict = evaluate(make["close"](make["single"](), design, order=2))
    assert verdict.residual.settling_time == 0


def test_a_failed_run_has_a_reason_and_no_figures(make):
    gains = {"Gp": [50.0, 50.0], "Gv": [10.0, 0.5]}
    design = make["design"]([0.0, 0.3], [0.0, 0.95], "joint-pd", kind="setpoint", gains=gains)
    verdict = evaluate(make["close"](make["sliding"](), design, order=1))
    answer = json.loads(json.dumps(to_json(verdict), allow_nan=False))
    assert "leaves its beam" in answer["failed"]
    assert answer["tracking"] is answer["residual"] is answer["effort"] is answer["margins"] is None
    assert not verdict.ranks


def test_an_evaluation_that_failed_never_ranks(verdict):
    facts = {"name": "x", "method": "joint-pd", "basis": {}, "truth": {}, "cost": {}}
    failed = Evaluation(**facts, assumptions=(), stability=verdict.stability, failed="it broke")
    assert verdict.ranks
    assert not failed.ranks


@pytest.mark.slow
def test_residuals_under_gravity_are_counted_from_the_sag(make):
    arm = make["two-link"]((0.0, -9.81, 0.0), EI=40.0)
    basis = {"kind": "modes", "order": 1}
    design = make["design"]([-0.7, 0.4], [-0.7, 0.4], kind="setpoint", basis=basis)
    verdict = evaluate(make["close"](arm, design, order=1))
    assert verdict.tracking.tip_error_max > 1e-3
    # undamped: what is left is the error of the run itself
    assert verdict.residual.tip_error_max < 1e-5 * verdict.tracking.tip_error_max


def test_operations_of_a_law_are_counted():
    x, y = ca.SX.sym("x"), ca.SX.sym("y")
    # two products, a square, a sum, a difference, one sine
    law = ca.Function("law", [x, y], [x * y * 3 + ca.sin(x) - y**2])
    assert count_law(law) == {"law_mul": 3, "law_add": 2, "law_other": 1}
    assert count_law(ca.Function("none", [x], [x])) == {"law_mul": 0, "law_add": 0, "law_other": 0}


def test_the_cost_of_a_design_is_that_of_its_law(loop, verdict):
    assert verdict.cost == count_law(loop.controller.law)
    assert verdict.cost["law_mul"] > 0


def test_a_run_out_of_steps_costs_its_metrics_and_condemns_no_design(loop, verdict, monkeypatch):
    few = replace(Tolerance.of(1e-9), max_steps=20)
    monkeypatch.setattr("flexctl.verdict.evaluation.TOLERANCE", few)
    found = evaluate(loop)

    assert found.failed is None
    assert found.not_computed.keys() == {"tracking", "residual", "effort"}
    assert "the limit of 20 steps was reached" in found.not_computed["tracking"]
    np.testing.assert_array_equal(found.margins.gain_db, verdict.margins.gain_db)
    assert not found.ranks
    said = verdict_record.verdict([], [found])
    assert "No design could be ranked" in said
    assert "trial was not ranked" in said
    assert "unstable" not in said
