"""The separation bound against redesigned loops, bisection on eigenvalues, and nonlinear runs."""

import numpy as np
import pytest
import scipy.linalg
import scipy.optimize

from flexctl.control import design_controller
from flexctl.control.singular_perturbation import separate_time_scales
from flexctl.errors import DesignError, InputError
from flexctl.loop.closed_loop import close_around, close_loop
from flexctl.loop.linear import linearise_loop
from flexctl.loop.setup import Setup
from flexctl.model.changed_arm import soften_arm, soften_design
from flexctl.model.design import Design
from flexctl.model.lookup import load_design, load_model
from flexctl.model.record import BasisChoice
from flexctl.plant.plant import assemble_plant
from flexctl.robustness.time_scales.margin import time_scale_margin
from flexctl.robustness.time_scales.record import Bound, Spectra, TimeScaleMargin
from flexctl.robustness.time_scales.redesigned_loop import RedesignedLoop
from flexctl.robustness.time_scales.separated_loop import separate_loop
from flexctl.robustness.time_scales.separation_bound import first_loss, stable_ranges
from flexctl.simulation.simulation import simulate
from tests.arms import make_arm
from tests.designs import make_design

DRIVE = {"rotor_inertia": 0.02, "stiffness": 40.0, "damping": 0.05}
BEAM = {"joint": "revolute", "length": 0.5, "mass_per_length": 0.2, "EI": {"y": 1.0}}
BEAM |= {"damping_ratio": 0.01, "foreshortening": False}


def two_link(_make):
    """The arm of [SM02], its dampers all in the links."""
    return load_model("subudhi-morris-2r")


def mixed(make):
    """A flexible joint with a damper, a rigid joint, and a carried rotor."""
    links = [BEAM | {"flexible_joint": DRIVE}, BEAM | {"joint_inertia": 0.03}]
    links.append(BEAM | {"length": 0.3, "flexible_joint": DRIVE | {"gear": 2.0, "carried": True}})
    return make["arm"](links, payload={"mass": 0.05, "inertia": [0.0, 0.0, 0.001]})


def sliding(make):
    """A flexible joint that turns a rigid link, in which a flexible one slides on a screw."""
    first = {"joint": "revolute", "dh": {"alpha": np.pi / 2}, "joint_inertia": 0.3}
    screw = {"rotor_inertia": 1e-5, "gear": 300.0, "stiffness": 4e3, "damping": 2.0}
    second = {"joint": "prismatic", "total_length": 1.0, "mass_per_length": 0.4}
    second |= {"EI": {"x": 20.0}, "damping_ratio": 0.02, "flexible_joint": screw}
    return make["arm"]([first | {"flexible_joint": DRIVE}, second], payload={"mass": 0.2})


ARMS = {"two-link": two_link, "mixed": mixed, "sliding": sliding}
FINAL = {"two-link": [1.5, 0.5], "mixed": [0.4, -0.6, 0.9], "sliding": [0.5, 0.7]}
START = {"two-link": [0.0, 0.0], "mixed": [0.0, 0.0, 0.0], "sliding": [0.0, 0.5]}

# five gain sets: feedback of what rings or none, of both angles, slow and fast slow loops
SLOW = {"gains": {"Gp": [6.0], "Gv": [3.0]}}
FAST = {"gains": {"Gp": [100.0], "Gv": [20.0]}}
LQR = {"fast_loop": {"weights": {"strain_energy": 1.0, "kinetic_energy": 1.0, "effort": 0.1}}}
GAINS = {
    "lqr on the rotors": SLOW | LQR | {"slow_loop": {"angle": "rotor"}},
    "lqr on the links": SLOW | LQR | {"slow_loop": {"angle": "link"}},
    "slow alone on the links": SLOW | {"slow_loop": {"angle": "link"}},
    "fast alone on the links": FAST | {"slow_loop": {"angle": "link"}},
    "lqr, demanding": FAST | LQR | {"slow_loop": {"angle": "link"}},
}


def design_of(name, gains):
    table = {"name": "trial", "summary": "made for a test", "source": "own", "model": "arm"}
    reference = {"kind": "quintic", "from": START[name], "to": FINAL[name], "duration": 1.0}
    return Design.model_validate(table | {"method": "composite", "reference": reference} | gains)


def loop_of(make, name, gains, s=1.0, fixed="none", order=3):
    """Loop of the arm with s times the stiffness, design and truth rebuilt."""
    arm = soften_arm(ARMS[name](make), s, fixed)
    # most loops only serve for eigenvalues, so they are not compiled
    controller = design_controller(arm, soften_design(design_of(name, gains), s), interpreted=True)
    return close_around(controller, assemble_plant(arm, BasisChoice(order=order), interpreted=True))


def final(name):
    return np.array(FINAL[name])


def scaled_poles(loop, name, fixed):
    """s -> eigenvalues of the loop with physical gains and dampers scaled, without a pencil."""
    joints, truth = final(name), loop.truth
    linear = linearise_loop(loop, joints, 0.0)
    scales = separate_time_scales(truth, joints, loop.controller.design.slow_angle)
    n, m, T = truth.n, truth.m, scales.T
    gains = linear.feedback[:, :n] @ T, linear.feedback[:, n:] @ T
    kept = np.zeros((n, n))
    for row, j in enumerate(truth.arm.rotors, start=m):
        kept[row, row] = truth.arm.links[j].flexible_joint.damping
    D = T.T @ linear.plant.D @ T
    kept = {"none": 0 * D, "joints": kept, "all": D}[fixed]

    def at(s):
        by_q, by_v = (
            np.hstack([F[:, :m], f * F[:, m:]]) for F, f in zip(gains, (s, s**0.5), strict=True)
        )
        K = s * T.T @ linear.plant.K @ T - scales.B_T @ by_q
        C = s**0.5 * (D - kept) + kept - scales.B_T @ by_v
        lower = -np.linalg.solve(scales.M_T, np.hstack([K, C]))
        return np.linalg.eigvals(np.vstack([np.hstack([np.zeros((n, n)), np.eye(n)]), lower]))

    return at


# An LQR gain depends on the dampers too: only with constant ratios is it the same after a redesign.
REMADE = [
    ("lqr on the rotors", "none"),
    ("lqr on the links", "none"),
    ("fast alone on the links", "joints"),
    ("fast alone on the links", "all"),
]


@pytest.mark.slow_but("two-link-lqr on the links-none-0.2")
@pytest.mark.parametrize("s", [0.2, pytest.param(30.0, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("gains", "fixed"), REMADE)
@pytest.mark.parametrize("name", ARMS)
def test_the_pencil_has_the_eigenvalues_of_the_rebuilt_loop(make, name, gains, fixed, s):
    pencil = separate_loop(loop_of(make, name, GAINS[gains]), final(name), fixed)
    rebuilt = linearise_loop(loop_of(make, name, GAINS[gains], s, fixed), final(name), 0.0).poles

    found = pencil.poles(1 / np.sqrt(s))
    assert np.sort_complex(found) == pytest.approx(np.sort_complex(rebuilt), rel=1e-7, abs=1e-7)


@pytest.mark.slow  # takes long
@pytest.mark.parametrize("fixed", ["none", "joints", "all"])
@pytest.mark.parametrize("gains", GAINS)
@pytest.mark.parametrize("name", ARMS)
def test_the_bound_is_where_bisection_on_eigenvalues_finds_it(make, name, gains, fixed):
    loop = loop_of(make, name, GAINS[gains], order=2)
    at = scaled_poles(loop, name, fixed)

    def abscissa(log_s):
        return at(np.exp(log_s)).real.max()

    grid = np.linspace(np.log(1e4), np.log(1e-6), 1500)
    unstable = np.array([abscissa(x) > 0 for x in grid])
    pencil = separate_loop(loop, final(name), fixed)
    if unstable[0]:
        with pytest.raises(DesignError, match=r"fast subsystem|10000 times"):
            first_loss(pencil)
        return
    found = first_loss(pencil)
    s_star = 0.0 if found is None else found.sigma**-2
    k, expected = int(unstable.argmax()), 0.0
    if unstable.any():
        expected = np.exp(scipy.optimize.bisect(abscissa, grid[k], grid[k - 1], xtol=1e-12))

    assert s_star == pytest.approx(expected, rel=1e-8, abs=1e-6)


@pytest.mark.slow  # takes long
def test_these_cases_have_bounds_on_both_sides_of_the_arm_as_it_is(make):
    found = [
        first_loss(separate_loop(loop_of(make, name, gains, order=2), final(name)))
        for name in ARMS
        for gains in GAINS.values()
    ]
    s_star = np.array([0.0 if bound is None else bound.sigma**-2 for bound in found])

    assert ((s_star > 1e-2) & (s_star < 1)).sum() >= 3
    assert (s_star > 1).sum() >= 5


@pytest.mark.slow_but("two-link-1.1")
@pytest.mark.parametrize("side", [0.9, 1.1])
@pytest.mark.parametrize("name", ["two-link", pytest.param("mixed", marks=pytest.mark.slow)])
def test_nonlinear_runs_grow_below_the_bound_and_die_out_above_it(make, name, side):
    # started in the motion that crosses, a thousandth of a radian or less: its share in the state,
    # read by the left eigenvector, must change as exp(Re lambda t)
    gains = GAINS["slow alone on the links" if name == "two-link" else "lqr on the links"]
    reached = {"kind": "setpoint", "from": FINAL[name], "to": FINAL[name]}
    gains = gains | {"reference": reached, "loop": {"duration": 3.0}}
    bound = first_loss(separate_loop(loop_of(make, name, gains, order=2), final(name)))
    loop = loop_of(make, name, gains, side * bound.sigma**-2, order=2)
    linear = linearise_loop(loop, final(name), 0.0)
    values, W, V = scipy.linalg.eig(linear.A + linear.B @ linear.K, left=True)
    k = np.abs(values - 1j * bound.frequency).argmin()
    way = (V[:, k] / np.abs(V[:, k]).max()).real * 1e-4
    n, rest = loop.truth.n, loop.truth.straight(final(name))
    times = np.array([0.0, 3.0])
    run = simulate(loop, times=times, start=(rest + way[:n], way[n:]))
    state = np.vstack([run.q - rest[:, None], run.v])
    share = np.abs(W[:, k].conj() @ state)
    rate = np.log(share[1] / share[0]) / 3.0

    assert rate == pytest.approx(values[k].real, rel=0.02)
    assert (rate > 0) == (side < 1)


def weighed_down(gauges=None, **more):
    """One flexible link on a flexible joint under gravity, and a composite design for it."""
    link = BEAM | {"EI": {"y": 40.0}, "flexible_joint": DRIVE | {"stiffness": 400.0}}
    load = {"mass": 0.1, "inertia": [0.0, 0.0, 1e-3]}
    arm = make_arm([link], gravity=(0.0, -9.81, 0.0), payload=load)
    tables = FAST | LQR | more | ({"loop": {"strain_gauges": gauges}} if gauges else {})
    return arm, make_design([0.0], [0.6], "composite", **tables)


LOW_PASS = {"filters": [{"kind": "low-pass", "frequency": 30.0}]}


@pytest.mark.parametrize(
    ("gauges", "more", "slower"),
    [(None, {}, True), ([0.1, 0.6], {}, True), (None, LOW_PASS, False)],
    ids=["", "gauges", "filter"],  # a filter keeps its frequency on a softer arm
)
@pytest.mark.parametrize("s", [0.4, 30.0])
def test_a_softer_arm_under_gravity_is_a_heavier_one_in_slower_time(s, gauges, more, slower):
    arm, design = weighed_down(gauges, **more)
    truth = BasisChoice(kind="elements", order=1)
    controller = design_controller(arm, design, interpreted=True)
    redesigned = RedesignedLoop(
        setup=Setup.of(arm, controller.plant.basis, truth_basis=truth),
        controller=controller,
        fixed="none",
        times=(0.5,),
        say=lambda _words: None,
        why="gravity",
    )
    softer, basis = soften_arm(arm, s), controller.plant.basis
    law = design_controller(softer, soften_design(design, s), basis, interpreted=True)
    loop = close_around(law, assemble_plant(softer, truth, interpreted=True))
    joints = controller.reference.sample(np.array([0.5]))[0][:, 0]
    (found,) = redesigned.spectra(s)

    assert redesigned.scales_time == slower
    expected = np.sort_complex(linearise_loop(loop, joints, 0.0).poles)
    np.testing.assert_allclose(np.sort_complex(found), expected, rtol=1e-7)


def test_functions_of_the_true_arm_are_made_once_for_all_stiffness(monkeypatch):
    arm, design = weighed_down()
    made = []
    monkeypatch.setattr("flexctl.robustness.time_scales.redesigned_loop._S", np.array([10.0, 1.0]))
    monkeypatch.setattr(
        "flexctl.robustness.time_scales.redesigned_loop.assemble_plant",
        lambda *arguments, **named: made.append(arguments) or assemble_plant(*arguments, **named),
    )
    time_scale_margin(arm, design, truth_basis=BasisChoice(order=1))

    assert len(made) == 1


@pytest.mark.slow
def test_a_bracketed_bound_is_the_exact_one_where_there_is_one(make):
    # gravity of a thousandth of a millimetre per second squared moves nothing
    rod = {"joint": "revolute", "dh": {"a": 0.5}, "mass_per_length": 0.6}
    arm, way = make["arm"]([rod | {"flexible_joint": DRIVE}]), {"kind": "quintic", "duration": 1.0}
    way |= {"from": [0.0], "to": [0.5]}
    design = design_of("sliding", GAINS["fast alone on the links"] | {"reference": way})
    weightless = time_scale_margin(arm, design, truth_basis=BasisChoice(order=1))
    floating = arm.model_copy(update={"gravity": (0.0, 0.0, -1e-6)})
    found = time_scale_margin(floating, design, truth_basis=BasisChoice(order=1))

    worst = weightless.worst
    assert worst.s_star > 0.1
    assert found.worst.s_star == pytest.approx(worst.s_star, rel=1e-4)
    assert found.worst.frequency == pytest.approx(worst.frequency, rel=1e-4)
    assert found.worst.motion == worst.motion != ""
    assert not found.worst.exact
    assert any("gravity" in words for words in found.assumptions)


@pytest.mark.slow  # takes long
def test_two_stable_subsystems_of_the_catalogue_make_an_unstable_arm():
    arm, design = load_model("subudhi-morris-2r"), load_design("subudhi-morris-too-fast")
    found = time_scale_margin(arm, design, truth_basis=BasisChoice(order=3))

    assert found.spectra.slow.real.max() < 0
    assert found.spectra.fast.real.max() < 0
    assert found.stable is False
    assert found.worst.s_star > 1
    assert not any(low < 1 < high for low, high in found.spectra.ranges)


@pytest.mark.slow
def test_a_subsystem_that_is_unstable_by_itself_has_no_bound():
    arm, design = load_model("subudhi-morris-2r"), load_design("subudhi-morris-printed")
    found = time_scale_margin(arm, design, truth_basis=BasisChoice(order=2))

    assert "unstable fast subsystem" in found.worst.why
    assert (found.worst.s_star, found.mu_star, found.stable) == (np.inf, 0.0, False)


def test_a_pose_that_is_unstable_as_it_is_counts_although_the_worst_has_restabilised():
    # far softer than its bound the arm is stable again, at one end of the motion sooner than at the
    # other: softened to between the two it is stable at some poses only
    way = {"kind": "quintic", "from": [0.0, 0.0], "to": [0.0, 2.6], "duration": 1.0}
    design = design_of("two-link", SLOW | LQR | {"reference": way, "slow_loop": {"angle": "rotor"}})
    arm = load_model("subudhi-morris-2r")
    loop = close_loop(design_controller(arm, design), arm, BasisChoice(order=2))
    ends = [separate_loop(loop, np.array(joints)) for joints in ([0.0, 0.0], [0.0, 2.6])]
    again = [stable_ranges(pencil)[-1][0] ** -2 for pencil in ends]
    between = float(np.sqrt(again[0] * again[1]))
    softer = soften_arm(arm, between), soften_design(design, between)
    found = time_scale_margin(*softer, truth_basis=BasisChoice(order=2))

    assert {bound.stable for bound in found.path} == {True, False}
    assert found.stable is False
    assert found.worst.s_star > 1


@pytest.mark.slow_but("joints")
@pytest.mark.parametrize("fixed", ["none", "joints", pytest.param("all", marks=pytest.mark.slow)])
def test_a_loop_that_is_stable_at_every_stiffness_is_so_in_its_ranges(fixed):
    arm, design = load_model("subudhi-morris-2r"), load_design("subudhi-morris-slow-only")
    found = time_scale_margin(arm, design, truth_basis=BasisChoice(order=2), fixed_damping=fixed)
    ((low, high),) = found.spectra.ranges

    assert (found.worst.s_star, low, found.stable) == (0.0, 0.0, True)
    assert high == (np.inf if fixed != "all" else pytest.approx(1e4))


def test_a_design_without_two_time_scales_is_refused():
    arm, design = load_model("subudhi-morris-2r"), load_design("subudhi-morris-decoupling")
    with pytest.raises(InputError, match=r"method: expected composite.*got decoupling"):
        time_scale_margin(arm, design)


NO_POLES = np.zeros(0, dtype=complex)
BOUND = {"t": 0.0, "order": 2, "s_star": 0.5, "exact": True, "stable": True}
SPECTRA = {"slow": NO_POLES, "fast": NO_POLES, "full": NO_POLES, "ranges": None}
SPECTRA |= {"s": np.array([0.1, 1.0]), "poles": (NO_POLES, NO_POLES)}
FOUND = {"model": "arm", "design": "trial", "truth": BasisChoice(), "basis": BasisChoice()}
FOUND |= {"path": (Bound(**BOUND),), "orders": (Bound(**BOUND),), "spectra": Spectra(**SPECTRA)}
FOUND |= {"epsilon": 0.01, "assumptions": ()}


@pytest.mark.parametrize(
    ("record", "fields", "words"),
    [
        (Bound, BOUND | {"s_star": -1.0}, "s_star: expected a factor of 0 or more, got -1"),
        (Bound, BOUND | {"s_star": np.nan}, "s_star: expected a factor of 0 or more, got nan"),
        (Bound, BOUND | {"s_star": np.inf}, "why: expected a reason exactly where no stiffness"),
        (Bound, BOUND | {"why": "it shakes"}, "why: expected a reason exactly where no stiffness"),
        (Spectra, SPECTRA | {"s": np.array([1.0, 0.1])}, "s: expected ascending stiffness factors"),
        (Spectra, SPECTRA | {"poles": (NO_POLES,)}, "s: expected an array of shape"),
        (Spectra, SPECTRA | {"ranges": ((1.0, 0.5),)}, "ranges: expected ascending stiffness"),
        (TimeScaleMargin, FOUND | {"epsilon": 0.0}, "epsilon: expected one number above 0"),
        (TimeScaleMargin, FOUND | {"path": ()}, "path: expected one bound at least, got none"),
        (TimeScaleMargin, FOUND | {"orders": ()}, "orders: expected one bound at least, got none"),
    ],
)
def test_a_record_that_contradicts_itself_is_refused(record, fields, words):
    with pytest.raises(InputError, match=f"^{words}") as caught:
        record(**fields)
    assert "\n" not in str(caught.value)
