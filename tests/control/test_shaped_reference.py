"""Shaped references: sums of shifted motions, and the modes that they are shaped for."""

import casadi as ca
import numpy as np
import pytest
import scipy.linalg

from flexctl.control import controller_at, design_controller, gains_used
from flexctl.control.input_shaper import make_shaper
from flexctl.control.reference import ReferenceMotion, make_reference
from flexctl.control.shaped_reference import convolve, held_modes
from flexctl.control.wrapped import wrap_controller
from flexctl.errors import InputError
from flexctl.loop import close_loop
from flexctl.loop import linearise as linearise_loop
from flexctl.model.design import Design
from flexctl.model.lookup import load_model
from flexctl.plant.linearisation import linearise
from flexctl.plant.plant import assemble_plant
from tests.arms import plant_of, rigid_link, two_link
from tests.designs import make_design

START, END = [0.2, -0.4], [1.0, 0.3]
KINDS = ["cycloid", "quintic", "bang-bang", "setpoint", "spin-up", "in memory"]
TWO = make_shaper("ZVD", [9.0, 31.0], [0.02, 0.1], 0.05)
FINE = np.linspace(0.0, 2.5, 1237)  # meets no jump


def motion_of(kind):
    """Motion of two joints of this kind, with a duration each where it may."""
    if kind == "in memory":
        return begun_at_once()
    more = {} if kind == "setpoint" else {"duration": [0.8, 0.5]}
    return make_reference(make_design(START, END, kind=kind, **more))


def begun_at_once():
    """Motion that has a rate and an acceleration from the start."""
    t = ca.MX.sym("t")
    q = ca.vertcat(1 + t + 3 * t**2, 2 - t)
    v = ca.jacobian(q, t)
    function = ca.Function("motion", [t], [q, v, ca.densify(ca.jacobian(v, t))])
    ends = (np.array(function(at)[0]).ravel() for at in (0.0, 1.0))
    start, final = ends
    return ReferenceMotion(
        function=function, duration=1.0, start=start, final=final, rests=False, breaks=(1.0,)
    )


def at_rest_before(motion, t):
    """Position, rate and acceleration (m, N), at rest at the start before time 0."""
    values = motion.sample(np.maximum(t, 0.0))
    rest = (motion.start[:, None], 0.0, 0.0)
    return [np.where(t >= 0, value, before) for value, before in zip(values, rest, strict=True)]


@pytest.mark.parametrize("kind", KINDS)
def test_a_shaped_motion_is_the_sum_of_shifted_ones(kind):
    motion = motion_of(kind)
    shaped = convolve(motion, TWO, jumps=kind == "setpoint")
    parts = [at_rest_before(motion, FINE - t) for t in TWO.times]
    expected = [sum(A * p[k] for A, p in zip(TWO.amplitudes, parts, strict=True)) for k in range(3)]

    for found, exact in zip(shaped.sample(FINE), expected, strict=True):
        assert found == pytest.approx(exact, abs=1e-12 * max(1, np.abs(exact).max()))
    assert shaped.duration == pytest.approx(motion.duration + TWO.times[-1])
    end = shaped.sample(np.array([shaped.duration]))[0].ravel()
    assert shaped.final == pytest.approx(end, abs=1e-14)


@pytest.mark.parametrize("kind", ["cycloid", "bang-bang", "setpoint"])
def test_rates_are_derivatives_between_the_breaks(kind):
    shaped = convolve(motion_of(kind), TWO, jumps=kind == "setpoint")
    h = 1e-5
    apart = np.abs(np.subtract.outer(FINE, [0.0, *shaped.breaks])).min(axis=1) > 2 * h
    t = FINE[apart]
    before, now, after = (shaped.sample(t + step) for step in (-h, 0.0, h))

    for k in (0, 1):
        slope = (after[k] - before[k]) / (2 * h)
        assert slope == pytest.approx(now[k + 1], abs=1e-6 * max(1, np.abs(now[k + 1]).max()))


@pytest.mark.parametrize("kind", ["bang-bang", "setpoint"])
def test_steps_are_the_values_between_the_breaks(kind):
    shaped = convolve(motion_of(kind), TWO, jumps=kind == "setpoint")
    ends = np.array([0.0, *shaped.breaks, shaped.duration + 1])
    values = shaped.sample((ends[:-1] + ends[1:]) / 2)[0 if kind == "setpoint" else 2]

    assert shaped.steps == pytest.approx(values, abs=1e-12 * np.abs(values).max())
    assert shaped.passed(ends[3]) == 3


@pytest.mark.parametrize(("kind", "which"), [("setpoint", 0), ("bang-bang", 2)])
def test_what_jumps_is_taken_from_the_breaks_that_are_passed(kind, which):
    # an integrator that ends a step at a break needs what was before it
    shaped = convolve(motion_of(kind), TWO, jumps=kind == "setpoint")
    results = [ca.MX(7 * np.ones((2, 1))) for _ in range(3)]
    for passed in (0, 2, len(shaped.breaks)):
        picked = shaped.after(ca.MX(passed), results, ca.MX(shaped.steps))
        values = [np.array(ca.evalf(x)).ravel() for x in picked]

        expected = [shaped.steps[:, passed] if k == which else 7 * np.ones(2) for k in range(3)]
        assert np.array(values) == pytest.approx(np.array(expected), abs=1e-12)


def test_breaks_that_coincide_are_one():
    # turning points half a period apart fall together: 0.4 + 0.4 = 0.8
    motion = make_reference(make_design([0.0], [1.0], kind="bang-bang", duration=0.8))
    shaped = convolve(motion, make_shaper("ZV", [np.pi / 0.4], [0.0], 0.05), jumps=False)

    assert shaped.breaks == pytest.approx((0.4, 0.8, 1.2))
    # a quarter of the distance: +, then half of + and half of -, then -
    assert shaped.steps == pytest.approx(np.array([[1.0, 0.0, -1.0, 0.0]]) * 0.5 * 4 / 0.8**2)


def test_motions_that_differ_in_numbers_share_their_function():
    one, other = (
        convolve(motion_of("cycloid"), make_shaper("ZV", [w], [0.0], 0.05), jumps=False)
        for w in (3.0, 8.0)
    )

    assert one.function.serialize() == other.function.serialize()
    assert not np.array_equal(one.numbers, other.numbers)


def test_the_modes_held_are_the_arms_locked_frequencies():
    plant = plant_of(two_link(), order=2)
    joints = np.array([0.3, 0.7])
    straight = plant.straight(joints)
    M, K = plant.mass_matrix(straight)[2:, 2:], plant.elastic_stiffness(straight)[2:, 2:]

    found = [w for w, _ in held_modes(linearise(plant, straight), plant.drives)]

    assert found == pytest.approx(np.sqrt(scipy.linalg.eigh(K, M)[0]), rel=1e-9)


def test_with_flexible_joints_the_rotors_are_held_not_the_links():
    arm = load_model("vertical-2r")
    plant = assemble_plant(arm, arm.truth, interpreted=True)

    lowest = held_modes(linearise(plant, np.zeros(plant.n)), plant.drives)[0][0]

    # frequencies_free of the model's [expect], which gravity changes by less
    assert lowest == pytest.approx(33.39, rel=0.05)


def shaped_controller(arm, frequency="mode1", **own):
    """Joint PD with a shaped cycloid."""
    shaper = {"kind": "ZVD", "frequency": frequency} | own
    reference = {"kind": "cycloid", "from": [0.0], "to": [1.0], "duration": 0.5, "shaper": shaper}
    return design_controller(arm, make_design([0.0], [1.0], "joint-pd", reference=reference))


def test_a_controller_shapes_for_the_mode_of_its_design_plant(make):
    arm = make["single"]()
    controller = shaped_controller(arm)
    plant = controller.plant.nominal
    (w, ratio), *_ = held_modes(linearise(plant, plant.straight(np.ones(1))), plant.drives)

    shaper = controller.reference.shaper

    assert (shaper.frequencies[0], shaper.damping_ratios[0]) == pytest.approx((w, ratio))
    assert gains_used(controller)["shaper"]["times"] == pytest.approx(shaper.times.tolist())
    assert any("shaped by ZVD" in sentence for sentence in controller.assumptions)


LAWS_WITH_STATES = {
    "pid": {"gains": {"Gp": [30.0], "Gv": [2.0], "derivative_filter": [60.0]}},
    "joint-pd": {
        "gains": {"Gp": [30.0], "Gv": [2.0]},
        "filters": [{"kind": "low-pass", "order": 2, "frequency": 60.0}],
    },
}


@pytest.mark.parametrize("method", LAWS_WITH_STATES)
def test_a_sampled_law_is_shaped_for_the_loop_without_sampling(make, method):
    def shaper(loop):
        reference = {"kind": "cycloid", "from": [0.0], "to": [1.0], "duration": 0.5}
        reference["shaper"] = {"kind": "ZVD", "frequency": "loop1"}
        tables = {"reference": reference, "loop": loop} | LAWS_WITH_STATES[method]
        design = make_design([0.0], [1.0], method, **tables)
        return design_controller(make["single"](), design).reference.shaper

    continuous, sampled = shaper({}), shaper({"sample_time": 0.01, "delay": 0.001})

    assert sampled.frequencies == pytest.approx(continuous.frequencies, rel=1e-9)
    assert sampled.damping_ratios == pytest.approx(continuous.damping_ratios, rel=1e-7)


def test_a_number_beside_a_mode_has_the_damping_ratio_that_is_stated(make):
    own = shaped_controller(make["single"]()).reference.shaper
    shaper = shaped_controller(
        make["single"](), ["mode1", 100.0], damping_ratio=0.02
    ).reference.shaper
    np.testing.assert_allclose(shaper.frequencies, [own.frequencies[0], 100.0])
    np.testing.assert_allclose(shaper.damping_ratios, [own.damping_ratios[0], 0.02])


def test_other_numbers_of_arm_and_shaper_give_other_impulses(make):
    controller = shaped_controller(make["single"](), 12.0)
    softer = controller_at(shaped_controller(make["single"]()), {"link1.EI.y": 4.6})

    changed = controller_at(controller, {}, {"reference.shaper.frequency": 15.0})

    assert changed.reference.shaper.frequencies == pytest.approx([15.0])
    half = shaped_controller(make["single"]()).reference.shaper.frequencies / 2
    assert softer.reference.shaper.frequencies == pytest.approx(half, rel=1e-6)


@pytest.mark.parametrize("loop", [{}, {"duration": 4.0}])
def test_a_shaped_spin_up_stays_within_limits_until_the_run_ends(make, loop):
    rate, impulses = 2.0, make_shaper("ZV", [3.0], [0.0], 0.05)
    run = loop.get("duration", 0.5 + impulses.times[-1] + 0.5)
    reached = rate * (run - 0.5 / 2 - impulses.amplitudes @ impulses.times)

    shaped_spin_up(make, rate, loop, 1.0001 * reached)
    with pytest.raises(InputError, match=r"reference\.rate\[1\]: .* \(limits\.position of") as seen:
        shaped_spin_up(make, rate, loop, 0.9999 * reached)
    assert float(str(seen.value).split("got ")[1]) == pytest.approx(reached)


def shaped_spin_up(make, rate, loop, highest):
    """Design a spin-up on an arm whose joint must not move farther than `highest`."""
    arm = make["single"](limits={"position": [-0.1, float(highest)]})
    design = make["design"]([0.0], [rate], kind="spin-up", loop=loop).table() | {"name": "spins"}
    design["reference"] |= {"shaper": {"kind": "ZV", "frequency": 3.0}}
    design_controller(arm, Design.model_validate(design), interpreted=True)


def test_a_wrapped_controller_follows_the_shaped_reference_of_a_design(make):
    arm = make["single"]()
    design = shaped_controller(arm, 12.0).design
    gain = np.array([[20.0, 6.0]])
    plant = plant_of(arm)
    wrapped = wrap_controller(gain, plant, design, measures=("joint1", "joint1_rate"))

    assert wrapped.reference.shaper.frequencies == pytest.approx([12.0])


@pytest.mark.parametrize(
    ("shaper", "message"),
    [
        ({"kind": "ZZ"}, r"reference\.shaper\.kind"),
        ({"kind": "ZV", "frequency": "mod1"}, r'a frequency above 0 \[rad/s\], or "mode1"'),
        ({"kind": "ZV", "frequency": [1.0, 2.0, 3.0, 4.0, 5.0]}, r"at most 4 entries"),
        (
            {"kind": "ZV", "frequency": -3.0},
            r"shaper\.frequency: expected a frequency above 0 .* got -3",
        ),
        ({"kind": "ZV", "frequency": [2.0, 0.0]}, r"shaper\.frequency: expected a .* got 0\.0$"),
        ({"kind": "ZV", "tolerance": 0.1}, r"tolerance: expected no such key"),
        ({"kind": "ZV", "damping_ratio": 0.1}, r"damping_ratio: expected no such key"),
        ({"kind": "ZV", "frequency": 3.0, "damping_ratio": [0.1, 0.2]}, r"one number"),
        (
            {"kind": "ZV", "frequency": [3.0, "mode1"], "damping_ratio": [0.1, 0.2]},
            r"one number, of the frequencies that are numbers, as a mode has its own",
        ),
    ],
)
def test_what_is_no_shaper_is_refused(write_design, shaper, message):
    with pytest.raises(InputError, match=message):
        write_design(shaper)


@pytest.fixture
def write_design():
    """write_design(shaper): a design as its file would be read."""
    from flexctl.model.design import Design
    from flexctl.model.refusals import build

    def read(shaper):
        table = make_design([0.0], [1.0]).table() | {"name": "trial"}
        table["reference"] |= {"shaper": shaper}
        return build(Design, table, "trial.toml")

    return read


@pytest.mark.parametrize("arm", ["single", "rigid-link"])
def test_a_mode_that_the_arm_does_not_have_is_refused(make, arm):
    with pytest.raises(
        InputError, match=r"reference\.shaper\.frequency.*modes? with the drives held"
    ):
        shaped_controller(make[arm](), "mode3")


@pytest.mark.usefixtures("no_compiler")
@pytest.mark.parametrize("sampled", [{}, {"sample_time": 1e-3}])
def test_a_loop_that_closes_on_the_link_is_shaped_as_it_closes(sampled):
    spring = {"rotor_inertia": 0.05, "stiffness": 60.0, "damping": 0.3}
    arm = rigid_link(inertia=0.5, flexible_joint=spring)
    link = {"side": "link"}
    reference = {"kind": "cycloid", "from": [0.0], "to": [1.0], "duration": 0.5}
    tables = {
        "gains": {"Gp": [3.0], "Gv": [0.4]},
        "instruments": [{"kind": "encoder"} | link, {"kind": "tachometer"} | link],
    }

    def closed(loop, **more):
        design = make_design(
            [0.0], [1.0], "joint-pd", reference=reference | more, loop=loop, **tables
        )
        return close_loop(design_controller(arm, design), arm)

    poles = linearise_loop(closed({})).poles
    w = min(abs(pole) for pole in poles if pole.imag > 0)
    shaper = closed(
        sampled, shaper={"kind": "ZVD", "frequency": "loop1"}
    ).controller.reference.shaper

    assert shaper.frequencies[0] == pytest.approx(w, rel=1e-9)
