"""[[instruments]] of designs: what is refused, and by how many samples a reading is late."""

import pytest

from flexctl.errors import InputError
from flexctl.model.compatibility import check_design
from flexctl.model.instruments import InstrumentChoice
from flexctl.model.lookup import load_design, load_model
from flexctl.model.settings import design_value, with_value

START = """\
summary = "A design"
source = "flexctl"
model = "vertical-2r"
method = "joint-pd"
gains = { Gp = 100.0, Gv = 20.0 }
reference = { kind = "cycloid", from = [0.0, 0.0], to = [0.5, 0.5], duration = 1.0 }
"""
ENCODER = '[[instruments]]\nkind = "encoder"\n'
LOOP = "[loop]\nsample_time = 0.001\n"


def refusal(write, text, check=False):
    path = write(text)
    design = load_design(path) if check else None
    with pytest.raises(InputError) as caught:
        check_design(load_model("vertical-2r"), design) if check else load_design(path)
    return str(caught.value).removeprefix(f"{path}: ")


@pytest.mark.parametrize(
    ("instrument", "message"),
    [
        ('kind = "encoder"\nxi = 0.1', "xi: expected no such key, as kind is encoder, got 0.1"),
        ('kind = "gauge"', "xi: expected a number in [0, 1], its place x/l, got nothing"),
        ('kind = "gauge"\nxi = 1.0', "xi: expected less than 1, as a gauge lies before the end"),
        ('kind = "deflection"\nxi = 0', "xi: expected more than 0, as a line is clamped there"),
        ('kind = "gauge"\nxi = 0.1\njoint = "joint1"', "joint: expected no such key, as kind is g"),
        ('kind = "torque"\nside = "link"', "side: expected no such key, as kind is torque"),
        ('kind = "difference"\nnoise = 1e-3', "noise: expected no such key, as a difference has"),
        ('kind = "encoder"\ntime_constant = 1.0', "time_constant: expected no such key, as kind"),
        ('kind = "encoder"\nresolution = -1.0', "resolution: expected at least 0, got -1.0"),
        ('kind = "encoder"\nsample_time = 0.0025', "sample_time: expected 0, or a whole fraction"),
        ('kind = "encoder"\nsample_time = 0.0003', "sample_time: expected 0, or a whole fraction"),
        (
            'kind = "encoder"\nsample_time = 0.101',
            "sample_time: expected at most 0.1 (100 samples ",
        ),
        (
            'kind = "encoder"\nsample_time = 0.0005\ndelay = 0.0005',
            "delay: expected a multiple of 0.001 (loop.sample_time), as readings are taken more",
        ),
        ('kind = "encoder"\ndelay = 0.201', "delay: expected at most 0.2 (200 samples of the law)"),
        ('kind = "encodr"', "kind: expected one of 'encoder', 'tachometer', 'difference', "),
        ('kind = "encoder"\nrange = 1.0', "range: expected a known key"),
    ],
)
def test_a_faulty_instrument_is_refused_in_one_line(write, instrument, message):
    text = START + f"[[instruments]]\n{instrument}\n" + LOOP
    assert refusal(write, text).startswith(f"instruments[1].{message}")


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (LOOP + 'measures = "state"', "loop.measures: expected no such key beside instruments, "),
        (LOOP + "strain_gauges = [0.1]", "loop.strain_gauges: expected no such key beside instru"),
        (
            "[observer]\nnoise = { encoder = 1e-4 }\n" + LOOP,
            "observer.noise.encoder: expected no such key beside instruments, which have their ow",
        ),
        (ENCODER + LOOP, "instruments[2]: expected every instrument once, got "),
        (
            'sample_time = 0.007\n[[instruments]]\nkind = "tachometer"\nsample_time = 0.015\n'
            + LOOP,
            "instruments[2].sample_time: expected periods whose least common multiple is at most",
        ),
    ],
)
def test_what_does_not_go_with_instruments_is_refused(write, more, message):
    assert refusal(write, START + ENCODER + more).startswith(message)


@pytest.mark.parametrize(
    ("key", "value"), [("resolution", 1e-3), ("delay", 1e-3), ("sample_time", 1e-3)]
)
def test_readings_of_a_continuous_law_are_ideal_but_for_noise(write, key, value):
    text = START + ENCODER + f"noise = 1e-5\n{key} = {value}\n"
    assert refusal(write, text) == (
        f"instruments[1].{key}: expected 0, as the law is continuous (with a loop.sample_time it "
        f"may have a {key}), got {value}"
    )


def test_a_difference_of_a_continuous_law_needs_its_filter(write):
    text = START + ENCODER + '[[instruments]]\nkind = "difference"\n'
    assert refusal(write, text) == (
        "instruments[2].time_constant: expected more than 0 [s], as the law is continuous (or a "
        "loop.sample_time), got 0.0"
    )


@pytest.mark.parametrize("method", ["feedforward", "torque"])
def test_an_open_loop_has_no_instruments(write, method):
    text = START.replace("joint-pd", method).replace("gains = { Gp = 100.0, Gv = 20.0 }\n", "")
    text = text.replace("to = [0.5, 0.5]", "torque = [1, 1]") if method == "torque" else text
    text = text.replace("cycloid", "bang-bang") if method == "torque" else text
    expected = f"instruments: expected no such table, as method {method} measures nothing"
    assert refusal(write, text + ENCODER + LOOP).startswith(expected)


def test_a_continuous_law_has_no_steps_of_its_torques(write):
    message = refusal(write, START + "[loop]\ntorque_resolution = 0.1\n")
    assert (
        message == "loop.sample_time: expected more than 0, as there is a torque_resolution, got 0"
    )


@pytest.mark.parametrize("seed", ["-1", "0.5", "true"])
def test_a_seed_is_a_whole_number(write, seed):
    assert refusal(write, START + f"[loop]\nseed = {seed}\n").startswith("loop.seed: expected ")


@pytest.mark.parametrize(
    ("instrument", "message"),
    [
        ('kind = "encoder"\njoint = "joint3"', "joint: expected a joint of vertical-2r (nearest: "),
        (
            'kind = "gauge"\nxi = 0.1\nline = "link3.y"',
            "line: expected a line of vertical-2r (near",
        ),
        ('kind = "deflection"\nxi = 1\nline = "link1.z"', "line: expected a line of vertical-2r "),
    ],
)
def test_an_instrument_on_no_part_of_the_arm_is_refused(write, instrument, message):
    text = START + f"[[instruments]]\n{instrument}\n" + LOOP
    message = f"instruments[1].{message}"
    assert refusal(write, text, check=True).startswith(message)


def test_a_rigid_joint_has_no_spring_whose_torque_could_be_read(write):
    text = START.replace("[0.0, 0.0]", "[0.0]").replace("[0.5, 0.5]", "[0.5]")
    design = load_design(write(text + '[[instruments]]\nkind = "torque"\n' + LOOP))
    with pytest.raises(InputError, match=r"instruments\[1\].joint: expected a flexible joint, as"):
        check_design(load_model("single-link-hub"), design)


@pytest.mark.parametrize(
    ("delay", "late"),
    [(0.0, 0), (0.3e-3, 1), (1e-3, 1), (1.0000001e-3, 2), (2.5e-3, 3), (3e-3, 3)],
)
def test_a_delay_is_rounded_up_to_samples_of_the_law(delay, late):
    # of the readings taken at its samples a law uses the latest that is there
    assert InstrumentChoice(kind="encoder", delay=delay).late(1e-3) == late


def test_numbers_of_instruments_are_varied_by_their_place(write):
    design = load_design(write(START + ENCODER + "noise = 1e-5\n" + LOOP))
    assert design_value(design, "instruments[1].noise") == 1e-5
    assert with_value(design, "instruments[1].noise", 2.0, factor=True).instruments[0].noise == 2e-5
    with pytest.raises(
        InputError, match=r"instruments\[2\].noise: expected a table instruments\[2\]"
    ):
        with_value(design, "instruments[2].noise", 3.0)
