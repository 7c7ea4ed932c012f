"""Statuses and streams of the command line."""

import json
import os
import signal
import subprocess
import sys

import pytest

from flexctl.errors import ComputationError, DesignError
from flexctl.model.lookup import list_designs, list_models, load_model, model_text
from flexctl.model.settings import apply_settings
from flexctl.view import cli
from flexctl.view.commands.simulation import _close
from flexctl.view.options import SimulateOptions
from flexctl.view.output import replacing
from flexctl.view.request import load_arm, true_arm

ARM = ("single-link-hub", "hub-pd", "-m", "1")
QUICK = (*ARM, "--truth-modes", "1")
TWO_MODES = "truth={kind='modes', order=2}"
OVER_A_GAIN = ("--over", "gains.Gp=10:20", "--points", "2")

BAD_INPUT = {
    "no command": [],
    "unknown command": ["judge"],
    "unknown option": ["list", "--jsn"],
    "no model": ["inspect"],
    "unknown model": ["inspect", "single-link-hubb"],
    "missing file": ["inspect", "no/such/file.toml"],
    "no modes": ["inspect", "single-link-hub", "-m", "0"],
    "too many modes": ["inspect", "single-link-hub", "-m", "500"],
    "modes that are no number": ["inspect", "single-link-hub", "-m", "two"],
    "modes and elements": ["inspect", "single-link-hub", "-m", "2", "-e", "2"],
    "truth modes and elements": ["simulate", *QUICK, "--truth-elements", "2"],
    "truth dropped below zero": ["simulate", *QUICK, "--truth-drop-above", "-1"],
    "misspelt key": ["inspect", "single-link-hub", "--set", "link1.lenght=1"],
    "negative length": ["inspect", "single-link-hub", "--set", "link1.length=-1"],
    "mass that is no number": ["inspect", "single-link-hub", "--set", "payload.mass=nan"],
    "damping of more than all": ["inspect", "single-link-hub", "--damping", "1.5"],
    "damping that is no number": ["inspect", "single-link-hub", "--damping", "nan"],
    "unknown coordinate": ["inspect", "single-link-hub", "--pose", "joint7=1"],
    "pose that is no number": ["inspect", "single-link-hub", "--pose", "joint1=nan"],
    "pose without value": ["inspect", "single-link-hub", "--pose", "joint1"],
    "sliding modes without modes": ["inspect", "theodore-ghosal-rrp", "--sliding", "exact"],
    "sliding elements": ["inspect", "theodore-ghosal-rrp", "-e", "2", "--sliding", "exact"],
    "unknown sliding modes": ["inspect", "theodore-ghosal-rrp", "-m", "1", "--sliding", "all"],
    "beam out of its modes": [
        *("inspect", "theodore-ghosal-rrp", "-m", "1", "--sliding", "exact"),
        *("--pose", "joint3=0.05"),
    ],
    "beam out of its hub": ["inspect", "theodore-ghosal-rrp", "--pose", "joint3=9"],
    "design of another arm": ["simulate", "single-link-hub", "rrp-stiff"],
    "times that are no numbers": ["simulate", *QUICK, "--at", "0.1,soon"],
    "times before the start": ["simulate", *QUICK, "--at=-0.1"],
    "times after the end": ["simulate", *QUICK, "--at", "2", "--duration", "1"],
    "endless run": ["simulate", *QUICK, "--duration", "inf"],
    "no designs": ["compare", "single-link-hub"],
    "a design twice": ["compare", "single-link-hub", "hub-pd", "hub-pd"],
    "unknown kind of figure": ["inspect", "single-link-hub", "--plot", "arm.bmp"],
    "unknown kind of film": ["simulate", *QUICK, "--animate", "run.avi"],
    "folder that is not there": ["inspect", "single-link-hub", "--out", "no/such/arm.json"],
    "requirement without sign": ["inspect", "single-link-hub", "--require", "mass"],
    "requirement of no number": ["inspect", "single-link-hub", "--require", "mass<nan"],
    "fewer poses of the motion than none": ["margin", *ARM, "--path", "-1"],
}


@pytest.mark.parametrize("words", BAD_INPUT.values(), ids=BAD_INPUT)
def test_bad_input_is_one_line_and_status_2(flexctl, words):
    said = flexctl(*words)

    assert said.status == 2
    assert said.out == ""
    assert said.err.startswith("flexctl: ")
    assert said.err.count("\n") == 1


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ("frequencies_lokced.0>1", "frequencies_locked"),
        ("tip<1", "expected a key of one value, got tip, which holds tip.0, tip.1, tip.2"),
        ("basis.kind<1", "expected a key of a number, got modes"),
    ],
)
def test_a_requirement_that_no_answer_has_is_told_below_the_answer(flexctl, condition, words):
    said = flexctl(
        "inspect", "single-link-hub", "--json", "--require", "mass<0.1", "--require", condition
    )

    assert said.status == 2
    assert json.loads(said.out)["mass"] == pytest.approx(0.79)  # a search may have taken long
    first, second = said.err.splitlines()
    assert first == "flexctl: required mass<0.1 does not hold: it is 0.79"
    assert second.startswith("flexctl: --require")
    assert words in second


@pytest.mark.parametrize(
    "condition",
    ["mass<0.8", "mass>=0.79", "model==single-link-hub", "basis.order!=3", "pose.joint1==0"],
)
def test_a_requirement_that_holds_is_status_0(flexctl, condition):
    assert flexctl("inspect", "single-link-hub", "--require", condition).status == 0


def test_a_requirement_that_does_not_hold_is_status_1_and_named(flexctl):
    said = flexctl(
        "inspect", "single-link-hub", "--json", "--require", "mass<0.1", "--require", "mass<1"
    )

    assert said.status == 1
    assert json.loads(said.out)["mass"] == pytest.approx(0.79)
    assert said.err == "flexctl: required mass<0.1 does not hold: it is 0.79\n"


@pytest.mark.parametrize("error", [DesignError, ComputationError])
def test_a_failed_computation_is_one_line_and_status_3(flexctl, monkeypatch, error):
    def fail(*_words):
        raise error("the mode link1.y.1\ncannot be stabilised; lower the gains")

    monkeypatch.setattr("flexctl.view.commands.inspection.inspect_model", fail)
    said = flexctl("inspect", "single-link-hub")

    assert said == (3, "", "flexctl: the mode link1.y.1 cannot be stabilised; lower the gains\n")


def test_a_bug_shows_its_traceback_only_when_asked(flexctl, monkeypatch):
    def fail(*_words):
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr("flexctl.view.commands.inspection.inspect_model", fail)

    assert "Traceback" not in flexctl("inspect", "single-link-hub").err
    assert "Traceback" in flexctl("inspect", "single-link-hub", "--debug").err


@pytest.mark.slow_but("True")
@pytest.mark.parametrize("debug", [False, True])
def test_warnings_of_libraries_are_shown_only_to_debug(debug):
    code = (
        "import sys, warnings, flexctl.view.commands.inspection as room\n"
        "from flexctl.view.cli import run\n"
        "room.inspect_model = lambda *_: (warnings.warn('odd', RuntimeWarning), 1 / 0)\n"
        "run(sys.argv[1:])"
    )
    words = [sys.executable, "-c", code, "inspect", "single-link-hub", *["--debug"] * debug]
    said = subprocess.run(words, capture_output=True, text=True, check=True)

    assert ("RuntimeWarning: odd" in said.stderr) is debug


@pytest.mark.parametrize(
    ("option", "setting"),
    [
        ("--set", "payload.mas=1"),
        ("--set", "payload.mass"),
        ("--truth-set", "payload.mass=*x"),
        ("--truth-set", "links.EIx=*2"),
    ],
)
def test_a_setting_that_is_refused_is_named_with_its_option(flexctl, option, setting):
    said = flexctl("simulate", *QUICK, option, setting)

    assert said.status == 2
    assert f"{option}: " in said.err or f"{option} {setting}: " in said.err


def test_an_interrupt_is_status_130(flexctl, monkeypatch):
    def interrupt(*_words):
        raise KeyboardInterrupt

    monkeypatch.setattr("flexctl.view.commands.inspection.inspect_model", interrupt)

    said = flexctl("inspect", "single-link-hub")

    assert said == (130, "", "flexctl: interrupted, nothing written\n")


def test_an_interrupt_names_what_was_written_before(flexctl, monkeypatch, tmp_path):
    def interrupt(*_words):
        raise KeyboardInterrupt

    monkeypatch.setattr("flexctl.view.output.save_figure", interrupt)
    kept = tmp_path / "arm.json"
    said = flexctl("inspect", "single-link-hub", "--out", kept, "--plot", tmp_path / "arm.svg")

    assert said == (130, "", f"flexctl: interrupted, {kept} written\n")
    assert list(tmp_path.iterdir()) == [kept]


@pytest.mark.slow
def test_an_interrupted_process_says_so_in_one_line_and_ends_with_130():
    # a child of a background job inherits that interrupts are ignored, which a terminal's does not
    code = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "import sys, time, flexctl.view.commands.inspection as room\n"
        "from flexctl.view.cli import run\n"
        "room.inspect_model = lambda *_: (print('running', flush=True), time.sleep(30))\n"
        "sys.exit(run(['inspect', 'single-link-hub']))"
    )
    words = [sys.executable, "-c", code]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)

    assert (process.returncode, err) == (130, b"flexctl: interrupted, nothing written\n")


def test_an_interrupted_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "run.csv"
    path.write_text("old")

    def write():
        with replacing(path) as draft:
            draft.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write()

    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.slow_but("words1")
@pytest.mark.parametrize("words", [["inspect", "single-link-hub", "--json"], ["list"]])
def test_a_reader_that_goes_away_is_no_error(words):
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as closed:
        done = subprocess.run(
            [sys.executable, "-m", "flexctl", *words],
            stdout=closed,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )

    assert (done.returncode, done.stderr) == (cli.PIPE_CLOSED, "")


@pytest.mark.parametrize("slow", ["numpy", "scipy", "casadi", "control", "matplotlib", "pydantic"])
def test_help_waits_for_no_library(slow):
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "flexctl", "--help"],
        check=True,
        capture_output=True,
        text=True,
    )
    imported = {
        line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.splitlines()
    }

    assert "click" in imported
    assert slow not in imported


@pytest.mark.parametrize("word", ["--help", "--version"])
def test_help_and_version_are_status_0(flexctl, word):
    said = flexctl(word)

    assert said.status == 0
    assert "flexctl" in said.out


def test_list_names_every_file_of_the_catalogue(flexctl):
    found = json.loads(flexctl("list", "--json").out)

    assert [entry["name"] for entry in found["models"]] == [e.name for e in list_models()]
    assert [entry["name"] for entry in found["designs"]] == [e.name for e in list_designs()]
    assert {"name", "summary", "source", "model", "method"} <= set(found["designs"][0])


def test_list_reads_as_a_table(flexctl):
    assert "single-link-hub" in flexctl("list").out


@pytest.fixture
def soft_model(tmp_path):
    """The arm of QUICK as a file of its own, a third as stiff and judged on three modes."""
    path = tmp_path / "soft.toml"
    settings = ("link1.EI=*0.3", "truth={kind='modes', order=3}")
    path.write_text(model_text(apply_settings(load_model("single-link-hub"), settings)))
    return path


def test_eigenvalues_are_judged_on_the_truth_of_the_true_arm(flexctl, soft_model):
    words = ("track", *ARM, *OVER_A_GAIN, "--json")
    own = flexctl(*words, "--truth-model", soft_model)
    set_to = flexctl(*words, "--truth-set", TWO_MODES)
    orders = [json.loads(said.out)["truth"]["order"] for said in (own, set_to)]

    assert orders == [3, 2]


def test_a_run_is_of_the_truth_of_the_true_arm(soft_model):
    own = SimulateOptions(modes=1, truth_model=str(soft_model))
    set_to = SimulateOptions(modes=1, truth_set=(TWO_MODES,))
    loops = [_close(options, *ARM[:2]) for options in (own, set_to)]

    assert [loop.truth.basis.order for loop in loops] == [3, 2]


def test_eigenvalues_are_those_of_the_true_arm_in_a_file_of_its_own(flexctl, soft_model):
    words = ("track", *QUICK, *OVER_A_GAIN, "--json")
    changes = ((), ("--truth-model", soft_model), ("--truth-set", "link1.EI=*0.3"))
    nominal, own, set_to = [
        [branch["im"] for branch in json.loads(flexctl(*words, *more).out)["branches"]]
        for more in changes
    ]

    assert own == set_to
    assert own != nominal


@pytest.mark.parametrize("own", [True, False])
def test_damping_and_foreshortening_hold_for_both_plants(soft_model, own):
    options = SimulateOptions(
        truth_model=str(soft_model) if own else None, damping=0.07, foreshortening=False
    )
    (link,) = true_arm(load_arm("single-link-hub", options), options).links

    assert (link.damping_ratio, link.foreshortening) == ((0.07,), False)


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (("track", *ARM, "--over", "gains.Gp=1:2", "--over", "gains.Gv=1:2"), "--over"),
        (("inspect", ARM[0], "-m", "1", "--modes", "2"), "--modes"),
        (("inspect", ARM[0], "--foreshortening", "--no-foreshortening"), "--foreshortening"),
    ],
)
def test_an_option_of_one_value_is_refused_a_second_time(flexctl, words, option):
    said = flexctl(*words)

    assert (said.status, said.out) == (2, "")
    assert said.err.startswith(f"flexctl: {option}: expected once, got 2 times")


def test_a_flag_may_be_given_again(flexctl):
    assert flexctl("list", "--json", "--json").status == 0


@pytest.mark.parametrize("again", ["joint1=0.2,joint1=0.3", "joint1=0.3"])
@pytest.mark.parametrize("command", [("inspect", ARM[0]), ("margin", *ARM), ("bode", *ARM)])
def test_a_coordinate_of_a_pose_is_refused_a_second_time(flexctl, command, again):
    said = flexctl(*command, "--pose", "joint1=0.2", "--pose", again)

    assert (said.status, said.out) == (2, "")
    assert said.err == "flexctl: --pose: expected each name once, got joint1 twice\n"


def test_a_pose_may_be_given_in_parts(flexctl):
    words = ("inspect", "planar-two-link", "--json", "-m", "1")
    parts = flexctl(*words, "--pose", "joint1=0.5", "--pose", "joint2=0.7")
    pose = json.loads(parts.out)["pose"]

    assert (pose["joint1"], pose["joint2"]) == (0.5, 0.7)
