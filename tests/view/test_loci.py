"""`flexctl track`: branches of eigenvalues as a person and as a script get them."""

import csv
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr
from matplotlib.text import Text

from flexctl.control import design_controller
from flexctl.loci.crossings import AxisCrossing
from flexctl.loci.events import LocusEvent
from flexctl.loci.family import Branch, Loci
from flexctl.loci.loci import eigenvalue_loci
from flexctl.loci.record import EigenvalueLoci
from flexctl.loop.closed_loop import close_loop
from flexctl.loop.linear import linearise_loop
from flexctl.model.lookup import load_design, load_model
from flexctl.model.record import BasisChoice
from flexctl.model.settings import apply_settings
from flexctl.view.commands.loci import read_beside
from flexctl.view.commands.loci_table import _branches
from flexctl.view.explain import explain
from flexctl.view.figures.axes import label_points
from flexctl.view.figures.loci import plot_loci
from flexctl.view.figures.locus_curve import curve_of, points_of
from flexctl.view.figures.style import new_figure
from flexctl.view.options import TrackOptions
from flexctl.view.request import truth_basis
from flexctl.view.to_json import to_json
from flexctl.view.words.loci import (
    least_damped_words,
    parameter_words,
    stability_words,
    value_words,
)

LOOP = ("planar-two-link", "two-link-decoupling", "--truth-modes", "1", "--points", "5")
MOVING = ("track", *LOOP)


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    """Answer of the loop along its motion, and both tables of it."""
    from flexctl.view import cli

    folder = tmp_path_factory.mktemp("tracked")
    paths = {kind: folder / f"tracked.{kind}" for kind in ("json", "csv", "nc", "svg")}
    for kind in ("json", "csv", "nc"):
        words = [*MOVING, "--out", paths[kind], "--json", "--plot", paths["svg"]]
        assert cli.run([str(word) for word in words]) == 0
    return json.loads(paths["json"].read_text()), paths


def linear(share=0.0, t=None):
    design = load_design("two-link-decoupling")
    arm = load_model("planar-two-link")
    controller = design_controller(arm, design, interpreted=True)
    closed = close_loop(controller, arm, BasisChoice(order=1))
    motion = controller.reference
    t = motion.duration if t is None else t
    return linearise_loop(closed, motion.sample(np.array([t]))[0][:, 0], share)


@pytest.mark.slow
def test_the_answer_has_the_keys_of_the_contract(asked):
    found, _ = asked

    assert {"t", "branches", "frozen"} <= set(found)
    assert {"label", "re", "im", "participation"} <= set(found["branches"][0])
    assert len(found["t"]) == len(found["branches"][0]["re"]) == 5
    assert found["motion"] == "run"


@pytest.mark.slow_but("4", "2")
@pytest.mark.parametrize("k", [0, 2, 4])
def test_eigenvalues_at_rest_are_those_of_the_loop(asked, k):
    found, _ = asked
    loop = linear(t=found["t"][k])
    expected = np.linalg.eigvals(loop.A + loop.B @ loop.K)
    branches = [one["re"][k] + 1j * one["im"][k] for one in found["frozen"]]

    assert np.sort_complex(branches) == pytest.approx(np.sort_complex(expected), rel=1e-5)


def test_the_motion_begins_as_the_loop_rests(asked):
    found, _ = asked
    sizes = [sorted(one["frequency"][0] for one in found[key]) for key in ("branches", "frozen")]

    assert sizes[0] == pytest.approx(sizes[1], rel=1e-5)


def test_shares_of_a_branch_sum_to_one(asked):
    found, _ = asked
    total = [sum(one["participation"].values()) for one in found["branches"]]

    assert total == pytest.approx(np.ones(len(total)), abs=0.02)


def test_the_csv_file_has_the_numbers_of_the_answer(asked):
    found, paths = asked
    header, *rows = csv.reader(paths["csv"].read_text().splitlines())
    table = np.array(rows, dtype=float)

    assert table[:, 0] == pytest.approx(found["t"])
    assert table[:, 1] == pytest.approx(found["branches"][0]["re"])
    assert len(header) == 1 + 2 * len(found["branches"]) + 2 * len(found["frozen"])


def test_the_netcdf_file_has_the_numbers_of_the_answer(asked):
    found, paths = asked
    with xr.open_dataset(paths["nc"], engine="h5netcdf") as data:
        assert data["frozen_im"].values[3] == pytest.approx(found["frozen"][3]["im"])
        assert list(data["label"].values) == [one["label"] for one in found["branches"]]


def texts(figure):
    figure.draw_without_rendering()
    words = " ".join(text.get_text() for text in figure.findobj(Text))
    return " ".join(words.split())


def branch(motion, values, number=0):
    return Branch(
        motions=(motion,),
        number=number,
        values=np.asarray(values, dtype=complex),
        participation={motion: 1.0},
        leads=((0.0, motion),),
    )


@pytest.fixture
def family():
    """Loci over a payload: a joint that loses stability at 1.5 kg, a slow real one, a fast mode."""
    s = np.linspace(1.0, 2.0, 5)
    joint = 0.2 * (s - 1.5) + 3j
    branches = [branch("joint1", -0.05 - 0.01 * s, 2)]
    branches += [branch("joint1", own, 1) for own in (joint, joint.conj())]
    branches += [branch("link1.y.2", np.full(5, -20 + im)) for im in (5e3j, -5e3j)]
    crossing = AxisCrossing(s=1.5, value=3j, branch=1, unstable="above", whole=True)
    return Loci(
        parameter="payload.mass",
        s=s,
        branches=tuple(branches),
        events=(),
        n_matrices=5,
        crossings=(crossing,),
        stable=((1.0, 1.5),),
        at_design=np.array([-0.0625, -0.05 + 3j, -0.05 - 3j, -20 + 5e3j, -20 - 5e3j]),
    )


@pytest.fixture
def record(family):
    """The same as a record of an arm and a design of 1.25 kg."""
    return EigenvalueLoci(
        model="arm",
        design="law",
        basis=BasisChoice(order=1),
        truth=BasisChoice(order=2),
        unit="kg",
        varied="true arm",
        design_value=1.25,
        loci=family,
    )


def test_the_figure_over_a_number_has_units_the_design_and_the_limit(record):
    words = texts(plot_loci(record))

    assert "payload.mass [kg]" in words
    assert "design: 1.25 kg" in words
    assert "1.5 kg, 3 rad/s" in words
    assert (
        "Stable for payload.mass below 1.5 kg; at 1.5 kg, flutter of joint1 (1) at 3 rad/s."
        in words
    )
    assert "controller fixed" in words


def test_dominant_branches_fill_the_plane_and_real_ones_are_on_it(record):
    plane = plot_loci(record).axes[0]
    left, right = plane.get_xlim()

    assert plane.get_ylim()[1] < 50  # not up to the fast mode
    assert left < -0.07 < 0.1 < right
    real = [np.asarray(line.get_xdata(), dtype=float) for line in plane.lines]
    ends = [(x[0], x[-1]) for x in real if len(x) > 1]
    assert any(own == pytest.approx((-0.06, -0.07)) for own in ends)


@pytest.mark.slow_but("True-4-100000.0")
@pytest.mark.parametrize(("every", "panels", "top"), [(False, 5, 50), (True, 4, 1e5)])
def test_all_branches_are_drawn_on_request_or_in_their_own_panel(record, every, panels, top):
    figure = plot_loci(record, every=every)
    figure.draw_without_rendering()

    assert len(figure.axes) == panels
    assert figure.axes[0].get_ylim()[1] < top
    assert figure.axes[0 if every else 4].get_ylim()[1] > 5e3


def test_where_the_equilibrium_is_lost_is_hatched_and_named(record):
    figure = plot_loci(replace(record, no_rest_above=2.0))

    words = texts(figure)
    assert "No equilibrium above 2 kg: there the arm falls." in words
    assert "2 kg: falls" in words
    assert figure.axes[1].get_xlim()[1] > 2.0


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "Stable for payload.mass below 1.5 kg; at 1.5 kg, flutter of joint1 (1) at 3 rad/s."),
        ({"stable": (), "crossings": ()}, "Unstable for all values of payload.mass in the range."),
        (
            {"stable": ((1.0, 2.0),), "crossings": ()},
            "Stable for all values of payload.mass in the range.",
        ),
    ],
)
def test_the_range_of_stability_is_said(record, family, changes, words):
    assert stability_words(replace(record, loci=replace(family, **changes))) == words


@pytest.mark.parametrize(
    ("changes", "axis", "value"),
    [
        ({}, "payload.mass [kg]", "1.25 kg"),
        ({"scaled": True, "unit": "-"}, "payload.mass / nominal [-]", "1.25 of nominal"),
        ({"varied": "time", "unit": "s"}, "time [s]", "1.25 s"),
        ({"unit": "-"}, "payload.mass [-]", "1.25"),
    ],
)
def test_values_are_written_with_their_unit(record, changes, axis, value):
    changed = replace(record, **changes)
    assert (parameter_words(changed), value_words(1.25, changed)) == (axis, value)


def test_explain_says_what_is_stable_and_what_grows(record):
    words = explain(replace(record, no_rest_above=2.0))

    assert words == (
        "law on arm: Stable for payload.mass below 1.5 kg; at 1.5 kg, flutter of joint1 (1) at "
        "3 rad/s. Fastest growth: joint1 (1), 0.1 1/s at payload.mass = 2 kg. All branches were "
        "continued unambiguously. Warning: above payload.mass = 2 kg the loop has no equilibrium "
        "at its reference: the arm leaves it, and eigenvalues are followed only up to there."
    )


def test_the_command_prints_what_the_record_says(asked):
    record = eigenvalue_loci(*LOOP[:2], truth_basis=BasisChoice(order=1), points=5)
    answer, own = to_json(record), asked[0]

    assert {key: own[key] for key in answer} == answer
    assert set(own) - set(answer) == {"warnings", "provenance"}


def test_marks_of_the_design_and_of_limits_lie_on_the_branch_as_it_is_drawn(family):
    sparse = replace(
        family,
        s=family.s[::4],
        branches=tuple(replace(one, values=one.values[::4]) for one in family.branches),
    )
    s, values, _ = points_of(sparse, 1, 1.2)

    assert s.tolist() == [1.0, 1.2, 1.5, 2.0]
    assert values[1:3] == pytest.approx([-0.05 + 3j, 3j])


def test_a_sampled_branch_stays_in_its_half_plane_at_the_nyquist_frequency(family):
    values = [-3 + 100j, -2 + 104j, -2 - 104j, -3 - 100j, -4 - 95j]
    turning = replace(family, branches=(branch("joint1", values),), crossings=())
    _, followed, _ = points_of(turning, 0)

    assert followed.imag.tolist() == [100, 104, 104, 100, 95]
    assert np.abs(curve_of(turning, 0)[1]).min() > 90


def test_a_branch_that_jumps_off_the_real_axis_is_broken_there(family):
    values = [-30, -90, -85 + 95j, -40 + 70j, -7 + 63j]
    jumping = replace(family, branches=(branch("joint1", values),), crossings=())
    s, values, _ = points_of(jumping, 0)

    assert np.isnan(values).tolist() == [False, False, True, False, False, False]
    assert s[2] == s[3]


def test_a_branch_that_meets_the_real_axis_is_drawn_in_one_line(family):
    values = [-3 + 2j, -3 + 1j, -2.5, -2, -1.5]
    event = LocusEvent(kind="break-in", start=1.4, end=1.4, branches=(0,), value=-3)
    meeting = replace(family, branches=(branch("joint1", values),), crossings=(), events=(event,))

    assert np.isfinite(curve_of(meeting, 0)[1]).all()


def oscillator(damping):
    """Exact eigenvalues (k, 2) of x'' + c x' + 9 x = 0; critically damped at c = 6."""
    root = np.sqrt(np.asarray(damping) ** 2 - 36 + 0j)
    return np.column_stack([-damping + root, -damping - root]) / 2


@pytest.fixture(params=[5, 9])
def splitting(request):
    """Loci of the oscillator over its damping, its pair becoming two real eigenvalues at 6."""
    s = np.linspace(1.0, 10.0, request.param)
    values = oscillator(s)
    event = LocusEvent(kind="break-in", start=6.0, end=6.0, branches=(0, 1), value=-3)
    return Loci(
        parameter="damping",
        s=s,
        branches=tuple(branch("joint1", own) for own in values.T),
        events=(event,),
        n_matrices=len(s),
    )


@pytest.mark.parametrize("k", [0, 1])
def test_the_curve_is_round_where_a_pair_becomes_real(splitting, k):
    s, values = curve_of(splitting, k, below=True)

    exact = oscillator(s)[:, k]
    assert np.abs(values - exact).max() < 0.02 * np.abs(exact).max()
    straight = np.interp(s, splitting.s, splitting.branches[k].values)  # as a polygon has it
    assert np.abs(straight - exact).max() > 0.1 * np.abs(exact).max()


def test_the_curve_crosses_the_imaginary_axis_where_the_branch_does_and_nowhere_else(family):
    steep = np.array([-40, -0.01, 0.01, 30, 0.001]) + 3j
    made = replace(family, branches=(branch("joint1", steep),), crossings=(), at_design=None)
    s, values = curve_of(made, 0)

    changes = np.flatnonzero(np.diff(np.sign(values.real)))
    assert len(changes) == 1
    assert family.s[1] < s[changes[0]] < family.s[2]


def test_the_curve_goes_through_what_was_put_between_the_values_asked_for(family):
    nodes = np.append(family.s, 1.9)
    rows = np.array([one.values for one in family.branches]).T
    order, bent = np.argsort(nodes), rows[-1] + [-0.3, 0.4, 0.4, 0, 0]
    kept = replace(family, nodes=nodes[order], node_values=np.vstack([rows, bent])[order])
    s, values = curve_of(kept, 1)

    assert values[np.abs(s - 1.9).argmin()] == pytest.approx(bent[1], rel=1e-9)


def test_every_pair_and_real_eigenvalue_has_a_line_and_a_name_of_its_own(record):
    figure = plot_loci(record)
    (legend,) = figure.legends
    lines = {
        text.get_text(): line for text, line in zip(legend.texts, legend.get_lines(), strict=False)
    }

    assert "joint1 (1)" in lines
    assert lines["joint1 (1)"].get_color() != lines["joint1 (2)"].get_color()


def test_the_headline_names_the_least_damped_of_what_is_shown(record, family):
    steady = replace(family, crossings=(), stable=((1.0, 2.0),))
    branches = [replace(one, values=one.values - 0.4) for one in family.branches]
    said = least_damped_words(replace(record, loci=replace(steady, branches=tuple(branches))))

    # the fast mode has 0.408 % and is grey; at 2 kg the joint has 0.3/|0.3 - 3j|
    assert said == "Least damped dominant branch: joint1 (1), 9.95 % at 3.01 rad/s (2 kg)."


@pytest.mark.slow_but("1.2")
@pytest.mark.parametrize("design", [1.01, 1.2, 1.45, 1.5, 1.52, 2.0])
def test_names_of_the_design_and_of_the_limit_do_not_overlap(record, family, design):
    early = replace(family.crossings[0], s=1.02)
    limits = replace(family, crossings=(early, *family.crossings), stable=((1.02, 1.5),))
    figure = plot_loci(replace(record, design_value=design, loci=limits))
    figure.draw_without_rendering()
    axes = next(one for one in figure.axes if one.get_ylabel() == "real part [1/s]")

    names = [one for one in axes.texts if "kg" in one.get_text()]
    boxes = [one.get_window_extent() for one in names]
    assert len(boxes) == 3
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])


def test_light_and_heavy_damping_are_both_read_off(record):
    axes = plot_loci(record).axes
    damping = next(one for one in axes if one.get_ylabel() == "damping ratio [%]")
    low, high = damping.get_ylim()

    assert low < -3.33 < 100 < high  # from the unstable end of the joint to the real branch


@pytest.mark.slow
def test_a_design_value_outside_of_the_range_is_named_beside_the_axis(record, family):
    outside = replace(record, design_value=4.5, loci=replace(family, at_design=None))

    assert "payload.mass [kg] (design: 4.5 kg)" in texts(plot_loci(outside))
    assert "design" not in texts(plot_loci(replace(outside, design_value=None)))


@pytest.mark.parametrize("side", [-1, 1])
def test_a_label_stands_where_no_curve_is(side):
    figure = new_figure(4, 4)
    axes = figure.add_subplot()
    axes.set(xlim=(-1, 1), ylim=(0, 2))
    crowded = np.array([0.0, side]) + 1j * np.linspace(0, 2, 41)[:, None]  # to and fro beside it
    label_points(axes, [(1j, "1.5 kg, 3 rad/s")], [crowded.ravel()], fontsize=8.0)
    figure.draw_without_rendering()

    (label,) = axes.texts
    box = label.get_window_extent().transformed(axes.transData.inverted())
    assert (box.x1 < 0) if side > 0 else (box.x0 > 0)


def test_labels_of_points_on_each_other_do_not_overlap():
    figure = new_figure(4, 4)
    axes = figure.add_subplot()
    axes.set(xlim=(-1, 1), ylim=(0, 2))
    label_points(axes, [(1j, f"{k} kg, 3 rad/s") for k in range(4)], [], fontsize=8.0)
    figure.draw_without_rendering()

    boxes = [text.get_window_extent() for text in axes.texts]
    pairs = [(a, b) for i, a in enumerate(boxes) for b in boxes[:i]]
    assert len(pairs) == 6
    assert not any(a.overlaps(b) for a, b in pairs)


def test_the_figure_names_its_branches():
    design = load_design("two-link-decoupling")
    record = eigenvalue_loci(
        "planar-two-link", design, motion="rest", points=3, truth_basis=design.basis
    )
    words = texts(plot_loci(record))

    expected = "two-link-decoupling on planar-two-link: closed-loop eigenvalues along the motion"
    assert expected in words
    assert "link1's first mode in y" in words


def said(heard):
    return " ".join(heard.out.split())


def test_a_person_reads_the_branches_and_what_grows_most(flexctl):
    heard = flexctl(*MOVING)

    assert (heard.status, heard.err) == (0, "")
    assert "The same frozen at rest" in heard.out
    assert "All branches were continued unambiguously by their eigenvectors" in said(heard)


def test_proven_branches_need_no_remark(flexctl):
    heard = flexctl(*MOVING, "--proven")

    assert heard.status == 0
    assert "All branches were continued unambiguously." in said(heard)


def test_a_number_of_the_arm_is_varied(flexctl):
    heard = flexctl("track", *LOOP[:4], "--points", "3", "--over", "payload.mass=1:1.2", "--json")
    found = json.loads(heard.out)
    swings = [one for one in found["branches"] if one["im"][0] > 1]

    assert found["s"] == pytest.approx([1.0, 1.1, 1.2])
    assert found["t"] is None
    assert found["frozen"] == []
    assert any(one["frequency"][0] > 1.001 * one["frequency"][-1] for one in swings)
    assert (found["redesigned"], found["unit"], found["scaled"]) == (False, "kg", False)
    assert found["design_value"] == load_model("planar-two-link").payload.mass
    assert found["stability_limits"] == []
    assert found["stable_ranges"] == []  # the law is made for two modes, the arm has one
    assert max(one["re"][0] for one in found["branches"]) > 0
    assert any(one["dominant"] for one in found["branches"])


@pytest.mark.slow  # takes long
def test_what_only_the_truth_has_is_unknown_to_the_law_over_a_number(flexctl):
    words = ("--over", "payload.mass=1:1.2", "--points", "2", "--truth-set", "payload.mass=*1.5")
    words += ("--redesign",)
    found = json.loads(flexctl("track", *LOOP[:4], *words, "--json").out)
    design, arm = load_design("two-link-decoupling"), load_model("planar-two-link")
    known, real = (apply_settings(arm, [f"payload.mass={mass!r}"]) for mass in (1.2, 1.2 * 1.5))
    controller = design_controller(known, design, interpreted=True)
    closed = close_loop(controller, real, BasisChoice(order=1))
    poles = linearise_loop(closed, controller.reference.final, 1.0).poles
    last = [one["re"][-1] + 1j * one["im"][-1] for one in found["branches"]]

    assert np.sort_complex(last) == pytest.approx(np.sort_complex(poles), rel=1e-6)


def test_a_number_that_nothing_depends_on_is_said_to_be_one(flexctl):
    words = ("--over", "loop.settle_within=0.001:0.002", "--points", "2")

    assert "No eigenvalue depends on" in " ".join(flexctl("track", *LOOP[:4], *words).out.split())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--over", "payload.mass=2"), "--over: expected KEY=FROM:TO, got 'payload.mass=2'"),
        (("--over", "payload.mass=2:1"), "--over: expected FROM below TO, got 'payload.mass=2:1'"),
        (("--over", "payload.mass=*1:2"), "--over: expected two numbers or two factors (*0.5:*2)"),
        (("--over", "a=*x:*2"), "--over: expected a finite number, got 'x'"),
        (("--redesign",), "--redesign: expected --over KEY=FROM:TO with it, got none"),
        (("--over", "a=x:2"), "--over: expected a finite number, got 'x'"),
        (("--over", "a.b=1:2"), "expected"),
        (
            ("--motion", "rest", "--over", "payload.mass=1:2"),
            "--motion: expected none with --over, got rest",
        ),
        (("--beside", "4"), "--beside: expected such as e2 or m2:e8, got '4'"),
        (("--beside", "m2:"), "--beside: expected such as e2 or m2:e8, got 'm2:'"),
        (("--all",), "--all: expected --plot FILE with it, got none"),
        (("--beside", "m2:e300"), "--beside: expected orders of at most 200, got 300"),
        (("--beside", "m0"), "--beside: expected such as e2 or m2:e8, got 'm0'"),
        (("--out", "x.txt"), "--out: expected a file ending in .csv or .nc or .json, got x.txt"),
        (
            ("--beside", "m2", "--all", "--plot", "x.svg"),
            "--all: expected no --beside with it, got m2",
        ),
        (
            ("-m", "2", "--beside", "e2", "--sliding", "exact"),
            "--sliding: expected no --beside with it, got e2",
        ),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_line(flexctl, words, said):
    heard = flexctl(*MOVING, *words)

    assert (heard.status, heard.out) == (2, "")
    assert said in heard.err
    assert heard.err.count("\n") == 1


def test_another_discretisation_leaves_out_the_same_modes_of_the_true_arm():
    own = read_beside("m2:e8", TrackOptions(truth_drop_above=300.0))
    basis = truth_basis(load_model("planar-two-link"), BasisChoice(order=2), own)

    assert basis == BasisChoice(kind="elements", order=8, drop_above=300.0)


def test_factors_of_a_number_of_the_design_have_a_limit(flexctl):
    words = ("--over", "gains.Gv=*0.2:*1", "--points", "3", "--redesign", "--json")
    found = json.loads(flexctl("track", *LOOP[:4], *words).out)

    assert (found["redesigned"], found["unit"], found["scaled"]) == (True, "-", True)
    assert found["design_value"] == 1.0


def test_an_open_loop_is_refused(flexctl):
    heard = flexctl("track", "mohan-saha-canadarm", "mohan-saha-forced")

    assert heard.status == 2
    assert "expected a design with feedback" in heard.err


def test_a_set_point_is_refused(flexctl, tmp_path):
    text = Path(load_design("two-link-decoupling").path).read_text(encoding="utf-8")
    path = tmp_path / "held.toml"
    held = text.replace('"cycloid"', '"setpoint"').replace("duration = 6.0\n", "")
    path.write_text(held[: held.index("[expect")], encoding="utf-8")
    heard = flexctl("track", "planar-two-link", path)

    assert (heard.status, heard.out) == (2, "")
    assert (
        "expected a reference that moves, or a number to vary (over), got a set point" in heard.err
    )


@pytest.fixture(scope="module")
def side(tmp_path_factory):
    """Answer of the loop at rest on one mode, with two other discretisations beside it."""
    from flexctl.view import cli

    folder = tmp_path_factory.mktemp("beside")
    paths = {kind: folder / f"tracked.{kind}" for kind in ("json", "csv", "svg")}
    words = [*MOVING, "--motion", "rest", "--beside", "e1", "--beside", "m1:e2", "--json"]
    assert cli.run([*map(str, words), "--out", str(paths["json"])]) == 0
    words += ["--out", paths["csv"], "--plot", paths["svg"]]
    assert cli.run([str(word) for word in words]) == 0
    return json.loads(paths["json"].read_text()), paths


@pytest.mark.slow  # takes long
def test_every_discretisation_beside_has_its_branches(side):
    found, _ = side
    bases = [(one["basis"]["kind"], one["truth"]["kind"]) for one in found["beside"]]

    assert bases == [("elements", "elements"), ("modes", "elements")]
    assert [len(one["branches"]) for one in found["beside"]] == [12, 20]
    assert all(len(one["branches"][0]["re"]) == 5 for one in found["beside"])


@pytest.mark.slow
def test_what_is_alike_names_a_branch_and_how_far_it_is(side):
    found, _ = side
    other = found["beside"][1]
    own = {one["label"]: one for one in found["branches"] if one["im"][0] > 0}
    twin = next(one for one in other["alike"] if one["label"] == "link1.y.1")
    k = twin["branch"][2]

    ratio = other["branches"][k]["im"][2] / own[twin["label"]]["im"][2]
    assert twin["ratio"][2] == pytest.approx(ratio)
    assert ratio == pytest.approx(1, abs=0.1)


@pytest.mark.slow
def test_the_csv_file_has_every_discretisation(side):
    found, paths = side
    header, *rows = csv.reader(paths["csv"].read_text().splitlines())
    k = next(k for k, name in enumerate(header) if name.startswith("beside2 0 "))

    assert [float(row[k]) for row in rows] == found["beside"][1]["branches"][0]["re"]


NAMES = ("1 mode, law on 2 modes", "1 element", "2 elements, law on 1 mode")


@pytest.mark.slow
def test_the_figure_says_which_marks_are_which(side):
    words = side[1]["svg"].read_text()

    assert all(f"<!-- {name} -->" in words for name in NAMES)


def test_a_person_reads_how_far_discretisations_are_apart(flexctl):
    heard = flexctl(*MOVING, "--motion", "rest", "--beside", "e1")

    assert (heard.status, heard.err) == (0, "")
    assert "Imaginary parts on 1 element, compared with these" in heard.out
    assert "1 element: " in heard.out


def test_the_table_leaves_out_what_is_gone_after_a_sample():
    # the noise of a sample: its multiplier is zero, its frequency infinite
    two = np.ones(2)
    kept = SimpleNamespace(label="joint1", frequency=3 * two, damping=0.5 * two)
    gone = SimpleNamespace(label="noise of encoder", frequency=np.inf * two, damping=np.nan * two)
    table = _branches(SimpleNamespace(upper=[kept, gone], parameter="t", s=[0.0, 1.0]), "title")

    assert list(map(str, table.columns[0].cells)) == ["joint1"]
