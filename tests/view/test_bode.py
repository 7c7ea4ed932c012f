"""`flexctl bode` as a person and as a script use it."""

import json
from dataclasses import replace

import numpy as np
import pytest

import flexctl as library
from flexctl.verdict.loop_responses import frequency_response
from flexctl.view.explain import explain
from flexctl.view.figures.bode import gain_frequency, wrapped_phase
from flexctl.view.figures.loop_gains import actuator_responses, plot_loop_gains
from flexctl.view.figures.responses import plot_responses
from flexctl.view.figures.style import looks, new_figure
from flexctl.view.words.responses import channel_name
from tests.loops import hand_made
from tests.numbers_in_words import sources
from tests.view.conftest import QUICK

KINDS = ("bode", "nyquist", "nichols", "sensitivity")
LOOP = {
    "stable": hand_made(2.0, 0.1, 40.0, -50.0, -8.0),
    "unstable": hand_made(2.0, 0.0, 0.0, -50.0, 8.0),
    "sampled": hand_made(2.0, 0.1, 40.0, -50.0, -8.0, sample_time=0.02, delay=0.02),
    "many": hand_made(np.eye(3), np.eye(3), 9 * np.eye(3), -np.eye(3) - 0.3, -np.eye(3) - 0.1),
}


def test_the_answer_holds_what_its_contract_says(flexctl):
    said = flexctl("bode", *QUICK, "--json")
    found = json.loads(said.out)

    assert (said.status, said.err) == (0, "")
    assert list(found["loops"]) == ["tau_joint1", "joint1", "joint1_rate"]
    assert all(len(one["re"]) == len(found["w"]) for one in found["loops"].values())
    assert np.all(np.diff(found["w"]) > 0)
    torque = found["loops"]["tau_joint1"]
    L = np.array(torque["re"]) + 1j * np.array(torque["im"])
    S, T = np.abs(1 / (1 + L)), np.abs(L / (1 + L))
    np.testing.assert_allclose(S, found["sensitivity"], rtol=1e-6)
    np.testing.assert_allclose(T, found["complementary"], rtol=1e-6)
    assert found["sensitivity_peak"] == pytest.approx(S.max(), rel=1e-6)
    assert found["complementary_peak"] == pytest.approx(T.max(), rel=1e-6)
    assert found["sensitivity_peak"] == torque["sensitivity_peak"]


def test_its_margins_are_those_of_compare(flexctl):
    found = json.loads(flexctl("bode", *QUICK, "--json").out)["loops"]["tau_joint1"]
    said = flexctl("compare", *QUICK, "--no-baseline", "--json")
    margins = json.loads(said.out)["evaluations"][0]["margins"]

    assert margins["phase_deg"] == [pytest.approx(found["phase_deg"], rel=1e-9)]
    assert margins["disk"] == pytest.approx(found["disk"], rel=1e-6)
    assert margins["sensitivity_peak"] == pytest.approx(found["sensitivity_peak"], rel=1e-6)
    assert margins["joint_complementary_peak"][0] == pytest.approx(
        found["complementary_peak"], rel=1e-6
    )


def test_a_requirement_of_a_peak_is_checked(flexctl):
    said = flexctl("bode", *QUICK, "--require", "sensitivity_peak<1.01")

    assert said.status == 1
    assert "sensitivity_peak<1.01 does not hold" in said.err


def test_a_person_reads_a_row_for_every_channel(flexctl):
    said = flexctl("bode", *QUICK)

    for words in ("actuator of joint1", "rate of joint1", "crossover [rad/s]", "Ms"):
        assert words in said.out


def test_another_pose_has_another_response(flexctl):
    arm = "theodore-ghosal-rrp", "rrp-stiff", "-m", "1", "--truth-modes", "1"
    one = json.loads(flexctl("bode", *arm, "--json").out)
    other = json.loads(flexctl("bode", *arm, "--json", "--pose", "joint3=0.6").out)

    assert other["pose"]["joint3"] == pytest.approx(0.6)
    assert one["loops"]["tau_joint1"]["phase_deg"] != other["loops"]["tau_joint1"]["phase_deg"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--channel", "joint7"), "--channel: expected actuators, sensors or a channel"),
        (("--pose", "joint7=1"), "--pose: expected joint variables"),
        (("--kind", "root"), "--kind"),
    ],
)
def test_what_is_not_there_is_refused(flexctl, words, says):
    said = flexctl("bode", *QUICK, *words)

    assert said.status == 2
    assert says in said.err
    assert said.err.count("\n") == 1


def test_an_open_loop_is_refused_with_its_file(flexctl):
    said = flexctl("bode", "mohan-saha-canadarm", "mohan-saha-forced", "-m", "1")

    assert said.status == 2
    assert "expected one with feedback" in said.err
    assert "mohan-saha-forced" in said.err


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", LOOP)
def test_every_figure_of_every_loop_is_drawn(kind, name):
    record = frequency_response(LOOP[name])
    figure = plot_responses(record, kind, record.channels)
    figure.canvas.draw()

    shown = [text for axes in figure.axes for text in axes.get_title("left").split("\n")]
    if kind != "sensitivity":
        assert len([title for title in shown if title]) == len(record.channels)
    assert ("not all eigenvalues" in figure.get_suptitle()) is (name == "unstable")


def test_the_figure_is_written(flexctl, tmp_path):
    path = tmp_path / "loop.svg"
    said = flexctl("bode", *QUICK, "--kind", "nyquist", "--channel", "sensors", "--plot", path)

    assert said.status == 0
    assert path.read_text().lstrip().startswith("<?xml")


def test_a_gain_margin_is_marked_where_the_loop_gain_is_real():
    record = frequency_response(LOOP["sampled"])
    channel = record.channels[0]
    at = gain_frequency(record.w, channel, -channel.margins.gain_up_db)
    k = int(np.flatnonzero(record.w == at)[0])

    assert np.abs(channel.L[k]) == pytest.approx(10 ** (-channel.margins.gain_up_db / 20), rel=0.05)
    assert wrapped_phase(channel.L)[k] == pytest.approx(-180, abs=5)


def test_every_number_in_the_words_is_in_the_record():
    record = frequency_response(LOOP["sampled"])
    words = explain(record)
    answer = library.to_json(record)
    small = {
        name: {key: value for key, value in one.items() if not isinstance(value, list)}
        for name, one in answer["loops"].items()
    }

    units = {"gain_db": "dB", "phase_deg": "deg", "sensitivity_frequency": "rad/s"}
    assert sources(words.replace("limit of 2", ""), small, units)


def test_an_unstable_loop_has_no_margins_in_words():
    assert "not all eigenvalues" in explain(frequency_response(LOOP["unstable"]))


def test_the_report_shows_loop_gains_of_all_designs_with_margins():
    comparison = library.compare("single-link-hub", "hub-pd")
    found = actuator_responses(comparison.evaluations)
    figure = new_figure(10, 5)
    plot_loop_gains(figure, found, looks(list(found)))
    figure.canvas.draw()

    assert list(found) == [e.name for e in comparison.evaluations]
    assert [line.get_label() for line in figure.axes[0].get_lines()][:2] == list(found)


def test_the_least_disk_margin_is_named_where_the_largest_peak_is_elsewhere():
    record = frequency_response(LOOP["many"])
    channels = [channel for channel in record.at("actuator") if channel.margins]
    peaks = [
        replace(own.margins.peaks, Ms=Ms) for own, Ms in zip(channels, (1.2, 2.3, 1.5), strict=True)
    ]
    changed = [
        replace(own, margins=replace(own.margins, peaks=peak, disk=disk))
        for own, peak, disk in zip(channels, peaks, (0.9, 0.7, 0.6), strict=True)
    ]
    said = explain(replace(record, channels=tuple(changed)))
    names = [channel_name(channel) for channel in changed]
    assert f"least robust by its sensitivity peak is {names[1]}: " in said
    assert "disk 0.7, sensitivity peak Ms = 2.3 " in said
    assert f"The smallest disk margin, 0.6, is that of {names[2]}." in said

    alike = [replace(own, margins=replace(own.margins, disk=0.7)) for own in changed]
    assert "smallest disk" not in explain(replace(record, channels=tuple(alike)))
