"""Composite control closed: what tends to the two subsystems, at which order, and what does not."""

import itertools

import numpy as np
import pytest

from flexctl.control import design_controller
from flexctl.loop.closed_loop import close_around
from flexctl.loop.linear import linearise_loop
from flexctl.model.lookup import load_design, load_model
from flexctl.model.record import BasisChoice
from flexctl.model.settings import apply_settings
from flexctl.plant.plant import assemble_plant
from flexctl.simulation.simulation import simulate
from flexctl.verdict.comparison import baseline_design, compare
from tests.arms import plant_of
from tests.two_scales import ARMS, HEAVY, arm_of, design_of, pose_of, scales_of, stiffened, weights

FACTORS = (1e3, 1e4)  # below them the time scales of some arm are still one
GAINS = (5.0, 3.0)
SLOW = np.roots([1, GAINS[1], GAINS[0]])  # of every joint: computed torque
LIGHT, EVERY, ANGLES = list(ARMS), [*ARMS, *HEAVY], ["link", "rotor"]


def poles_of(arm, design, order=2, truth=None):
    """Controller, and poles of its loop at the final pose on this many modes."""
    controller = design_controller(arm, design, interpreted=True)
    loop = close_around(controller, plant_of(truth or arm, order=order))
    return controller, linearise_loop(loop, controller.reference.final, 0.0).poles


def distance(found, expected):
    """Largest distance of a found value from the nearest wanted one."""
    return np.abs(found[:, None] - expected).min(axis=1).max()


def errors(arm, fast, angle="rotor", gains=GAINS, factors=FACTORS):
    """Distances (slow, fast in fast time) from the subsystems' poles, per factor (N, 2).

    `fast` makes the table of the fast loop from the factor.
    """
    found = []
    for factor in factors:
        controller, poles = poles_of(
            stiffened(arm, factor), design_of(arm, angle, fast(factor), gains)
        )
        poles = poles[np.abs(poles).argsort()]
        n_slow, fast_time = 2 * controller.plant.m, np.sqrt(factor)
        slow = np.roots([1, gains[1], gains[0]])
        quick = distance(poles[n_slow:] / fast_time, controller.fast.poles / fast_time)
        found.append([distance(poles[:n_slow], slow), quick])
    return np.array(found)


def orders(found):
    """Order in mu, which shrinks by sqrt(10) from factor to factor (N - 1, ...)."""
    return 2 * np.log10(found[:-1] / found[1:])


def given(arm, factor, rates=0.0):
    """Gains of the fast loop by hand, constant in scaled variables."""
    plant = plant_of(arm)
    n_z, rng = plant.n - plant.m, np.random.default_rng(1)
    K = rng.uniform(0.0, 4.0, (plant.m, n_z))
    Kp, Kv = (factor * K).tolist(), (np.sqrt(factor) * rates * K).tolist()
    return {"Kp": Kp, "Kv": Kv, "columns": list(plant.coordinates[plant.m :])}


def undamped(arm):
    table = arm.table()
    for link in table["link"]:
        if "EI" in link:
            link["damping_ratio"] = 0.0
        if "flexible_joint" in link:
            link["flexible_joint"]["damping"] = 0.0
    return type(arm).model_validate({"name": arm.name} | table)


@pytest.mark.slow_but("rigid-links-rotor")
@pytest.mark.parametrize("angle", ["rotor", pytest.param("link", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", EVERY)
def test_slow_and_fast_poles_tend_to_the_subsystems_at_order_one(name, angle):
    found = errors(arm_of(name), weights, angle)
    assert orders(found)[-1] == pytest.approx([1, 1], abs=0.1)


@pytest.mark.slow  # takes long
@pytest.mark.parametrize("angle", ANGLES)
def test_over_four_decades_of_stiffness_the_orders_settle(angle):
    found = errors(arm_of("subudhi-morris"), weights, angle, factors=(1.0, 10.0, 1e2, 1e3, 1e4))
    assert (np.diff(found[:, 0]) < 0).all()
    away = np.abs(orders(found)[1:] - 1)
    assert (np.diff(away, axis=0) < 0).all(), f"orders come nearer to one: {orders(found)}"
    assert away[-1].max() < 0.03


@pytest.mark.slow  # takes long
@pytest.mark.parametrize("angle", ANGLES)
@pytest.mark.parametrize("name", LIGHT)
def test_without_damping_slow_poles_tend_at_order_two(name, angle):
    # mu comes with D_z and Kv alone into the slow equations: without them only mu^2 is left
    arm = undamped(arm_of(name))
    found = errors(arm, lambda factor: given(arm, factor), angle)
    assert orders(found)[-1, 0] == pytest.approx(2, abs=0.1)


@pytest.mark.slow  # takes long
@pytest.mark.parametrize("angle", ANGLES)
@pytest.mark.parametrize("name", LIGHT)
def test_what_is_conservative_tends_at_order_two_altogether(name, angle):
    # of the fast equations mu comes with Gv too
    arm = undamped(arm_of(name))
    found = errors(arm, lambda factor: given(arm, factor), angle, gains=(5.0, 1e-9))
    assert orders(found)[-1] == pytest.approx([2, 2], abs=0.1)


@pytest.mark.slow  # takes long
@pytest.mark.parametrize("name", LIGHT)
def test_a_rate_in_the_fast_loop_brings_order_one_back(name):
    arm = undamped(arm_of(name))
    found = errors(arm, lambda factor: given(arm, factor, rates=0.3))
    assert orders(found)[-1, 0] == pytest.approx(1, abs=0.15)


def slow_errors(arm, fast, angle="rotor"):
    return np.array(
        [
            distance(
                np.array(
                    sorted(poles_of(stiffened(arm, f), design_of(arm, angle, fast(f)))[1], key=abs)
                )[: 2 * len(arm.links)],
                SLOW,
            )
            for f in FACTORS
        ]
    )


@pytest.mark.slow  # takes long
@pytest.mark.parametrize("angle", ANGLES)
@pytest.mark.parametrize("name", LIGHT)
def test_slow_control_alone_tends_at_order_two_even_with_damping(name, angle):
    # what damping does to the deflection is of order mu, what the deflection does to y'' mu^2
    assert orders(slow_errors(arm_of(name), lambda _: None, angle))[-1] == pytest.approx(2, abs=0.1)


@pytest.mark.slow  # takes long
@pytest.mark.parametrize("name", EVERY)
def test_without_the_quasi_steady_part_the_slow_error_stays(name):
    found = slow_errors(arm_of(name), lambda f: weights(f, quasi_steady=False))
    assert found[-1] == pytest.approx(found[-2], rel=0.1)
    assert found[-1] > 0.01 * np.abs(SLOW[0])


@pytest.fixture(scope="module")
def stiff_runs():
    """Runs of SM's arm at two stiffnesses, with and without the quasi-steady part."""
    arm, runs = arm_of("subudhi-morris"), {}
    for factor, quasi_steady in itertools.product((1e2, 1e3), (True, False)):
        stiff = stiffened(arm, factor)
        design = design_of(arm, fast=weights(factor, quasi_steady=quasi_steady))
        controller = design_controller(stiff, design, interpreted=True)
        loop = close_around(controller, plant_of(stiff))
        runs[factor, quasi_steady] = loop, simulate(loop, times=np.linspace(0, 2, 41))
    return runs


def rotor_error(run):
    """Largest distance of the rotors from the reference [rad]: of what the slow law controls."""
    loop, trajectory = run
    expected = loop.controller.reference.sample(trajectory.t)[0]
    return np.abs(trajectory.q[2:4] - expected).max()


@pytest.mark.slow  # takes long
def test_with_the_quasi_steady_part_a_run_follows_as_the_arm_stiffens(stiff_runs):
    # order one in mu, as the rates of the fast loop count the manifold's own motion
    ratio = rotor_error(stiff_runs[1e2, True]) / rotor_error(stiff_runs[1e3, True])
    assert ratio == pytest.approx(np.sqrt(10), rel=0.1)


@pytest.mark.slow  # takes long
def test_without_it_a_run_stays_off_the_reference(stiff_runs):
    soft, hard = (rotor_error(stiff_runs[f, False]) for f in (1e2, 1e3))
    assert soft / hard == pytest.approx(1, abs=0.2)
    assert hard > 3 * rotor_error(stiff_runs[1e3, True])


@pytest.mark.slow  # takes long
def test_a_stiff_arm_bends_as_the_manifold_says(stiff_runs):
    # z / mu^2 of the run beside K_z^-1 (B_z tau - T_z' f(S y, S y', S y'')) at its own y
    loop, run = stiff_runs[1e3, True]
    plant, T = loop.truth, loop.controller.fast.scales.T
    k = 15  # in full acceleration, long after what the start rang has died
    y, rate, acceleration = run.q[2:4, k], run.v[2:4, k], run.a[2:4, k]
    S = plant.straight
    forces = plant.inverse_dynamics(S(y), S(rate), S(acceleration))
    z_qs = np.linalg.solve(loop.controller.fast.scales.K_z, -T[:, 2:].T @ forces)
    z = loop.controller.fast.scales.W @ run.q[:, k]
    assert np.abs(z - z_qs).max() <= 0.02 * np.abs(z_qs).max()


SM = {
    "Kp": [[4.0, 2.5, 1.3, 1.8, 28.3, 58.26], [0.0, 1.0, 1.0, 0.0, 5.6, 8.6]],
    "Kv": [[8.0, 37.2, 1.5, 28.8, 126.0, 58.03], [4.0, 0.0, 5.0, 3.0, 8.6, 14.7]],
    "columns": ["link1.y.1", "link1.y.2", "link2.y.1", "link2.y.2", "rotor1", "rotor2"],
}


@pytest.mark.slow  # takes long
@pytest.mark.parametrize("order", [2, 4])
@pytest.mark.parametrize("modes", ["tip", "mass", None])
@pytest.mark.parametrize("scaled", [True, False])
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("angle", ANGLES)
def test_no_reading_of_the_printed_gains_stabilises_the_arm(order, modes, scaled, sign, angle):
    fast = SM | {key: (sign * np.array(SM[key])).tolist() for key in ("Kp", "Kv")}
    fast |= {"scaled": scaled} | ({"modes": modes} if modes else {})
    _, poles = poles_of(
        arm_of("subudhi-morris"), design_of(arm_of("subudhi-morris"), angle, fast), order
    )
    assert poles.real.max() > 5


def test_the_printed_design_holds_the_printed_numbers():
    fast = load_design("subudhi-morris-printed").fast_loop
    assert fast.columns == tuple(SM["columns"])
    np.testing.assert_array_equal(fast.Kp, -np.array(SM["Kp"]))  # (70) adds, flexctl subtracts
    np.testing.assert_array_equal(fast.Kv, -np.array(SM["Kv"]))


@pytest.mark.slow_but("2")
@pytest.mark.parametrize("order", [2, 4, 6])
def test_the_catalogues_lqr_damps_the_arm_whatever_the_truth(order):
    arm = arm_of("subudhi-morris")
    _, poles = poles_of(arm, load_design("subudhi-morris-lqr"), order)
    _, alone = poles_of(arm, load_design("subudhi-morris-slow-only"), order)
    ringing = [p[(p.imag > 6) & (np.abs(p) < 70)] for p in (poles, alone)]
    damping = [(-p.real / np.abs(p)).min() for p in ringing]
    assert poles.real.max() < -1.5
    assert damping[0] > 0.08 > 10 * 0.9 * damping[1]


@pytest.mark.parametrize("order", [2, 4, 6])
def test_two_stable_subsystems_make_an_unstable_arm(order):
    arm, design = arm_of("subudhi-morris"), load_design("subudhi-morris-too-fast")
    controller, whole = poles_of(arm, design, order)
    fast = scales_of(controller.plant, design)
    assert np.linalg.eigvals(fast.fast[0]).real.max() < -0.04
    slow = np.roots([1, *design.joint_gains.Gv, *design.joint_gains.Gp])
    assert slow.real.max() < -9
    assert whole.real.max() > 1


@pytest.mark.slow  # compiles four loops
def test_compare_catches_it():
    designs = [load_design(f"subudhi-morris-{name}") for name in ("too-fast", "lqr")]
    found = compare(arm_of("subudhi-morris"), designs, baseline=False)
    assert found.evaluations[0].failed
    assert found.evaluations[0].stability.stable is False
    assert found.ranking == ("subudhi-morris-lqr",)


def test_the_baseline_has_the_bandwidth_of_a_composite_design():
    arm, design = arm_of("subudhi-morris"), load_design("subudhi-morris-lqr")
    baseline, scales = baseline_design(arm, design), scales_of(plant_of(arm), design)
    np.testing.assert_allclose(baseline.joint_gains.Gp, 5.0 * scales.M_s.diagonal(), rtol=1e-12)
    assert baseline.fast_loop is None is baseline.slow_loop


@pytest.mark.parametrize("order", [2, 4, 6])
@pytest.mark.parametrize(
    ("angle", "damping", "stable"),
    [("link", 0.0, False), ("link", 0.01, True), ("rotor", 0.0, True), ("rotor", 0.01, True)],
)
@pytest.mark.slow_but("*-2")
def test_slow_control_on_link_angles_needs_damping(angle, damping, stable, order):
    # the link's rate is not collocated with the motor: its feedback feeds modes above
    arm = apply_settings(load_model("subudhi-morris-2r"), [f"links.damping_ratio={damping}"])
    _, poles = poles_of(arm, design_of(arm, angle, gains=(5.0, 2.0)), order)
    assert bool(poles.real.max() < 0) is stable


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["modes", "elements"])
def test_a_scheduled_law_runs_in_compiled_code(kind):
    arm = arm_of("subudhi-morris")
    controller = design_controller(arm, design_of(arm, fast=weights(schedule=5)))
    loop = close_around(controller, assemble_plant(arm, BasisChoice(kind=kind, order=2)))
    run = simulate(loop, times=np.linspace(0, 2.5, 6))
    assert np.abs(run.q[:2, -1] - pose_of(arm)).max() < 0.02
