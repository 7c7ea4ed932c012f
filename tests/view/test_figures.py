"""Figures: drawn from the arm's own kinematics, not empty, the same every time."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.text import Text

from flexctl.model.design import Design
from flexctl.model.lookup import load_design, load_model
from flexctl.model.record import BasisChoice
from flexctl.model.settings import apply_settings
from flexctl.plant.plant import assemble_plant
from flexctl.verdict.comparison import compare
from flexctl.view.figures.bars import plot_margins
from flexctl.view.figures.curves import plot_tip_error
from flexctl.view.figures.drawing import is_planar, make_skeleton
from flexctl.view.figures.pages import in_order, make_curves, plot_comparison
from flexctl.view.figures.style import BASELINE, looks, new_figure, styled
from flexctl.view.output import save_figure
from flexctl.view.save import comparison_looks, save
from tests.verdict_record import evaluation, resting

ARMS = ["single-link-hub", "planar-two-link", "theodore-ghosal-rrp"]


def bent(model, kind="elements"):
    plant = assemble_plant(load_model(model), BasisChoice(kind=kind, order=2), interpreted=True)
    noise = np.random.default_rng(1).normal(scale=0.03, size=plant.n)
    return plant, plant.pose() + noise


@pytest.mark.parametrize("kind", ["modes", "elements"])
@pytest.mark.parametrize("model", ARMS)
def test_the_drawn_arm_ends_at_the_tip_of_the_plant(model, kind):
    plant, q = bent(model, kind)

    tip = make_skeleton(plant).lines(q)[-1][:, -1]

    assert tip == pytest.approx(plant.tip(q), abs=1e-12)


@pytest.mark.parametrize("model", ARMS)
def test_every_bending_line_ends_where_the_plant_says(model):
    plant, q = bent(model)
    ends = plant.line_tips(q)
    lines = make_skeleton(plant).lines(q)
    found = [line[:, -2] for line, body in zip(lines, plant.bodies, strict=True) if body.planes]

    expected = [ends[:, j] for j, body in enumerate(plant.bodies) if body.planes]
    assert np.array(found) == pytest.approx(np.array(expected), abs=1e-12)


@pytest.mark.parametrize("model", ARMS)
def test_links_hang_together(model):
    plant, q = bent(model)
    lines = make_skeleton(plant).lines(q)

    for before, after in itertools.pairwise(lines):
        assert after[:, 0] == pytest.approx(before[:, -1], abs=1e-12)


@pytest.mark.parametrize("model", ARMS)
def test_a_mode_moves_straight_links_across_and_to_first_order(model):
    plant, q = bent(model, "modes")
    q[plant.m :] = 0
    across = np.where(np.arange(plant.n) == plant.n - 1, 1.0, 0.0)
    skeleton = make_skeleton(plant)
    h = 1e-5

    lines, moved = skeleton.lines(q), skeleton.displacements(q, across)
    slope = [
        (after - before) / (2 * h)
        for after, before in zip(
            skeleton.lines(q + h * across), skeleton.lines(q - h * across), strict=True
        )
    ]
    # the last link bends in its last plane only; central differences err by h^2
    assert np.hstack(moved) == pytest.approx(np.hstack(slope), abs=1e-8)
    axis = lines[-1][:, -2] - lines[-1][:, 1]
    assert axis @ moved[-1][:, 1:-1] == pytest.approx(np.zeros(lines[-1].shape[1] - 2), abs=1e-12)
    assert np.abs(moved[-1]).max() > 0.1


@pytest.fixture(scope="module")
def sagging(tmp_path_factory):
    """Two loops on an arm that sags under gravity where its motion ends."""
    path = tmp_path_factory.mktemp("designs") / "hub-slow.toml"
    path.write_text(
        'summary = "Slow"\nsource = "flexctl"\nmodel = "single-link-hub"\nmethod = "joint-pd"\n'
        '[reference]\nkind = "cycloid"\nfrom = [0.0]\nto = [0.5]\nduration = 2.0\n'
        "[gains]\nGp = 60.0\nGv = 10.0\n[loop]\nduration = 4.0\n"
    )
    settings = ["gravity=[0, -9.81, 0]", "links.EI=*4"]
    arm = apply_settings(load_model("single-link-hub"), settings)
    one, short = BasisChoice(order=1), load_design(str(path))
    soft = short.gains.model_copy(update={"Gp": (6.0,), "Gv": (0.5,)})
    soft = short.model_copy(update={"name": "hub-soft", "gains": soft})
    return compare(arm, [soft, short], truth_basis=one, design_basis=one, baseline=False)


def thick_lines(comparison):
    evaluations = in_order(comparison)
    faces = looks([e.name for e in comparison.evaluations])
    with styled():
        figure = new_figure(5, 3)
        plot_tip_error(figure, make_curves(evaluations, faces))
    (axes,) = figure.axes
    names = comparison.ranking
    return {line.get_label(): line for line in axes.lines if line.get_label() in names}


@pytest.mark.slow  # takes long
def test_the_thick_tip_error_begins_at_the_residual_of_the_table(sagging):
    lines = thick_lines(sagging)

    for e in sagging.evaluations:
        sag = np.linalg.norm(e.trajectory.rest_tip - e.trajectory.desired_tip[:, -1])
        assert sag > 1e-3
        drawn, table = lines[e.name].get_ydata()[0], 1e3 * e.residual.tip_error_max
        # that of the table is a peak between samples, which are 4 ms apart
        assert drawn <= table * (1 + 1e-9)
        assert drawn == pytest.approx(table, rel=1e-4)


@pytest.mark.slow
def test_the_thick_tip_error_leaves_out_the_last_tenth_of_the_rest(sagging):
    lines = thick_lines(sagging)

    # the motion ends at 2 s, the run at 4 s; samples are 4 ms apart
    ends = [line.get_xdata()[-1] for line in lines.values()]
    assert ends == pytest.approx([3.8, 3.8], abs=0.005)


@pytest.mark.slow
def test_legends_name_designs_in_the_order_of_the_ranking(sagging):
    assert sagging.ranking == ("hub-slow", "hub-soft")
    assert [e.name for e in sagging.evaluations] == ["hub-soft", "hub-slow"]
    assert tuple(thick_lines(sagging)) == sagging.ranking


@pytest.fixture(scope="module")
def jumping():
    """A shaped set point, and one that counts as arrived later, with another band."""
    table = load_design("hub-pd").table()
    jump = {"kind": "setpoint", "from": [0.0], "to": [0.5]}
    shaped, late = (
        Design.model_validate(
            table | {"name": name, "reference": jump | own, "loop": loop, "expect": {}}
        )
        for name, own, loop in (
            ("shaped", {"shaper": {"kind": "ZV", "frequency": "mode1"}}, {"settle_within": 5e-3}),
            ("late", {"duration": 0.4}, {"settle_within": 2e-4}),
        )
    )
    one, arm = BasisChoice(order=1), load_model("single-link-hub")
    return compare(arm, [shaped, late], truth_basis=one, design_basis=one, baseline=False)


def test_the_tip_error_of_jumps_is_from_rest_where_the_table_begins_to_judge(jumping):
    lines = thick_lines(jumping)

    for e in jumping.evaluations:
        x, y = lines[e.name].get_data()
        assert x[0] == pytest.approx(e.trajectory.motion_end, abs=1e-9)
        assert y[0] == pytest.approx(1e3 * e.residual.tip_error_max, rel=1e-6)
    shaped, late = (e.trajectory.motion_end for e in jumping.evaluations)
    assert late == 0.4
    assert 0.1 < shaped < 0.4  # half a period of the first mode


def test_each_settling_band_is_drawn_and_named(jumping, tmp_path):
    first, second = jumping.evaluations
    apart = plot_comparison((first, second), jumping.true_arm, comparison_looks(jumping))
    alike = replace(second, settle_within=first.settle_within)
    same = plot_comparison((first, alike), jumping.true_arm, comparison_looks(jumping))

    assert settled_words(apart) == ["within 5 mm (shaped)", "within 0.2 mm (late)"]
    assert settled_words(same) == ["within 5 mm"]
    save(jumping, tmp_path / "report.html")
    report = (tmp_path / "report.html").read_text(encoding="utf-8")
    words = [f"{1e3 * e.settle_within:g} mm ({e.name})" for e in jumping.ranked]
    assert f"green band, at {words[0]}, {words[1]};" in report


def settled_words(figure):
    words = [text.get_text() for text in figure.findobj(Text)]
    return [one.removeprefix("settled: ") for one in words if one.startswith("settled: ")]


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"failed": "it falls", "not_computed": {"margins": "no root"}}, "failed"),
        ({"stability": None}, "not computed"),
        ({"not_computed": {"margins": "no root"}}, "not computed"),
        ({"rest": None}, "open loop"),  # stable or not
        ({}, "not stable"),
    ],
)
def test_why_a_design_has_no_margins_is_drawn_in_their_place(changes, why):
    e = evaluation("one", **{"margins": None, "rest": resting()} | changes)
    with styled():
        figure = new_figure(10, 2)
        plot_margins(figure, [e], looks(["one"]))

    words = [text.get_text() for text in figure.findobj(Text)]
    assert words.count(f"none: {why}") == 4


def test_a_sliding_beam_keeps_its_whole_length():
    plant, _ = bent("theodore-ghosal-rrp")
    q = plant.pose({"joint3": 0.4})
    skeleton = make_skeleton(plant)

    (hidden,) = skeleton.hidden_lines(q)
    free = np.linalg.norm(np.diff(skeleton.lines(q)[2][:, 1:-1]), axis=0).sum()
    assert np.linalg.norm(hidden[:, 0] - hidden[:, 1]) + free == pytest.approx(1.3)


@pytest.mark.parametrize(("model", "planar"), list(zip(ARMS, [True, True, False], strict=True)))
def test_planar_arms_are_seen_from_above(model, planar):
    plant, q = bent(model)

    assert is_planar(make_skeleton(plant), [q]) is planar


@pytest.mark.slow_but("inspect-svg")
@pytest.mark.parametrize("kind", ["svg", "png", "pdf"])
@pytest.mark.parametrize("command", ["inspect", "simulate"])
def test_a_figure_is_written_in_every_format(flexctl, tmp_path, command, kind):
    words = {
        "inspect": ["single-link-hub"],
        "simulate": ["single-link-hub", "hub-pd", "-m", "1", "--truth-modes", "1"],
    }
    path = tmp_path / f"figure.{kind}"

    assert flexctl(command, *words[command], "--plot", path).status == 0
    assert path.stat().st_size > 8000
    assert list(tmp_path.iterdir()) == [path]


def test_a_spatial_arm_is_drawn_with_its_modes(flexctl, tmp_path):
    path = tmp_path / "arm.svg"

    assert flexctl("inspect", "theodore-ghosal-rrp", "--plot", path).status == 0
    assert path.read_text().count("<path") > 50


def test_the_same_figure_gives_the_same_file(tmp_path):
    for name in ("a.svg", "b.svg"):
        with styled():
            figure = new_figure(3, 2)
            figure.subplots().plot([0, 1], [0, 1])
        save_figure(figure, tmp_path / name)

    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_a_figure_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "a.svg"
    path.write_text("old")
    figure = new_figure(3, 2)
    monkeypatch.setattr(figure, "savefig", lambda *_words, **_options: 1 / 0)

    with pytest.raises(ZeroDivisionError):
        save_figure(figure, path)

    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_every_design_keeps_its_colour_whatever_the_baseline():
    alone, beside = looks(["a", "b"]), looks(["a", "b", "joint-pd"], baseline="joint-pd")

    assert {name: beside[name] for name in alone} == alone
    assert beside["joint-pd"].colour == BASELINE


@pytest.mark.parametrize(
    "spring", ["", "flexible_joint = { rotor_inertia = 0.1, stiffness = 9.0 }"]
)
def test_a_rigid_link_is_drawn_where_its_mass_is_and_not_only_to_its_tip(flexctl, tmp_path, spring):
    path = tmp_path / "rod.toml"
    path.write_text(
        'summary = "A rod"\nsource = "flexctl"\ngravity = [0.0, 0.0, 0.0]\n[[link]]\n'
        f'joint = "revolute"\nlength = 0.7\nmass_per_length = 2.0\n{spring}\n'
    )
    plant = assemble_plant(load_model(str(path)), BasisChoice(order=1), interpreted=True)

    (line,) = make_skeleton(plant).lines(np.zeros(plant.n))

    assert np.ptp(line, axis=1) == pytest.approx([0.7, 0, 0])
    assert line[:, -1] == pytest.approx(plant.tip(np.zeros(plant.n)))
    assert flexctl("inspect", path, "--plot", tmp_path / "rod.svg").status == 0


def test_the_legend_names_designs_whose_run_failed(sagging):
    evaluations = [replace(sagging.evaluations[0], trajectory=None), sagging.evaluations[1]]
    faces = looks([e.name for e in evaluations])

    figure = plot_comparison(evaluations, load_model("single-link-hub"), faces)

    (legend,) = figure.subfigs[0].legends
    assert [text.get_text() for text in legend.get_texts()] == [e.name for e in evaluations]


def test_designs_without_an_equilibrium_are_drawn_too(sagging):
    first, second = sagging.evaluations
    nowhere = np.full_like(first.stability.path_abscissa, np.nan)
    falls = replace(first, stability=replace(first.stability, path_abscissa=nowhere), margins=None)
    falls = replace(falls, failed="it falls")
    unheld = replace(second, stability=None, margins=None, trajectory=None, failed="too weak")
    arm = load_model("single-link-hub")
    for evaluations in ([falls, unheld], [unheld]):
        faces = looks([e.name for e in evaluations])
        figure = plot_comparison(evaluations, arm, faces)
        figure.draw_without_rendering()
        words = [text.get_text() for text in figure.findobj(Text)]
        assert words.count("no equilibrium to judge") == 1
        assert words.count("none: failed") == 4 * len(evaluations)
