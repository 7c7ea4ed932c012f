"""Pipes, shells and files of other programs: what is said there, and how wide."""

import io
import json
import logging
import shlex
import subprocess
import sys

import pytest

from flexctl.errors import InputError
from flexctl.view.options import CliOptions
from flexctl.view.output import Result, console, deliver, number, numbers
from flexctl.view.save import _write


@pytest.mark.parametrize(("columns", "width"), [("60", 60), ("", 140), ("wide", 140)])
def test_a_pipe_is_as_wide_as_columns_says(columns, width, monkeypatch):
    monkeypatch.setenv("COLUMNS", columns)

    assert console().width == width


@pytest.mark.parametrize("name", ["FORCE_COLOR", "TTY_COMPATIBLE"])
def test_a_pipe_that_is_to_have_colours_is_as_wide_as_any(name, monkeypatch):
    monkeypatch.setenv(name, "1")

    assert console().width == 140


@pytest.mark.parametrize(
    ("as_json", "said"),
    [(True, '"a": "\\u03b6 \\udcff"'), (False, "? = ?")],
)
def test_what_standard_output_has_no_characters_for_ends_nothing(as_json, said, monkeypatch):
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", out)
    result = Result(answer={"a": "\u03b6 \udcff"}, table=lambda: "\u03b6 = \udcff")
    deliver(result, CliOptions(json=as_json), ())

    assert said in out.buffer.getvalue().decode("ascii")


def test_the_name_of_a_file_may_be_no_text(arm, flexctl, tmp_path):
    path = tmp_path / "out\udcff.json"
    said = flexctl("inspect", arm, "-m", "1", "--json", "--out", path)

    assert (said.status, said.err) == (0, "")
    for text in (said.out, path.read_text("utf-8")):
        assert json.loads(text)["provenance"]["command"].endswith("--out 'out\\udcff.json'")


def test_a_file_of_text_that_is_none_is_one_line_and_leaves_the_old_one(tmp_path):
    path = tmp_path / "own.toml"
    path.write_text("old")
    with pytest.raises(InputError, match=r"own.toml: cannot be written: 'utf-8'"):
        _write(path, "\udcff")

    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_place_whose_name_is_too_long_is_one_line(arm, flexctl):
    said = [
        flexctl("inspect", arm, "-m", "1", "--out", f"{'a' * 300}/out.json"),
        flexctl("inspect", f"{'a' * 300}.toml"),
        flexctl("compare", arm, "hub-pd", "--worst", f"{'a' * 300}/b", "--scatter", "gravity=1,2"),
    ]

    assert [(one.status, one.out, one.err.count("\n")) for one in said] == [(2, "", 1)] * 3


def test_tables_in_a_pipe_keep_to_columns(flexctl, monkeypatch):
    monkeypatch.setenv("COLUMNS", "70")

    assert max(map(len, flexctl("list").out.splitlines())) <= 70


@pytest.mark.parametrize(
    ("asked", "words", "said"),
    [
        ("bash_source", "", "_flexctl_completion() {"),
        ("bash_complete", "flexctl com", "plain,compare"),
        ("bash_complete", "flexctl compare --rep", "plain,--report"),
    ],
)
def test_a_shell_that_asks_what_may_follow_is_told(asked, words, said, flexctl, monkeypatch):
    monkeypatch.setenv("_FLEXCTL_COMPLETE", asked)
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(max(len(words.split()) - 1, 0)))
    found = flexctl()

    assert (found.status, found.err) == (0, "")
    assert found.out.splitlines()[0] == said


ARM = """
summary = "One link"
source = "flexctl"
gravity = [0.0, 0.0, 0.0]
[[link]]
joint = "revolute"
length = 0.8
mass_per_length = 0.5
EI = { y = 30.0 }
damping_ratio = 0.02
"""


@pytest.fixture
def arm(tmp_path):
    path = tmp_path / "arm.toml"
    path.write_text(ARM)
    return path


@pytest.mark.slow_but(
    "link1.EI.y-3e-9-min a period",
    "link1.damping_ratio-0.5-link1.damp*",
    "base.rotation_vector-[[]0.0, 0.0, 90*",
)
@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("link1.EI.y", "3e7", "arm.toml: link1.EI.y: 3e+07 N m^2, with which the clamped link"),
        ("link1.EI.y", "3e-9", "min a period"),
        ("link1.dh.alpha", "90.0", "link1.dh.alpha: 90 rad, 14.3 turns (90 deg are 1.571 rad)"),
        ("link1.dh.theta", "-45.0", "(-45 deg are -0.7854 rad)"),
        ("link1.damping_ratio", "0.5", "link1.damping_ratio: 0.5, 50 % of critical"),
        ("link1.mass_per_length", "2e4", "link1.mass_per_length: 20000 kg/m"),
        ("gravity", "[0.0, -9810.0, 0.0]", "gravity: 9810 m/s^2, 1e+03 times the earth's"),
        ("base.rotation_vector", "[0.0, 0.0, 90.0]", "base.rotation_vector: 90 rad"),
    ],
)
def test_an_odd_number_is_a_warning_in_one_line_and_in_the_json(key, value, told, arm, flexctl):
    said = flexctl("inspect", arm, "-m", "1", "--set", f"{key}={value}", "--json")
    lines = [line for line in said.err.splitlines() if told in line]

    assert said.status == 0
    assert len(lines) == 1
    assert lines[0].startswith(f"flexctl: warning: {arm}: {key}: ")
    assert lines[0].removeprefix("flexctl: warning: ") in json.loads(said.out)["warnings"]


def test_a_plausible_arm_warns_of_nothing(arm, flexctl):
    said = flexctl("inspect", arm, "-m", "1", "--json")

    assert (said.err, json.loads(said.out)["warnings"]) == ("", [])


def test_a_motion_in_degrees_is_a_warning(arm, flexctl, tmp_path):
    design = tmp_path / "gains.toml"
    design.write_text(
        'summary = "Degrees"\nsource = "flexctl"\nmodel = "arm"\nmethod = "joint-pd"\n'
        '[reference]\nkind = "cycloid"\nfrom = [0.0]\nto = [90.0]\nduration = 1.0\n'
        "[gains]\nGp = 10.0\nGv = 3.0\n"
    )
    said = flexctl("count", arm, design, "-m", "1")

    told = "reference.to: 90 rad, 14.3 turns (90 deg are 1.571 rad) at joint1"
    assert said.err == f"flexctl: warning: {design}: {told}\n"


NOT_THERE = ["simulate", "no-such-arm", "no-such-design"]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="redirections of a Unix shell")
@pytest.mark.parametrize(
    ("words", "streams", "status"),
    [
        (["list", "--json"], "<&- >&- 2>&-", 0),
        (["list", "--json", "--require", "models.0.name==1"], ">&- 2>&-", 1),
        (NOT_THERE, "2>/dev/full", 2),
        (["list"], ">/dev/full 2>/dev/full", 3),
    ],
)
def test_streams_that_are_closed_or_full_change_no_status(words, streams, status):
    command = shlex.join([sys.executable, "-m", "flexctl", *words])
    done = subprocess.run(f"{command} {streams}", shell=True, capture_output=True, check=False)

    assert (done.returncode, done.stdout, done.stderr) == (status, b"", b"")


def test_libraries_that_log_are_not_heard(flexctl):
    """Matplotlib, where a user has no home, in three lines."""
    flexctl("list")

    assert not logging.getLogger("matplotlib.font_manager").isEnabledFor(logging.WARNING)


def test_help_takes_less_than_its_libraries_would():
    """The watch for interrupts and completion must not cost what imports do."""
    code = (
        "import sys, flexctl.view.cli; sys.exit(len({'numpy', 'casadi', 'rich'} & {*sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False)

    assert done.returncode == 0


def test_zero_has_no_minus_sign():
    assert numbers([-0.0, 0.0, -1e-30, None]) == "0  0  -1e-30  -"
    assert number(-0.05, 1) == "-0.05"
