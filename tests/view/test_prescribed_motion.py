"""A recorded motion replayed from the command line."""

import json

import numpy as np
import pytest

DESIGN = """\
summary = "Recorded at the motors"
source = "flexctl"
model = "one-spring"
method = "prescribed-motion"

[reference]
kind = "csv"
file = "motion.csv"

[loop]
duration = 1.2
"""


@pytest.fixture
def words(tmp_path, sprung):
    """Arm and design as a person types them; the second joint has a spring."""
    t = np.linspace(0.0, 1.0, 41)
    s = t**3 * (10 - 15 * t + 6 * t**2)
    table = np.array([t, 0.3 * s, -0.2 * s]).T
    header = "t,joint1,joint2"
    np.savetxt(tmp_path / "motion.csv", table, delimiter=",", header=header, comments="")
    (tmp_path / "replay.toml").write_text(DESIGN)
    return sprung["one-spring"], tmp_path / "replay.toml", "-m", "1", "--truth-modes", "1"


def test_a_recorded_motion_is_replayed_without_drift(flexctl, words):
    said = flexctl("simulate", *words, "--json", "--at", "0.5,1.2")
    assert said.status == 0, said.err
    answer = json.loads(said.out)
    middle, end = answer["samples"]

    assert max(answer["drift"]) < 1e-9
    # joint1 is rigid; of joint2 the rotor follows
    assert middle["joint"][0] == pytest.approx(0.15, abs=1e-6)
    assert middle["rotor"] == pytest.approx([-0.1], abs=1e-6)
    assert middle["tau"][0] != 0
    assert abs(end["link_tip"]["link1"]["y"]) > 0
    assert middle["tip_error"] > 0


def test_a_person_reads_the_drift_and_what_is_assumed(flexctl, words):
    said = flexctl("simulate", *words, "--at", "0.5").out
    text = " ".join(said.split())

    assert "off the motion by" in text
    assert "the rotors of flexible joints, and rigid joints, follow the reference exactly" in text
    assert "the law is continuous" not in text


@pytest.mark.slow
def test_a_verdict_takes_it_for_an_open_loop(flexctl, words):
    said = flexctl("compare", *words, "--json")
    (found,) = json.loads(said.out)["evaluations"]

    assert found["failed"] is None
    assert found["margins"] is None
    assert found["stability"]["stable"] in (True, "marginal")
    assert found["tracking"]["tip_error_max"] > 0


@pytest.mark.parametrize("command", ["margin", "tune", "bode", "track"])
def test_what_needs_a_loop_refuses_it_in_one_line(flexctl, words, command):
    more = {"tune": ["--free", "gains.Gp=1:2"], "track": ["--over", "payload.mass=0.1:0.2"]}
    said = flexctl(command, *words[:2], *more.get(command, []))

    assert said.status in (2, 3)
    assert len(said.err.strip().splitlines()) == 1
