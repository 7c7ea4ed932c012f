"""`flexctl bode` as a person and as a script use it."""

import json
from dataclasses import replace

import numpy as np
import pytest

import flexctl as library
from flexctl.verdict.loop_responses import frequency_response
from flexctl.view.explain import explain
from flexctl.view.figures.bode import gain_frequency, wrapped_phase
from flexctl.view.figures.loop_gains import (
    actuator_responses,
    plot_loop_curves,
    plot_loop_gains,
    plot_loop_sensitivities,
    plot_readings,
    reading_responses,
)
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


@pytest.mark.slow
def test_another_pose_has_another_response(flexctl):
    arm = "theodore-ghosal-rrp", "rrp-stiff", "-m", "1", "--truth-modes", "1"
    one = json.loads(flexctl("bode", *arm, "--json").out)
    other = json.loads(flexctl("bode", *arm, "--json", "--pose", "joint3=0.6").out)

    assert other["pose"]["joint3"] == pytest.approx(0.6)
    assert one["loops"]["tau_joint1"]["phase_deg"] != other["loops"]["tau_joint1"]["phase_deg"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (
            ("--channel", "joint7", "--plot", "drawn.svg"),
            "--channel: expected actuators, sensors or a channel",
        ),
        (("--pose", "joint7=1"), "--pose: expected joint variables"),
        (("--kind", "root"), "--kind"),
        (("--kind", "nyquist"), "--kind: expected --plot FILE with it, got none"),
        (("--channel", "sensors"), "--channel: expected --plot FILE with it, got none"),
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


@pytest.mark.slow_but("unstable-nyquist", "stable-nyquist")
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


@pytest.fixture(scope="module")
def compared():
    return library.compare("single-link-hub", ["hub-pd", "hub-lqg"], baseline=False).evaluations


def curves_of(axes, names):
    lines = {line.get_label(): line.get_xydata() for line in axes.get_lines()}
    return [lines[name] for name in names]


@pytest.mark.slow
def test_the_report_shows_frequency_responses_of_all_designs_with_margins(compared):
    found = actuator_responses(compared)
    names = [e.name for e in compared]
    assert list(found) == names

    def drawn(plot):
        figure = new_figure(10, 5)
        plot(figure, found, looks(names))
        figure.canvas.draw()
        return [curves_of(axes, names) for axes in figure.axes]

    above, below = drawn(plot_loop_gains)
    sensitivity, complementary = drawn(plot_loop_sensitivities)
    nyquist, nichols = drawn(plot_loop_curves)
    for k, record in enumerate(found.values()):
        (one,) = record.channels
        size = 20 * np.log10(np.abs(one.L))
        phase = np.degrees(np.angle(one.L))
        np.testing.assert_allclose(above[k], np.transpose([record.w, size]))
        turned = below[k][np.isfinite(below[k][:, 1]), 1]
        np.testing.assert_allclose(np.mod(turned - phase + 180, 360), 180, atol=1e-6)
        np.testing.assert_allclose(sensitivity[k][:, 1], np.abs(1 / (1 + one.L)), rtol=1e-6)
        np.testing.assert_allclose(complementary[k][:, 1], np.abs(one.L / (1 + one.L)), rtol=1e-6)
        np.testing.assert_allclose(nyquist[k], np.transpose([one.L.real, one.L.imag]))
        seen = np.isfinite(nichols[k]).all(axis=1)
        turned = 10 ** (nichols[k][seen, 1] / 20) * np.exp(1j * np.radians(nichols[k][seen, 0]))
        np.testing.assert_allclose(turned, one.L, rtol=1e-6)


@pytest.mark.slow
def test_the_report_shows_the_reading_that_bears_least(compared):
    (record,) = reading_responses(compared).values()
    (one,) = record.channels
    own = next(e.sensor_margins for e in compared if e.name == "hub-lqg")
    figure = new_figure(5, 4)
    plot_readings(figure, {"hub-lqg": record})

    assert one.name == own.readings[own.reading_disk.argmin()]
    assert one.margins.disk == pytest.approx(own.reading_disk.min(), rel=1e-9)
    whole = frequency_response(compared[[e.name for e in compared].index("hub-lqg")].linear)
    same = next(c for c in whole.at("sensor") if c.name == one.name)
    np.testing.assert_allclose(
        np.interp(record.w, whole.w, same.L.real), one.L.real, rtol=1e-2, atol=1e-2
    )
    assert figure.axes[0].get_title().splitlines()[0] == "hub-lqg"


def test_of_many_actuators_the_first_are_drawn():
    record = frequency_response(LOOP["many"])
    (first, *_), many = record.at("actuator"), 6
    channels = tuple(replace(first, name=f"tau.joint{j}") for j in range(many))
    figure = new_figure(10, 5)
    plot_loop_gains(figure, {"one": replace(record, channels=channels)}, looks(["one"]))

    assert len(figure.axes) == 8
    assert figure.axes[0].get_title() == "actuator of joint0 (4 of 6 drawn)"


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


@pytest.mark.slow
def test_responses_of_joints_are_drawn_of_instruments_too():
    comparison = library.compare("vertical-2r-drives", "drives-cascade", baseline=False)
    record = frequency_response(comparison.evaluations[0].linear)
    figure = plot_responses(record, "sensitivity")
    effort, disturbance = (axes for part in figure.subfigs[1:] for axes in part.axes)

    for axes in (effort, disturbance):
        names = [line.get_label() for line in axes.get_lines()]
        assert names == ["encoder of rotor1", "encoder of rotor2"]
