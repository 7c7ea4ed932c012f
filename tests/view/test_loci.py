"""`flexctl track`: branches of eigenvalues as a person and as a script get them."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from matplotlib.text import Text

from flexctl.control.controller import design_controller
from flexctl.loci.loci import eigenvalue_loci
from flexctl.loci.sources import at_rest
from flexctl.loop.closed_loop import close_loop
from flexctl.loop.linear import linearise_loop
from flexctl.model.lookup import load_design, load_model
from flexctl.model.record import BasisChoice
from flexctl.model.settings import apply_settings
from flexctl.view.figures.loci import plot_tracking

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


def test_the_answer_has_the_keys_of_the_contract(asked):
    found, _ = asked

    assert {"t", "branches", "frozen"} <= set(found)
    assert {"label", "re", "im", "participation"} <= set(found["branches"][0])
    assert len(found["t"]) == len(found["branches"][0]["re"]) == 5
    assert found["motion"] == "run"


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


def test_the_figure_names_its_branches():
    design = load_design("two-link-decoupling")
    arm = load_model("planar-two-link")
    closed = close_loop(design_controller(arm, design), arm, design.basis)
    found = eigenvalue_loci(
        at_rest(closed), np.linspace(0, closed.controller.reference.duration, 5)
    )
    figure = plot_tracking(found, found, {"design": "law", "model": "arm"})
    figure.draw_without_rendering()
    words = " ".join(text.get_text() for text in figure.findobj(Text))

    assert "law on arm: closed-loop eigenvalues" in words
    assert "link1.y.1" in words


def test_a_person_reads_the_branches_and_what_grows_most(flexctl):
    heard = flexctl(*MOVING)

    assert (heard.status, heard.err) == (0, "")
    assert "The same frozen at rest" in heard.out
    assert "All branches are joined with certainty." in heard.out


def test_a_number_of_the_arm_is_varied(flexctl):
    heard = flexctl("track", *LOOP[:4], "--points", "3", "--over", "payload.mass=1:1.2", "--json")
    found = json.loads(heard.out)
    swings = [one for one in found["branches"] if one["im"][0] > 1]

    assert found["s"] == pytest.approx([1.0, 1.1, 1.2])
    assert found["t"] is None
    assert found["frozen"] == []
    assert any(one["frequency"][0] > 1.001 * one["frequency"][-1] for one in swings)


@pytest.mark.slow  # takes long
def test_what_only_the_truth_has_is_unknown_to_the_law_over_a_number(flexctl):
    words = ("--over", "payload.mass=1:1.2", "--points", "2", "--truth-set", "payload.mass=*1.5")
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

    assert "No eigenvalue depends on" in flexctl("track", *LOOP[:4], *words).out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--over", "payload.mass=2"), "--over: expected KEY=FROM:TO, got 'payload.mass=2'"),
        (("--over", "payload.mass=2:1"), "--over: expected FROM below TO, got 'payload.mass=2:1'"),
        (("--over", "a=x:2"), "--over: expected a finite number, got 'x'"),
        (("--over", "a.b=1:2"), "expected"),
        (
            ("--motion", "rest", "--over", "payload.mass=1:2"),
            "--motion: expected none with --over, got rest",
        ),
        (("--beside", "4"), "--beside: expected such as e2 or m2:e8, got '4'"),
        (("--beside", "m2:"), "--beside: expected such as e2 or m2:e8, got 'm2:'"),
        (("--beside", "m0"), "--beside: expected such as e2 or m2:e8, got 'm0'"),
        (("--out", "x.txt"), "--out: expected a file ending in .csv or .nc or .json, got x.txt"),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_line(flexctl, words, said):
    heard = flexctl(*MOVING, *words)

    assert (heard.status, heard.out) == (2, "")
    assert said in heard.err
    assert heard.err.count("\n") == 1


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
    assert "expected a reference that moves, or --over KEY=FROM:TO, got a set point" in heard.err


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


def test_what_is_alike_names_a_branch_and_how_far_it_is(side):
    found, _ = side
    other = found["beside"][1]
    own = {one["label"]: one for one in found["branches"] if one["im"][0] > 0}
    twin = next(one for one in other["alike"] if one["label"] == "link1.y.1")
    k = twin["branch"][2]

    ratio = other["branches"][k]["im"][2] / own[twin["label"]]["im"][2]
    assert twin["ratio"][2] == pytest.approx(ratio)
    assert ratio == pytest.approx(1, abs=0.1)


def test_the_csv_file_has_every_discretisation(side):
    found, paths = side
    header, *rows = csv.reader(paths["csv"].read_text().splitlines())
    k = next(k for k, name in enumerate(header) if name.startswith("beside2 0 "))

    assert [float(row[k]) for row in rows] == found["beside"][1]["branches"][0]["re"]


NAMES = ("1 mode, law on 2 modes", "1 element", "2 elements, law on 1 mode")


def test_the_figure_says_which_marks_are_which(side):
    words = side[1]["svg"].read_text()

    assert all(f"<!-- {name} -->" in words for name in NAMES)


def test_a_person_reads_how_far_discretisations_are_apart(flexctl):
    heard = flexctl(*MOVING, "--motion", "rest", "--beside", "e1")

    assert (heard.status, heard.err) == (0, "")
    assert "Imaginary parts on 1 element, compared with these" in heard.out
    assert "1 element: " in heard.out
