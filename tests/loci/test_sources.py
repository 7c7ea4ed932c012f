"""What branches of closed loops are, and the families of matrices that they are branches of."""

from dataclasses import replace

import numpy as np
import pytest

from flexctl.control import design_controller
from flexctl.errors import InputError
from flexctl.loci.branches import follow
from flexctl.loci.family import trace_loci
from flexctl.loci.labels import label_branches, numbers
from flexctl.loci.sources import at_rest, jacobian_in_motion, loop_matrix, on_reference, on_run
from flexctl.loci.variation import Variation, over_number
from flexctl.loop.closed_loop import close_loop
from flexctl.loop.eigenvalues import ModeNames
from flexctl.loop.linear import linearise_loop
from flexctl.loop.setup import Setup
from flexctl.model.lookup import load_design, load_model
from flexctl.model.record import BasisChoice
from flexctl.model.settings import apply_settings, with_value
from flexctl.simulation.simulation import simulate

BASIS = BasisChoice(kind="modes", order=1)


def setup(arm, design, truth=BASIS):
    return Setup.of(arm, design.basis, truth_basis=truth)


def beams(s, coupling):
    """Two oscillators, 1 + s and 2 - s [rad/s], in states [x1, x2, x1', x2']."""
    K = np.array([[(1 + s) ** 2, coupling], [coupling, (2 - s) ** 2]])
    return np.block([[np.zeros((2, 2)), np.eye(2)], [-K, -0.02 * np.eye(2)]])


def names_of_beams(_):
    return ModeNames(T=np.eye(4), names=("first", "second") * 2)


def labelled(coupling, *, proven=False):
    found = follow(lambda s: beams(s, coupling), np.linspace(0, 1, 11), proven=proven)
    return found, label_branches(found, names_of_beams)


def test_shares_sum_to_one_in_every_branch_everywhere():
    _, labels = labelled(1e-3)

    np.testing.assert_allclose(labels.shares.sum(axis=1), 1, rtol=1e-12)


def test_a_branch_that_crosses_keeps_its_label():
    found, labels = labelled(0.0)
    slow = int(np.abs(found.values[0]).argmin())

    assert labels.leaders[slow] == ("first",)
    assert labels.changes(slow) == ((0.0, "first"),)
    assert labels.participation(slow) == {"first": pytest.approx(1)}


@pytest.mark.parametrize(("proven", "near"), [(False, 1e-2), (True, 1e-3)])  # a tenth of a step
def test_branches_that_veer_exchange_what_they_are_where_the_beams_are_alike(proven, near):
    found, labels = labelled(1e-3, proven=proven)
    slow = int(np.abs(found.values[0]).argmin())

    assert [name for _, name in labels.changes(slow)] == ["first", "second"]
    assert labels.changes(slow)[1][0] == pytest.approx(0.5, abs=near)
    assert labels.leaders[slow] == ("first", "second")
    np.testing.assert_allclose(labels.mean[:, slow], 0.5, atol=0.01)


def test_equal_joints_share_their_eigenvalues():
    found = follow(lambda s: np.kron([[0, 1], [-1 - s, -0.2]], np.eye(2)), np.linspace(0, 1, 5))
    labels = label_branches(found, names_of_beams)

    np.testing.assert_allclose(labels.shares, 0.5, rtol=1e-9)
    assert set(labels.leaders) == {("first", "second")}
    assert set(numbers(found, labels)) == {0}


def test_numbers_tell_apart_the_branches_of_one_name_slow_ones_first():
    A = np.zeros((4, 4))
    A[:2, :2], A[2:, 2:] = [[0, 1], [-4, -0.1]], [[0, 1], [-1, -0.1]]
    found = follow(lambda _: A, np.array([0.0, 1.0]))
    names = ModeNames(T=np.eye(4), names=("joint1",) * 4)
    named = numbers(found, label_branches(found, lambda _: names))

    size = np.abs(found.values[0])
    assert {named[k] for k in np.flatnonzero(size < 1.5)} == {1}
    assert {named[k] for k in np.flatnonzero(size > 1.5)} == {2}


def numeric_jacobian(loop, stepper, t, x):
    """Sixth-order differences of the loop's motion x' = f(x, t), law called one by one."""
    model, columns = stepper(loop), []
    weights = {1: 45 / 60, 2: -9 / 60, 3: 1 / 60}

    def rate(x):
        tau, z_rate = model.torque(t, 0.0, x)
        return np.asarray(model.rates(x, tau, z_rate)).ravel()

    for k in range(len(x)):
        h = 1e-3 * np.eye(len(x))[k]
        columns.append(sum(w * (rate(x + j * h) - rate(x - j * h)) for j, w in weights.items()))
    return np.array(columns).T / 1e-3


@pytest.mark.slow_but("gains1")
@pytest.mark.parametrize("gains", [{}, {"gains": {"Gp": 9.0, "Gv": 6.0, "Gi": 4.0}}])
def test_the_matrix_in_motion_is_the_jacobian_of_the_loop(two_link_loop, stepper, gains):
    loop = two_link_loop(**gains)
    rng = np.random.default_rng(5)
    n, n_z = loop.truth.n, loop.controller.n_state
    x = rng.uniform(-0.05, 0.05, 2 * n + n_z) + np.r_[-0.9, 0.5, np.zeros(2 * n + n_z - 2)]
    A = jacobian_in_motion(loop)(0.3, x[:n], x[n : 2 * n], x[2 * n :])

    exact = numeric_jacobian(loop, stepper, 0.3, x)
    np.testing.assert_allclose(A, exact, atol=1e-7 * np.abs(exact).max())


@pytest.mark.slow
def test_at_the_start_of_its_reference_a_loop_without_gravity_is_at_rest(make):
    design = make["design"]([0.0, 0.3], [0.5, 0.9], basis={"kind": "modes", "order": 1})
    loop = make["close"](make["two-link"](), design, order=1)

    np.testing.assert_allclose(on_reference(loop).matrix(0.0), at_rest(loop).matrix(0.0), atol=1e-9)


def test_at_rest_is_the_linearised_loop(two_link_loop):
    loop = two_link_loop()
    motion = loop.controller.reference
    linear = linearise_loop(loop, motion.sample(np.array([0.4]))[0][:, 0], 0.0)

    values = np.sort_complex(np.linalg.eigvals(at_rest(loop).matrix(0.4)))
    np.testing.assert_allclose(values, np.sort_complex(linear.poles), rtol=1e-6)


@pytest.mark.slow
def test_on_a_run_the_law_has_its_integral(two_link_loop, stepper):
    gains = {"Gp": 9.0, "Gv": 6.0, "Gi": 4.0}
    loop = two_link_loop(gains=gains)
    run = simulate(loop, times=np.linspace(0, loop.duration, 801))
    t = float(run.t[300])
    x = stepper(loop).continuous([t])[:, 0]
    n = loop.truth.n

    exact = jacobian_in_motion(loop)(t, x[:n], x[n : 2 * n], x[2 * n :])
    found = on_run(loop, run).matrix(t)
    np.testing.assert_allclose(run.z[:, 300], x[2 * n :], rtol=1e-6)
    np.testing.assert_allclose(found, exact, atol=1e-7 * np.abs(exact).max())


def observing(make, **basis):
    """A single link with an observer made on two modes, closed around another basis or the same."""
    loop = {"measures": ["encoder", "tachometer", "strain_gauge"]}
    design = make["design"]([0.0], [0.6], gains={"Gp": [120.0], "Gv": [26.0]}, loop=loop)
    controller = design_controller(make["single"](), design, BasisChoice(order=2))
    truth = BasisChoice.model_validate(basis) if basis else controller.plant.basis
    return close_loop(controller, make["single"](), truth)


def test_on_the_plant_that_it_knows_the_estimate_of_a_run_is_its_state(make):
    run = simulate(observing(make), times=np.linspace(0, 0.3, 31))

    np.testing.assert_allclose(run.z, np.vstack([run.q, run.v]), atol=1e-9)


def test_with_an_observer_the_matrix_on_a_run_is_that_at_its_estimate(make):
    loop = observing(make, kind="elements", order=2)
    run = simulate(loop, times=np.linspace(0, 0.3, 61))
    k, n = 30, loop.controller.plant.n
    exact = jacobian_in_motion(loop)(float(run.t[k]), run.q[:, k], run.v[:, k], run.z[:, k])

    assert np.abs(run.z[:n, k] - loop.controller.plant.straight(run.q[:1, k])).max() > 1e-6
    np.testing.assert_allclose(
        on_run(loop, run).matrix(float(run.t[k])), exact, atol=1e-9 * np.abs(exact).max()
    )


def test_joints_of_a_decoupled_arm_break_in_where_they_are_damped_critically(make):
    design = make["design"](
        [0.0, 0.3], [0.5, 0.9], basis={"kind": "modes", "order": 1}, gains={"Gp": 9.0, "Gv": 4.0}
    )
    source = over_number(
        Variation(key="gains.Gv", setup=setup(make["two-link"](), design), design=design)
    )
    found = follow(source.matrix, np.linspace(4.0, 8.0, 4))
    labels = label_branches(found, source.names)

    meetings = [place for place in found.events if place.kind == "break-in"]
    assert [place.start for place in meetings] == pytest.approx([6.0])
    assert meetings[0].value == pytest.approx(-3, rel=1e-5)
    assert {labels.leaders[k] for k in meetings[0].branches} == {("joint1", "joint2")}
    assert "unsafe" not in [event.kind for event in found.events]


@pytest.mark.parametrize("redesign", [False, True])
@pytest.mark.parametrize("key", ["payload.mass", "gains.Gv"])
def test_settings_of_the_truth_alone_are_unknown_to_the_controller(make, key, redesign):
    design = make["design"](
        [0.0, 0.3], [0.5, 0.9], basis=BASIS.table(), gains={"Gp": 9.0, "Gv": 4.0}
    )
    varied = Variation(
        key=key,
        setup=setup(make["two-link"](), design),
        design=design,
        redesign=redesign,
        truth_set=("payload.mass=*1.5",),
    )
    closed = varied.close(0.7)
    own = varied.setup.design_arm.payload.mass
    actual = 0.7 if key == "payload.mass" else own

    assert closed.controller.plant.arm.payload.mass == (actual if redesign else own)
    assert closed.truth.arm.payload.mass == pytest.approx(1.5 * actual)


def test_rates_over_the_sampling_time_are_those_of_each_time():
    design = load_design("two-link-decoupling")
    design = design.model_copy(update={"basis": BASIS})
    arm = load_model("planar-two-link")
    source = over_number(Variation(key="loop.sample_time", setup=setup(arm, design), design=design))
    periods = np.array([0.002, 0.004])
    z = np.array([np.linalg.eigvals(source.matrix(T)) for T in periods])
    rates = source.in_time(z, periods)

    for_each = np.exp(rates * periods[:, None])
    np.testing.assert_allclose(for_each, z, rtol=1e-9, atol=1e-14)
    assert rates.real.max() < 0.1  # a law sampled so fast is the stable continuous one, nearly


@pytest.mark.parametrize("redesign", [False, True])
def test_the_law_knows_a_payload_only_where_it_is_redesigned(make, redesign):
    design = make["design"]([0.0, 0.3], [0.5, 0.9], basis={"kind": "modes", "order": 1})
    arm = make["two-link"]()
    varied = Variation(
        key="payload.mass", setup=setup(arm, design), design=design, redesign=redesign
    )
    closed = varied.close(0.7)

    assert closed.truth.arm.payload.mass == 0.7
    assert closed.controller.plant.arm.payload.mass == (0.7 if redesign else arm.payload.mass)
    assert varied.design_value == arm.payload.mass
    assert varied.unit == "kg"


@pytest.mark.slow_but("vertical-2r-vertical-2r-pd-links.d*")
@pytest.mark.parametrize("value", [0.6, 1.0, 1.7])
@pytest.mark.parametrize(
    ("model", "name", "setting", "scaled"),
    [
        ("planar-two-link", "two-link-decoupling", "payload.mass={}", False),
        ("planar-two-link", "two-link-decoupling", "link2.EI=*{}", True),
        ("vertical-2r", "vertical-2r-pd", "payload.mass={}", False),
        ("vertical-2r", "vertical-2r-pd", "gravity=*{}", True),
        ("vertical-2r", "vertical-2r-pd", "links.damping_ratio=*{}", True),
    ],
)
def test_over_a_number_of_the_arm_the_law_stays_that_of_the_file(
    model, name, setting, scaled, value
):
    arm, design = load_model(model), load_design(name).model_copy(update={"basis": BASIS})
    key = setting.partition("=")[0]
    varied = Variation(key=key, setup=setup(arm, design), design=design, scaled=scaled)
    source = over_number(varied)
    source.matrix(1.3)  # what is kept from one value must not reach the next
    found = np.linalg.eigvals(source.matrix(value))

    changed = apply_settings(arm, [setting.format(value)])
    closed = close_loop(design_controller(arm, design, interpreted=True), changed, BASIS)
    weight = float(closed.controller.feedback is not None)
    poles = linearise_loop(closed, closed.controller.reference.final, weight).poles
    largest = np.abs(poles).max()
    distance = np.abs(found[:, None] - poles).min(axis=1)
    assert (distance <= 1e-9 * largest).all()
    assert (np.abs(poles[:, None] - found).min(axis=1) <= 1e-9 * largest).all()


def test_factors_multiply_every_gain_of_a_design(make):
    design = make["design"]([0.0, 0.3], [0.5, 0.9], gains={"Gp": [9.0, 4.0], "Gv": 4.0})
    varied = Variation(
        key="gains.Gp", setup=setup(make["two-link"](), design), design=design, scaled=True
    )

    assert with_value(design, "gains.Gp", 2.0, factor=True).joint_gains.Gp == (18.0, 8.0)
    assert (varied.design_value, varied.unit, varied.of_design) == (1.0, "-", True)
    assert replace(varied, scaled=False).design_value is None  # two numbers


def test_nothing_is_scaled_where_a_design_has_nothing(make):
    design = make["design"]([0.0, 0.3], [0.5, 0.9])
    with pytest.raises(InputError, match=r"gains\.Gi: expected numbers to scale, got nothing"):
        with_value(design, "gains.Gi", 2.0, factor=True)


def test_a_table_that_a_design_has_not_is_refused(make):
    design = make["design"]([0.0, 0.3], [0.5, 0.9])
    with pytest.raises(InputError, match="second_loop"):
        with_value(design, "second_loop.weights.effort", 1.0)


@pytest.fixture(scope="module")
def rrp_branches(rrp_loop):
    """rrp_branches(points): the arm of [TG95] at rest along its motion, and what they are."""
    source = at_rest(rrp_loop("rrp-stiff-decoupling", kind="modes", order=2))
    found = {n: follow(source.matrix, np.linspace(0, 0.5, n)) for n in (5, 101)}
    return found, label_branches(found[5], source.names)


@pytest.mark.slow  # takes long
def test_an_arm_has_the_branches_of_a_fine_grid_on_a_coarse_one(rrp_branches):
    coarse, fine = rrp_branches[0][5], rrp_branches[0][101]
    grid, swings = np.linspace(0, 0.5, 5), np.abs(coarse.values[0]) > 30

    assert coarse.events == fine.events == ()
    np.testing.assert_allclose(coarse.at(grid)[:, swings], fine.at(grid)[:, swings], rtol=1e-7)


@pytest.mark.slow
def test_critically_damped_joints_of_an_arm_are_followed_together(rrp_branches):
    coarse = rrp_branches[0][5]
    joints = np.flatnonzero(np.abs(coarse.values[0]) < 30)

    assert {sets for sets in coarse.together} == {(tuple(joints),)}  # s^2 + 40 s + 400, three times
    np.testing.assert_allclose(coarse.values[:, joints], -20, rtol=1e-3)  # cube root of round-off


@pytest.mark.slow
@pytest.mark.parametrize("plane", [("link2.y", "link3.y"), ("link2.z", "link3.x")])
def test_at_rest_modes_of_an_arm_stay_in_their_plane(rrp_branches, plane):
    found, labels = rrp_branches[0][5], rrp_branches[1]
    inside = np.array([name.startswith(plane) for name in labels.names])
    own = [k for k, names in enumerate(labels.leaders) if names[0].startswith(plane)]
    swings = np.abs(found.values[0]) > 30

    assert len(own) == swings.sum() // 2  # two links, two modes each, both halves
    np.testing.assert_allclose(labels.shares[:, inside][:, :, own].sum(axis=1), 1, atol=1e-6)


@pytest.mark.slow  # a run of the RRP arm
def test_in_motion_what_passed_through_each_other_at_rest_veers(rrp_branches, rrp_loop):
    labels = rrp_branches[1]
    source = on_reference(rrp_loop("rrp-stiff-decoupling", kind="modes", order=2))
    moving = follow(source.matrix, np.linspace(0, 0.5, 11))
    named = label_branches(moving, source.names)
    second = {"link3.x.2", "link3.y.2"}  # at rest the upper of the two becomes the lower

    own = [k for k, names in enumerate(labels.leaders) if names[0] in second]
    assert {len(labels.changes(k)) for k in own} == {1}
    exchanged = [{name for _, name in named.changes(k)} for k in range(22)]
    assert exchanged.count(second) == 4
    assert "unsafe" not in {event.kind for event in moving.events}


def test_of_a_sampled_law_rates_are_those_of_its_multipliers(make):
    loop = make["close"](
        make["rigid-link"](),
        make["design"]([0.0], [0.5], gains={"Gp": 9.0, "Gv": 6.5}, loop={"sample_time": 0.02}),
    )
    source = at_rest(loop)
    found = follow(source.matrix, np.linspace(0, 0.5, 3))

    poles = linearise_loop(loop, loop.controller.reference.final, 0.0).poles
    rates = np.sort_complex(source.in_time(found.values[-1:], np.array([0.5]))[0])
    np.testing.assert_allclose(rates, np.sort_complex(poles), rtol=1e-9)


def test_a_state_that_is_gone_after_a_sample_has_no_rate(make):
    loop = make["close"](
        make["rigid-link"](),
        make["design"]([0.0], [0.5], gains={"Gp": 9.0, "Gv": 6.5}, loop={"sample_time": 0.02}),
    )
    z = np.array([[0.5, 1e-16, 0.0, -1e-17 + 1e-17j]])  # of a delay state but for rounding
    rates = at_rest(loop).in_time(z, np.zeros(1))
    assert rates[0, 0] == pytest.approx(np.log(0.5) / 0.02)
    assert np.isneginf(rates[0, 1:].real).all()


def test_of_a_sampled_law_places_are_told_as_rates_too(make):
    design = make["design"]([0.0], [0.5], gains={"Gp": 9.0, "Gv": 4.0}, loop={"sample_time": 0.02})
    varied = Variation(key="gains.Gv", setup=setup(make["rigid-link"](), design), design=design)
    found = trace_loci(over_number(varied), np.linspace(4.0, 8.0, 41))

    (place,) = found.events
    near = [branch.values[np.abs(found.s - place.start).argmin()] for branch in found.branches]
    assert place.kind == "break-in"
    assert place.value == pytest.approx(np.mean(near), rel=1e-2)


def test_a_sampled_law_has_no_matrix_in_motion(make):
    loop = make["close"](
        make["rigid-link"](), make["design"]([0.0], [0.5], loop={"sample_time": 0.02})
    )
    with pytest.raises(InputError, match="continuous law"):
        on_reference(loop)


@pytest.mark.slow
def test_with_an_observer_a_loop_starts_its_reference_as_if_at_rest(rrp_loop):
    loop = rrp_loop("rrp-observer", kind="modes", order=2)

    first, rest = on_reference(loop).matrix(0.0), at_rest(loop).matrix(0.0)
    np.testing.assert_allclose(first, rest, atol=1e-9 * np.abs(rest).max())


@pytest.mark.slow_but("1-gains.Gp")
@pytest.mark.parametrize("key", ["gains.Gp", "payload.mass"])
@pytest.mark.parametrize("order", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_loop_over_a_number_is_the_one_made_anew(key, order):
    arm, design = load_model("planar-two-link"), load_design("two-link-decoupling")
    design = design.model_copy(update={"basis": BASIS})
    truth = BasisChoice(order=order)
    source = over_number(
        Variation(key=key, setup=setup(arm, design, truth), design=design, redesign=True)
    )
    source.matrix(7.0)  # what is kept from one value must not reach the next
    found = source.matrix(8.0)

    anew = with_value(design, key, 8.0) if key == "gains.Gp" else design
    changed = arm if key == "gains.Gp" else apply_settings(arm, [f"{key}=8.0"])
    closed = close_loop(design_controller(changed, anew, interpreted=True), changed, truth)
    pose = closed.controller.reference.final  # under the second loop, which the design has
    np.testing.assert_array_equal(found, loop_matrix(linearise_loop(closed, pose, 1.0)))
