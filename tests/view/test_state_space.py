"""A controller from MATLAB on the command line: a design file with its matrices beside it."""

import json

import numpy as np
import pytest
import scipy.io

DESIGN = """
summary = "PD with a filtered derivative, from elsewhere"
source = "own"
model = "single-link-hub"
method = "state-space"
[basis]
order = 1
[reference]
kind = "cycloid"
from = [0.0]
to = [0.5]
duration = 1.0
[state_space]
file = "pd.mat"
measures = ["joint1"]
sample_time = 0.002
"""
# 20 e + 1200 (e - z), z+ = z + 0.4 (e - z): the derivative filtered at 200 rad/s
MATRICES = {"A": [[0.6]], "B": [[0.4]], "C": [[-1200.0]], "D": [[1220.0]], "Ts": 0.002}


@pytest.fixture
def design(tmp_path):
    scipy.io.savemat(tmp_path / "pd.mat", MATRICES)
    path = tmp_path / "matlab-pd.toml"
    path.write_text(DESIGN)
    return path


def answer(said):
    assert said.status == 0, said.err
    return json.loads(said.out)


def test_it_is_compared_with_designs_of_the_catalogue(flexctl, design):
    words = ("compare", "single-link-hub", design, "hub-pd", "-m", "1", "--truth-modes", "1")

    found = answer(flexctl(*words, "--json"))

    own = found["evaluations"][0]
    assert [e["design"] for e in found["evaluations"]] == ["matlab-pd", "hub-pd", "joint-pd"]
    assert own["method"] == "state-space"
    assert own["failed"] is None
    assert own["stability"]["stable"] is True
    assert own["not_computed"].keys() == {"margins.min_sampling_rate"}
    assert found["provenance"]["gains"]["matlab-pd"]["C"] == MATRICES["C"]
    assert found["provenance"]["designs"]["matlab-pd"]["state_space"]["file"] == "pd.mat"


def test_its_run_begins_with_its_states_at_zero(flexctl, design):
    words = ("simulate", "single-link-hub", design, "--truth-modes", "1", "--at", "0.002,1.5")

    found = answer(flexctl(*words, "--json"))

    assert np.abs(found["samples"][1]["joint"][0] - 0.5) < 0.05
    assert found["samples"][0]["tau"][0] < 1e-3


@pytest.mark.parametrize("word", ["margin", "track", "count"])
def test_every_command_takes_it(flexctl, design, word):
    said = flexctl(word, "single-link-hub", design, "-m", "1", "--json")

    assert answer(said)["model"] == "single-link-hub"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("pd.mat", "other.mat"), "other.mat: expected a file, got nothing (no such file)"),
        (
            ("0.002", "0.001"),
            "pd.mat: Ts: expected 0.001, as state_space.sample_time of the design, got 0.002",
        ),
        (('"joint1"', '"joint3"'), "state_space.measures[1]: expected a signal of single-link-hub"),
        (('"joint1"', '"joint1", "tip_x"'), "pd.mat: B: expected 1 x 2 (states by entries of"),
    ],
)
def test_what_does_not_fit_is_one_line(flexctl, design, change, message):
    design.write_text(DESIGN.replace(*change))

    said = flexctl("compare", "single-link-hub", design)

    assert said.status == 2
    assert message in said.err
    assert said.err.count("\n") == 1


@pytest.mark.parametrize("word", ["bandwidth", "gains"])
def test_charts_over_gains_say_that_there_are_none(flexctl, design, word):
    options = ("--chart", "gains") if word == "gains" else ("--need", "0.1")

    said = flexctl("margin", "single-link-hub", design, "-m", "1", "--truth-modes", "1", *options)

    assert "Traceback" not in said.err
    if word == "gains":
        assert said.status == 2
        assert "gains: expected a table, got nothing (method state-space)" in said.err


@pytest.mark.parametrize("folder", [False, True])
def test_a_sweep_refuses_matrices_that_cannot_be_read(flexctl, design, folder):
    matrices = design.with_name("pd.mat")
    matrices.unlink()
    if folder:
        matrices.mkdir()
    said = flexctl("sweep", "single-link-hub", design, "--vary", "payload.mass=1,2")

    assert (said.status, said.out) == (2, "")
    got = "a folder" if folder else "nothing (no such file)"
    assert said.err == f"flexctl: {matrices}: expected a file, got {got}\n"
