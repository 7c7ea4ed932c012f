"""A link that twists on the command line: its frequencies, runs, margins, branches, verdicts."""

import json

import numpy as np
import pytest

ELBOW = """
summary = "A horizontal elbow"
source = "own"
gravity = [0.0, 0.0, -9.81]
[[link]]
joint = "revolute"
length = 0.6
mass_per_length = 0.5
EI = { z = 60.0 }
torsion = { GJ = 46.0, polar_inertia = 1e-3 }
damping_ratio = 0.01
joint_inertia = 0.05
[[link]]
joint = "revolute"
dh = { a = 0.5 }
mass_per_length = 0.4
joint_inertia = 0.02
[payload]
mass = 0.2
"""
DESIGN = """
summary = "A turn"
source = "own"
model = "elbow"
method = "decoupling"
basis = { kind = "modes", order = 1 }
reference = { kind = "cycloid", from = [0.0, 1.57], to = [0.3, 1.2], duration = 0.3 }
gains = { Gp = 100.0, Gv = 20.0 }
loop = { duration = 0.5 }
"""


@pytest.fixture
def ask(flexctl, tmp_path):
    """ask(command, *words): the JSON of a command on the elbow and its design."""
    (tmp_path / "elbow.toml").write_text(ELBOW)
    (tmp_path / "turn.toml").write_text(DESIGN)

    def call(command, *words):
        files = [
            tmp_path / "elbow.toml",
            *([] if command == "inspect" else [tmp_path / "turn.toml"]),
        ]
        said = flexctl(command, *map(str, files), "--json", *words)
        assert (said.status, said.err) == (0, "")
        return json.loads(said.out)

    return call


def test_inspect_shows_the_twist_as_a_plane(ask):
    found = ask("inspect", "-m", "2", "--pose", "joint2=1.57")
    w = np.pi * np.array([0.5, 1.5]) * np.sqrt(46.0 / 1e-3) / 0.6
    assert found["link_frequencies"]["link1"]["twist"] == pytest.approx(w)
    assert found["link_frequencies_unloaded"]["link1"]["twist"] == pytest.approx(w)
    assert found["coordinates"][-2:] == ["link1.twist.1", "link1.twist.2"]
    assert any("torsion in link1" in sentence for sentence in found["assumptions"])


def test_inspect_shows_the_load_of_a_line_that_twists_alone(flexctl, tmp_path):
    path = tmp_path / "rod.toml"
    path.write_text(ELBOW.replace("EI = { z = 60.0 }\n", "").replace("mass = 0.2", "mass = 0.0"))
    said = flexctl("inspect", str(path), "--json", "--pose", f"joint2={np.pi / 2}")
    here = json.loads(said.out)["tip_load_here"]["link1"]
    assert here == {"twist": pytest.approx({"M": 0.0, "J": 0.4 * 0.5**3 / 3, "D": 0.0})}


@pytest.mark.slow
@pytest.mark.parametrize("words", [["--truth-modes", "1"], ["--truth-elements", "2"]])
def test_a_run_twists_the_link_as_the_weight_beyond_does(ask, words):
    found = ask("simulate", *words, "--at", "0.5")
    moment = 9.81 * (0.2 * 0.5 + 0.4 * 0.5 * 0.25) * np.sin(1.2)
    twist = found["samples"][0]["link_tip"]["link1"]["twist"]
    # one mode has 8/pi^2 = 0.81 of the static twist; the arm rings about it, and its sag turns it
    assert twist == pytest.approx(-moment * 0.6 / 46.0, rel=0.35)


@pytest.mark.slow
def test_the_margin_knows_the_twist_as_a_part(ask):
    found = ask("margin", "--truth-modes", "1")
    assert "link1.twist.1" in found["structured"]["worst_case"]["errors"]
    assert "link1.twist.1" in found["lemma"]["parts"]


@pytest.mark.slow
def test_branches_are_named_by_their_twist(ask):
    found = ask("track", "--truth-modes", "1")
    shares = {name for branch in found["branches"] for name in branch["participation"]}
    assert "link1.twist.1" in shares


@pytest.mark.slow
def test_a_design_that_knows_no_twist_is_compared_by_what_it_knows(ask):
    found = ask("compare", "--truth-modes", "2", "--no-baseline")
    assert found["evaluations"][0]["failed"] is None
