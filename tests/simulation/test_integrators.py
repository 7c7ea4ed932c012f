"""The integrators: their orders, what they keep, what they refuse, and that they all agree."""

from dataclasses import replace

import numpy as np
import pytest

from flexctl.control import design_controller
from flexctl.errors import ComputationError, InputError, RunError
from flexctl.loop.closed_loop import close_loop
from flexctl.loop.events import APPLY, SAMPLE, schedule
from flexctl.loop.linear import linearise_loop
from flexctl.model.lookup import load_design, load_model
from flexctl.model.record import BasisChoice
from flexctl.plant.library_cache import find_compiler
from flexctl.simulation.integrators import Tolerance
from flexctl.simulation.simulation import initial_state, simulate
from flexctl.simulation.step_size import Moment, esdirk_budget, poles_in_motion, stable_step

needs_compiler = pytest.mark.skipif(find_compiler() is None, reason="an integrator in C")

# a law that is sampled once and acts after the run: the arm moves freely under no torque
NEVER = {"sample_time": 1000.0, "delay": 999.0, "duration": 10.0}


@pytest.fixture(scope="module")
def free_arm(make):
    """A planar arm of two flexible links without damping, moving freely."""
    design = make["design"]([0.3, 0.5], [0.3, 0.5], "joint-pd", kind="setpoint", loop=NEVER)
    return make["close"](make["two-link"](EI=4.0), design, order=1)


@pytest.fixture(scope="module")
def moving():
    """Start with turning joints and bent links."""
    v = np.array([0.9, -1.1, 0.05, -0.08])
    return np.array([0.3, 0.5, 0.01, -0.015]), v


@pytest.fixture(scope="module")
def free_run(free_arm, moving):
    """free_run(integrator, ...): free motion sampled at 11 times of 1 s unless told."""

    def run(integrator, times=None, **how):
        times = np.linspace(0, 1, 11) if times is None else times
        return simulate(
            free_arm, times=times, duration=times[-1], integrator=integrator, start=moving, **how
        )

    return run


@pytest.fixture(scope="module")
def exact(free_run):
    """Free motion to round-off."""
    return free_run("explicit", tolerance=Tolerance.of(1e-13))


def off_by(run, exact):
    """Largest error of coordinates and rates, each in units of its own size."""
    return max(
        np.abs(getattr(run, x) - getattr(exact, x)).max() / np.abs(getattr(exact, x)).max()
        for x in "qv"
    )


def order(sizes, errors):
    """Exponent p of errors ~ sizes^p."""
    return np.polyfit(np.log(sizes), np.log(errors), deg=1)[0]


# The fastest mode has 46 rad/s: from a twentieth of a radian per step, where the next term of the
# error is small, to a hundredth, where that of rk4 is 1e-9, well above round-off.
FIXED = {"rk4": (4, [1e-3, 5e-4, 2.5e-4]), "midpoint": (2, [1e-3, 5e-4, 2.5e-4])}


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize("name", FIXED)
def test_a_fixed_step_converges_at_its_order(free_run, exact, name):
    p, steps = FIXED[name]
    errors = [off_by(free_run(name, step=h), exact) for h in steps]
    assert order(steps, errors) == pytest.approx(p, abs=0.15), errors


# Tolerances from where accuracy, not stability or the start of the run, sets the steps, down to
# errors of 1e-11, well above round-off. The steps then grow as tolerance^(-1/p).
ADAPTIVE = {"esdirk": (4, [1e-6, 1e-8, 1e-10]), "explicit": (8, [1e-9, 1e-11, 1e-13])}


@needs_compiler
@pytest.mark.parametrize("name", ADAPTIVE)
def test_steps_grow_with_the_tolerance_as_the_order_says(free_run, name):
    p, relative = ADAPTIVE[name]
    steps = [free_run(name, tolerance=Tolerance.of(r)).steps for r in relative]
    assert order(relative, steps) == pytest.approx(-1 / p, rel=0.3), steps


@pytest.mark.parametrize("name", ["esdirk", "explicit", "adams", "bdf"])
def test_errors_follow_the_tolerance(free_run, exact, name):
    relative = np.array([1e-6, 1e-8, 1e-10])
    errors = [off_by(free_run(name, tolerance=Tolerance.of(r)), exact) for r in relative]
    assert 0.6 < order(relative, errors) < 1.4, errors
    assert errors[-1] < 1e-6


# method, how, bounds of q and v, and of a: that of the plant where the state is, but for esdirk
DENSE = {
    "explicit": ({"tolerance": Tolerance.of(1e-10)}, 3e-9, 3e-8),
    "esdirk": ({"tolerance": Tolerance.of(1e-10)}, 1e-6, 1e-5),
    "rk4": ({"step": 5e-4}, 3e-6, 3e-6),
    "midpoint": ({"step": 5e-4}, 1e-3, 2e-3),
}


@needs_compiler
@pytest.mark.parametrize("name", DENSE)
def test_dense_output_is_as_accurate_as_the_steps(free_run, exact, name):
    how, bound, bound_a = DENSE[name]
    times = np.unique(np.concatenate([exact.t, np.random.default_rng(1).uniform(0, 1, 500)]))
    fine = free_run("explicit", times=times, tolerance=Tolerance.of(1e-13))
    run = free_run(name, times=times, **how)
    assert off_by(run, fine) < bound
    assert np.abs(run.a - fine.a).max() < bound_a * np.abs(fine.a).max()


@needs_compiler
def test_accelerations_between_long_steps_are_of_the_order_of_the_method(free_run):
    times = np.linspace(0, 1, 333)
    fine = free_run("explicit", times=times, tolerance=Tolerance.of(1e-13))
    steps = [1e-3, 5e-4, 2.5e-4]
    errors = [np.abs(free_run("midpoint", times=times, step=h).a - fine.a).max() for h in steps]
    assert order(steps, errors) == pytest.approx(2, abs=0.15), errors


# by default, and of the method of lower order at the tolerance that it needs for as much
@pytest.mark.parametrize(("name", "tolerance"), [("auto", None), ("esdirk", Tolerance.of(1e-12))])
def test_free_motion_keeps_its_energy(free_run, name, tolerance):
    run = free_run(name, times=np.linspace(0, 10, 101), tolerance=tolerance)
    assert np.abs(run.energy.residual).max() < 1e-9 * run.energy.scale
    assert not run.energy.supplied.any()


@pytest.mark.parametrize("name", ["explicit", "esdirk", "adams"])
def test_free_motion_keeps_its_momentum_about_the_base(free_arm, free_run, name):
    run = free_run(name, times=np.linspace(0, 10, 21), tolerance=Tolerance.of(1e-11))
    momentum = axis_momentum(free_arm, run)
    np.testing.assert_allclose(momentum, momentum[0], rtol=1e-8)


def axis_momentum(loop, run):
    """Angular momentum (N,) about the axis of the first joint: the first of M v."""
    return np.array(
        [loop.truth.mass_matrix(q)[0] @ v for q, v in zip(run.q.T, run.v.T, strict=True)]
    )


@needs_compiler
def test_the_midpoint_rule_keeps_energy_bounded_and_momentum_exactly(free_arm, free_run):
    # 100 s: the error swings, but in the last tenth of the run no wider than in the first
    at_steps = np.arange(0, 100.0005, 0.04)
    run = free_run("midpoint", times=at_steps, step=2e-3)
    error = np.abs(run.energy.residual) / run.energy.scale
    tenth = len(error) // 10
    assert error[-tenth:].max() < 1.5 * error[:tenth].max()
    assert 1e-7 < error.max() < 2e-2
    momentum = axis_momentum(free_arm, run)
    np.testing.assert_allclose(momentum, momentum[0], rtol=1e-10)


@needs_compiler
def test_rk4_does_lose_energy_where_the_midpoint_rule_does_not(free_run):
    # the same run as above: what the test of the midpoint rule tells apart
    run = free_run("rk4", times=np.arange(0, 100.0005, 0.04), step=1.5e-3)
    error = np.abs(run.energy.residual) / run.energy.scale
    tenth = len(error) // 10
    assert error[-tenth:].max() > 5 * error[:tenth].max()


@pytest.fixture(scope="module")
def eventful(two_link_loop):
    """A law with integral action, sampled every 20 ms, which acts 13 ms late, under gravity."""
    loop = {"sample_time": 0.02, "delay": 0.013, "duration": 0.6}
    gains = {"Gp": [40.0, 20.0], "Gv": [4.0, 2.0], "Gi": [9.0]}
    return two_link_loop("joint-pd", gains=gains, duration=0.3, loop=loop)


@pytest.fixture(scope="module")
def eventful_run(eventful):
    times = np.linspace(0, 0.6, 37)
    return simulate(eventful, times=times, tolerance=Tolerance.of(1e-12), integrator="explicit")


HOW = {
    "esdirk": ({"tolerance": Tolerance.of(1e-10)}, 1e-6),
    "adams": ({"tolerance": Tolerance.of(1e-9)}, 1e-6),
    "bdf": ({"tolerance": Tolerance.of(1e-9)}, 1e-5),
    "auto": ({}, 1e-7),
    "rk4": ({"step": 2e-4}, 1e-6),
    "midpoint": ({"step": 1e-4}, 1e-4),
}


@pytest.mark.slow_but("rk4", "midpoint")
@needs_compiler
@pytest.mark.parametrize("name", HOW)
def test_all_integrators_agree_on_a_sampled_law_with_delay(eventful, eventful_run, name):
    how, bound = HOW[name]
    run = simulate(eventful, times=eventful_run.t, integrator=name, **how)
    assert off_by(run, eventful_run) < bound
    scale = np.abs(eventful_run.tau).max()
    np.testing.assert_allclose(run.tau, eventful_run.tau, atol=30 * bound * scale)
    for part in ("supplied", "dissipated", "kinetic"):
        ours, theirs = getattr(run.energy, part), getattr(eventful_run.energy, part)
        np.testing.assert_allclose(ours, theirs, atol=30 * bound * eventful_run.energy.scale)


@pytest.mark.parametrize("name", ["explicit", "adams"])
def test_integrators_agree_without_a_compiler(eventful, eventful_run, monkeypatch, name):
    monkeypatch.setenv("FLEXCTL_CC", "none")
    times = eventful_run.t[:7]
    run = simulate(
        eventful, times=times, duration=0.1, integrator=name, tolerance=Tolerance.of(1e-8)
    )
    assert "virtual machine" in run.integrator
    np.testing.assert_allclose(run.q, eventful_run.q[:, :7], atol=1e-6)


@pytest.mark.parametrize("name", ["rk4", "midpoint"])
def test_integrators_in_c_need_a_compiler(free_run, monkeypatch, name):
    monkeypatch.setenv("FLEXCTL_CC", "none")
    with pytest.raises(InputError, match="expected a C compiler"):
        free_run(name, step=1e-4)


@pytest.mark.parametrize("compiler", ["", "none"])
def test_a_run_whose_length_is_no_round_number_of_samples_ends_where_it_should(
    make, monkeypatch, compiler
):
    # the last torque would act a round-off before the end: no step is that short
    monkeypatch.setenv("FLEXCTL_CC", compiler)
    T = 103 / 3
    loop = {"duration": T, "sample_time": T / 70, "delay": T / 70}
    design = make["design"]([0.0], [0.1], "joint-pd", gains={"Gp": [0.1], "Gv": [0.2]}, loop=loop)
    run = simulate(make["close"](make["rigid-link"](), design), integrator="explicit")
    assert run.t[-1] == T


@pytest.mark.parametrize(("duration", "share"), [(103 / 3, 70), (1000.1, 10001), (2000 / 3, 2000)])
def test_events_are_apart_or_at_once(make, duration, share):
    period = duration / share
    loop = {"duration": duration, "sample_time": period, "delay": period}
    design = make["design"]([0.0], [0.1], "joint-pd", gains={"Gp": [0.1], "Gv": [0.2]}, loop=loop)
    controller = design_controller(make["rigid-link"](), design)
    events = schedule(controller, duration)
    gaps = np.diff([event.time for event in events])
    assert ((gaps == 0) | (gaps > 1e-9 * duration)).all()
    kinds = [event.kind for event in events]
    assert (kinds.count(SAMPLE), kinds.count(APPLY)) == (share, share - 1)
    assert events[-1].time == duration


@needs_compiler
def test_auto_does_not_try_esdirk_where_samples_set_the_steps(make):
    # 2200 samples without delay are 4401 events, yet 2200 stretches and a few more
    loop = {"duration": 2.2, "sample_time": 1e-3}
    design = make["design"]([0.0], [0.1], "joint-pd", duration=2.0, loop=loop)
    run = simulate(make["close"](make["single"](EI=6.5e3, damping=0.0), design, order=3))
    assert "Dormand-Prince" in run.integrator
    assert "its events 220" in run.integrator
    assert "esdirk" not in run.integrator


@pytest.mark.parametrize(
    ("turned", "stretches", "budget"),
    [(2000, 3, 0), (9000, 3, 3000), (9000, 2999, 2999 + 1), (9000, 3000, 0), (3000, 20000, 0)],
)
def test_esdirk_is_tried_where_it_can_win(turned, stretches, budget):
    assert esdirk_budget(turned, stretches) == budget


def test_a_run_tells_its_integrator_and_its_cost(free_run):
    run = free_run("auto")
    assert "not stiff" in run.integrator
    assert run.evaluations > run.steps > 0


@pytest.fixture(scope="module")
def stiff_loop(make):
    """A stiff undamped link that moves slowly."""
    design = make["design"]([0.0], [0.1], "joint-pd", duration=2.0, loop={"duration": 2.2})
    return make["close"](make["single"](EI=6.5e3, damping=0.0), design, order=3)


@needs_compiler
def test_auto_takes_esdirk_where_the_motion_is_slow_for_the_modes(stiff_loop):
    run = simulate(stiff_loop)
    explicit = simulate(stiff_loop, integrator="explicit")
    assert "ESDIRK" in run.integrator
    assert run.steps < explicit.steps / 3
    # at the edge of its stability the explicit method may miss its tolerance
    exact = simulate(stiff_loop, integrator="explicit", tolerance=Tolerance.of(1e-11))
    assert off_by(run, exact) < 1e-6


@needs_compiler
def test_auto_takes_the_explicit_method_where_fast_modes_ring(stiff_loop):
    start = np.array([0.0, 1e-3, 1e-3, 1e-3]), np.zeros(4)
    run = simulate(stiff_loop, start=start)
    assert "Dormand-Prince" in run.integrator
    assert "esdirk needs more than" in run.integrator


@pytest.mark.parametrize(
    ("pole", "limit"), [(1j, 2 * np.sqrt(2)), (-1.0, 2.785293563), (0.3 + 1j, 2 * np.sqrt(2))]
)
def test_the_stable_step_of_rk4_is_where_its_region_ends(pole, limit):
    found = stable_step(np.array([0.0, pole, np.conj(pole)], dtype=complex))
    assert limit - 2e-3 < found * abs(np.minimum(np.real(pole), 0) + 1j * np.imag(pole)) <= limit


@pytest.mark.parametrize("pole", [0.0, 5.0])
def test_what_grows_or_drifts_by_itself_sets_no_step(pole):
    assert stable_step(np.array([pole], dtype=complex)) == np.inf


def offered_step(loop, **how):
    """Step that rk4's refusal of an absurd one offers."""
    with pytest.raises(
        InputError,
        match=r"step: expected at most .* as rk4 "
        r"is unstable",
    ) as refusal:
        simulate(loop, integrator="rk4", step=10.0, **how)
    return float(str(refusal.value).split("at most ")[1].split(" s")[0])


@pytest.fixture(scope="module")
def fast_turn():
    """The beam of [Kane87], which stiffens as it is brought to 6 rad/s."""
    design = load_design("kane-spin-up")
    arm = load_model(design.model)
    return close_loop(design_controller(arm, design), arm, BasisChoice(order=3))


@needs_compiler
@pytest.mark.slow  # takes long
def test_the_offered_step_is_stable_where_the_arm_turns_fast(fast_turn):
    step = offered_step(fast_turn)
    assert simulate(fast_turn, integrator="rk4", step=step).energy.imbalance < 1e-6
    with pytest.raises(InputError, match="rk4 is unstable"):
        simulate(fast_turn, integrator="rk4", step=1.15 * step)  # it is rounded to two digits


@pytest.mark.slow
@needs_compiler
def test_a_step_that_this_run_does_not_reach_the_speed_for_is_accepted(fast_turn):
    # until 1 s the beam hardly turns, and the stiffness at rest decides
    assert offered_step(fast_turn, duration=1.0) > 1.04 * offered_step(fast_turn)


@needs_compiler
@pytest.mark.slow  # takes long
def test_a_fast_second_loop_limits_the_step(two_link_loop):
    weights = {"joint_error": 300.0, "joint_rate": 0.3, "strain_energy": 1.0, "kinetic_energy": 1.0}
    second = {"weights": weights | {"effort": 1e-8}}
    run = {"duration": 0.3, "loop": {"duration": 0.7}}
    fast, plain = two_link_loop(second_loop=second, **run), two_link_loop(**run)
    assert offered_step(fast) < offered_step(plain) / 2
    # a run that ends before the switch does not meet it
    assert offered_step(fast, duration=0.2) == offered_step(plain, duration=0.2)


@needs_compiler
def test_poles_in_motion_are_those_of_the_linear_loop_in_an_equilibrium(two_link_loop):
    loop = two_link_loop(duration=0.3, loop={"duration": 0.7})
    q, v, _ = initial_state(loop)
    exact = poles_in_motion(loop, Moment(t=0.0, phase=0.0, q=q, v=v))
    linear = linearise_loop(loop, loop.controller.reference.start, 0.0).poles
    np.testing.assert_allclose(np.abs(exact).max(), np.abs(linear).max(), rtol=1e-3)


@needs_compiler
def test_a_run_that_loses_its_energy_is_no_answer(free_run):
    # stable, but too long to be accurate for a hundred seconds
    with pytest.raises(ComputationError, match=r"energy account is off by .* take a smaller step"):
        free_run("rk4", times=np.linspace(0, 100, 11), step=0.7 * offered_free_step(free_run))


@needs_compiler
def test_the_midpoint_rule_may_be_off_by_a_tenth_of_the_energy(free_run):
    times = np.linspace(0, 10, 1001)
    # one radian of the fastest mode in a step, and two
    assert 1e-3 < free_run("midpoint", times=times, step=0.02).energy.imbalance < 0.1
    with pytest.raises(ComputationError, match=r"energy account is off by .* take a smaller step"):
        free_run("midpoint", times=times, step=0.04)


def offered_free_step(free_run):
    with pytest.raises(InputError) as refusal:
        free_run("rk4", step=10.0)
    return float(str(refusal.value).split("at most ")[1].split(" s")[0])


@needs_compiler
def test_an_unstable_loop_is_no_reason_to_refuse_a_step(make):
    # the law is sampled too slowly and diverges: the run shows it
    sampling = {"sample_time": 0.25, "duration": 5.0}
    gains = {"Gp": [20.0], "Gv": [6.0]}
    design = make["design"]([0.0], [1.0], "joint-pd", gains=gains, loop=sampling)
    loop = make["close"](make["rigid-link"](), design)
    run = simulate(loop, integrator="rk4", step=0.01)
    assert np.abs(run.q).max() > 10


@needs_compiler
def test_a_step_too_long_for_newton_is_a_clear_error(free_arm, moving):
    q, v = moving
    expected = "Newton's method does not converge: the step is too long .* take a smaller one"
    with pytest.raises(RunError, match=expected):
        simulate(free_arm, integrator="midpoint", step=0.5, start=(q, 50 * v))


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"integrator": "rk5"}, r"integrator: expected one of auto, .*rk4.*got 'rk5'"),
        ({"integrator": "rk4"}, r"step: expected the step \[s\] of rk4, got none"),
        ({"step": 1e-3}, "step: expected none, as auto finds its own steps"),
        ({"integrator": "adams", "step": 1e-3}, "step: expected none, as adams finds"),
        ({"integrator": "midpoint", "step": 0.0}, "step: expected .* above 0"),
        (
            {"integrator": "midpoint", "step": 1e-9},
            r"step: expected at least 1e-07 s, "
            r".* got 1e-09",
        ),
        (
            {"integrator": "rk4", "step": 1e-3, "tolerance": Tolerance.of(1e-6)},
            "tolerance: expected none, as rk4 has a fixed step",
        ),
    ],
)
def test_requests_that_do_not_fit_are_refused(free_arm, given, match):
    with pytest.raises(InputError, match=match):
        simulate(free_arm, **given)


@pytest.fixture(scope="module")
def soft_arm(make):
    """One link that bends by more than the theory allows soon after it is set off."""
    arm = make["single"](EI=2.0, damping=0.0)
    design = make["design"]([0.0], [1.0], "joint-pd", gains={"Gp": [30.0], "Gv": [6.0]})
    return make["close"](arm, design, order=1)


@pytest.fixture(scope="module")
def end_of_theory(soft_arm):
    """When the slope of the soft link reaches 0.5 rad [s], to the short steps of this tolerance."""
    with pytest.raises(RunError) as failed:
        simulate(soft_arm, integrator="explicit", tolerance=Tolerance.of(1e-13))
    return failed.value.time


def test_the_slope_at_the_end_of_the_theory_is_half_a_radian(soft_arm, end_of_theory):
    run = simulate(soft_arm, times=np.array([0.99 * end_of_theory]), duration=0.99 * end_of_theory)
    assert 0.45 < abs(run.slope["link1.y"][0]) < 0.5


@pytest.mark.parametrize("compiler", ["", "none"])
@pytest.mark.parametrize("name", ["explicit", "esdirk", "adams", "bdf"])
def test_a_link_that_bends_beyond_the_theory_ends_the_run(
    soft_arm, end_of_theory, monkeypatch, name, compiler
):
    monkeypatch.setenv("FLEXCTL_CC", compiler)
    with pytest.raises(
        RunError, match=r"t = 0\.\d+ s: link1 bends beyond the range of the beam theory"
    ) as failed:
        simulate(soft_arm, integrator=name, tolerance=Tolerance.of(1e-7))
    assert failed.value.time == pytest.approx(end_of_theory, abs=0.02)


@needs_compiler
@pytest.mark.parametrize("name", ["rk4", "midpoint"])
def test_with_a_fixed_step_too(soft_arm, end_of_theory, name):
    with pytest.raises(RunError, match="link1 bends beyond the range of the beam theory") as failed:
        simulate(soft_arm, integrator=name, step=5e-4)
    assert failed.value.time == pytest.approx(end_of_theory, abs=1e-3)


@pytest.fixture(scope="module")
def easy_loop(make):
    """A loop that the explicit method follows in 155 steps and esdirk in 37, both to 1e-5."""
    link = {"dh": {"a": 1.0}, "length": 1.0, "mass_per_length": 0.4, "EI": {"y": 60.0}}
    arm = make["arm"]([{"joint": "revolute", "joint_inertia": 0.1, "damping_ratio": 0.02, **link}])
    design = make["design"]([0.0], [0.3], "joint-pd", gains={"Gp": [20.0], "Gv": [6.0]})
    return make["close"](arm, design, order=3)


@pytest.mark.slow_but("none")
@pytest.mark.parametrize("compiler", ["", "none"])
def test_auto_falls_back_where_the_integrator_it_chose_runs_out_of_steps(
    easy_loop, monkeypatch, compiler
):
    monkeypatch.setenv("FLEXCTL_CC", compiler)
    few = replace(Tolerance.of(1e-5), max_steps=100)
    with pytest.raises(RunError, match="the limit of 100 steps was reached"):
        simulate(easy_loop, integrator="explicit", tolerance=few)
    run = simulate(easy_loop, tolerance=few)

    assert run.t[-1] == easy_loop.duration
    assert "and explicit needs more than 100 steps, taken or rejected)" in run.integrator


@needs_compiler
def test_auto_falls_back_where_the_energy_account_does_not_close(easy_loop, monkeypatch):
    # esdirk as first choice, at a tolerance at which it is off by 0.5 % of the energy
    monkeypatch.setattr("flexctl.simulation.simulation.EASY_STEPS", 1)
    monkeypatch.setattr("flexctl.simulation.simulation.esdirk_budget", lambda *_: 1000)
    coarse = Tolerance.of(1e-4)
    with pytest.raises(ComputationError, match="the energy account is off"):
        simulate(easy_loop, integrator="esdirk", tolerance=coarse)
    run = simulate(easy_loop, tolerance=coarse)

    assert run.energy.imbalance < 1e-3
    assert "and esdirk is off by 0.005 of the energy" in run.integrator


@needs_compiler
def test_steps_of_esdirk_are_those_that_the_error_asks_for(make):
    # of a PID whose derivative has a filter: Newton's method solves for the states of both
    link = {"dh": {"a": 1.0}, "length": 1.0, "mass_per_length": 0.4, "EI": {"y": 60.0}}
    arm = make["arm"]([{"joint": "revolute", "joint_inertia": 0.1, **link}])
    gains = {"Gp": [50.0], "Gv": [10.0], "Gi": [120.0], "derivative_filter": [200.0]}
    loop = make["close"](arm, make["design"]([0.0], [1.5], "pid", gains=gains), order=3)
    runs = [
        simulate(loop, integrator="esdirk", tolerance=Tolerance.of(tol)) for tol in (1e-5, 1e-8)
    ]
    coarse, fine = (run.steps + run.rejected for run in runs)

    assert fine / coarse == pytest.approx(1000**0.25, rel=0.2)  # of order 4, also where coarse
    assert all(run.evaluations < 2.5 * 5 * (run.steps + run.rejected) for run in runs)  # 5 stages


@pytest.mark.parametrize("name", ["auto", "explicit", "esdirk"])
def test_steps_that_are_used_up_say_nothing_of_the_loop(easy_loop, name):
    with pytest.raises(RunError, match="that says nothing of the loop") as failed:
        simulate(easy_loop, integrator=name, tolerance=replace(Tolerance(), max_steps=20))
    assert failed.value.exhausted


@pytest.mark.parametrize("name", ["auto", "explicit", "esdirk", "bdf"])
def test_more_samples_than_steps_are_refused_before_the_run(make, name):
    link = {"dh": {"a": 1.0}, "length": 1.0, "mass_per_length": 0.4, "EI": {"y": 60.0}}
    arm = make["arm"]([{"joint": "revolute", "joint_inertia": 0.1, **link}])
    gains = {"Gp": [50.0], "Gv": [10.0], "Gi": [0.0], "derivative_filter": [200.0]}
    loop = {"sample_time": 1e-3, "duration": 2.0}
    design = make["design"]([0.0], [1.5], "pid", gains=gains, loop=loop)
    most = replace(Tolerance(), max_steps=1999)
    with pytest.raises(RunError) as failed:
        simulate(make["close"](arm, design, order=3), integrator=name, tolerance=most)

    assert failed.value.exhausted
    assert failed.value.time == 0.0
    assert failed.value.why == "its 2000 samples and other events exceed the limit of 1999 steps"
    assert "ask for a shorter run or a longer sample_time" in str(failed.value)


def test_a_loop_that_leaves_the_theory_is_not_out_of_steps(soft_arm):
    with pytest.raises(RunError, match="beyond the range of the beam theory") as failed:
        simulate(soft_arm, tolerance=Tolerance.of(1e-7))
    assert not failed.value.exhausted


@pytest.mark.parametrize("duration", [1e-12, 1e-6, 0.2])
def test_a_run_may_be_shorter_than_its_design(easy_loop, duration):
    whole = simulate(easy_loop, tolerance=Tolerance.of(1e-7))
    run = simulate(easy_loop, duration=duration, tolerance=Tolerance.of(1e-7))

    assert run.t[-1] == duration
    assert run.steps < whole.steps / 2
    assert run.q[0, -1] == pytest.approx(np.interp(duration, whole.t, whole.q[0]), abs=1e-6)


def test_no_time_lies_beyond_a_duration_that_is_given(easy_loop):
    with pytest.raises(InputError, match=r"times: expected none beyond .* 0.2 s, got 0.3"):
        simulate(easy_loop, times=np.array([0.0, 0.3]), duration=0.2)


@pytest.mark.parametrize(
    ("key", "value"),
    [("relative", np.nan), ("relative", 0.0), ("rate", -1.0), ("first_step", 0), ("max_steps", 0)],
)
def test_tolerances_that_cannot_be_are_refused(key, value):
    with pytest.raises(InputError, match=f"^{key}: expected"):
        Tolerance(**{key: value})
