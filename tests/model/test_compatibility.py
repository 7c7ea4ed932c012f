import numpy as np
import pytest

from flexctl.errors import InputError
from flexctl.model.compatibility import check_design
from flexctl.model.lookup import load_design, load_model
from flexctl.model.samples import load_samples


@pytest.fixture
def arm(model_text, write):
    return load_model(write(model_text, "arm.toml"))


def refusal(arm, path):
    design = load_design(path)
    with pytest.raises(InputError) as caught:
        check_design(arm, design)
    return str(caught.value).removeprefix(f"{path}: ")


def test_a_design_that_fits_passes(arm, design_text, write):
    check_design(arm, load_design(write(design_text)))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "Gp = 100.0",
            "Gp = [1, 1]",
            "gains.Gp: expected one number, or 3, one per joint of arm, got [1.0, 1.0]",
        ),
        (
            "to = [3.1, 1.5, 1.0]",
            "to = [3.1, 3.3, 1.0]",
            "reference.to[2]: expected -3.1 to 3.2 (limits.position of upper of arm), got 3.3",
        ),
        (
            "from = [0.0, 0.0, 0.3]",
            "from = [0.0, 0.0, 0.05]",
            "reference.from[3]: expected 0.1 to 1.3 (limits.position of link3 of arm), got 0.05",
        ),
    ],
)
def test_a_design_that_does_not_fit_is_refused(arm, design_text, write, old, new, message):
    assert refusal(arm, write(design_text.replace(old, new))) == message


@pytest.mark.parametrize(
    ("duration", "reached"),
    # run of 1 s: within the profile W T (s^2/2 + (cos 2 pi s - 1)/(4 pi^2)), and beyond its T/2
    [(2.0, 10 * (1 / 8 - 2 / (4 * np.pi**2)) * 2), (0.5, 10 * (1 - 0.25))],
)
def test_a_spin_up_stays_within_limits_until_the_run_ends(
    arm, design_text, write, duration, reached
):
    text = design_text[: design_text.index("[second_loop]")] + "[loop]\nduration = 1.0\n"
    spin = f'kind = "spin-up"\nfrom = [0.0, 0.0, 0.3]\nrate = [0, %s, 0]\nduration = {duration}\n'
    reference = text[text.index('kind = "cycloid"') : text.index("[gains]")]
    fast, slow = (text.replace(reference, spin % rate) for rate in (10.0, 0.1))

    check_design(arm, load_design(write(slow)))
    if reached < 3.2:
        check_design(arm, load_design(write(fast)))
    else:
        message = refusal(arm, write(fast))
        assert message.startswith(
            "reference.rate[2]: expected -3.1 to 3.2 (limits.position of upper"
        )
        assert float(message.split("got ")[1]) == pytest.approx(reached)


@pytest.mark.parametrize("end", ["0.0", "-0.2", "1.31"])
def test_a_prismatic_joint_stays_within_its_beam(model_text, design_text, write, end):
    free = model_text.replace("limits = { position = [0.1, 1.3] }", "")
    arm = load_model(write(free, "arm.toml"))
    path = write(design_text.replace("1.5, 1.0]", f"1.5, {end}]"))

    message = refusal(arm, path)

    assert message.startswith(
        "reference.to[3]: expected a free length (joint + dh.d) within (0, 1.3]"
    )
    assert message.endswith(f"got {end}")


def test_the_offset_of_a_prismatic_joint_counts(model_text, design_text, write):
    text = model_text.replace("limits = { position = [0.1, 1.3] }", "").replace(
        "d = 0.0 }", "d = 0.4 }"
    )
    path = write(design_text)

    message = refusal(load_model(write(text, "arm.toml")), path)

    assert message.endswith("got 1 + 0.4")


def test_a_beam_may_be_driven_to_its_very_end(arm, design_text, write):
    check_design(arm, load_design(write(design_text.replace("1.5, 1.0]", "1.5, 1.3]"))))


def test_another_number_of_joints_is_refused(design_text, write):
    path = write(design_text.replace("Gv = [20.0, 20.0, 20.0]", "Gv = 20.0"))

    message = refusal(load_model("planar-two-link"), path)

    assert message == (
        "reference.from: expected 2 numbers, one per joint of planar-two-link, got 3 numbers"
    )


CSV = 'kind = "csv"\nfile = "motion.csv"\n'
CYCLOID = 'kind = "cycloid"\nfrom = [0.0, 0.0, 0.3]\nto = [3.1, 1.5, 1.0]\nduration = 0.5\n'


@pytest.fixture
def csv_design(design_text, write):
    return write(design_text.replace(CYCLOID, CSV))


def test_a_csv_reference_is_found_beside_its_design(arm, csv_design, write):
    path = write("t, joint1, joint2, joint3\n0,0,0,0.3\n\n0.5,1,1,1\n", "motion.csv")

    check_design(arm, load_design(csv_design))
    samples = load_samples(path)

    assert load_design(csv_design).reference_file == path
    np.testing.assert_array_equal(samples.t, [0, 0.5])
    np.testing.assert_array_equal(samples.joint, [[0, 1], [0, 1], [0.3, 1]])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "t,joint1,joint2,joint3\n0,0,0,0.3\n1,0,0,1.4\n",
            "reference.file[3]: expected 0.1 to 1.3",
        ),
        ("t,joint1\n0,0\n1,0\n", "reference.file: expected 3 numbers, one per joint of arm, got 1"),
        ("t,joint2\n0,0\n", "motion.csv: header: expected t, joint1, got t, joint2"),
        ("", "motion.csv: header: expected t, joint1, got"),
        ("t,joint1\n0,0\n1,nan\n", "motion.csv: line 3: expected 2 finite numbers, got 1,nan"),
        ("t,joint1\n0,0\n1\n", "motion.csv: line 3: expected 2 finite numbers, got 1"),
        ("t,joint1\n\n0,0\n\n1\n", "motion.csv: line 5: expected 2 finite numbers, got 1"),
        (
            "t,joint1\n0,0\n0,1\n",
            "motion.csv: line 3: expected times that rise, got 0 s after 0 s",
        ),
        ("t,joint1\n", "motion.csv: t: expected at least 2 rising times"),
        (b"\xff", "motion.csv: expected text in UTF-8"),
        (None, "motion.csv: expected a file, got nothing (no such file)"),
    ],
)
def test_a_faulty_csv_reference_is_refused(arm, csv_design, write, text, message):
    if text is not None:
        write(text, "motion.csv")

    assert message in refusal(arm, csv_design)
    with pytest.raises(InputError) as caught:
        check_design(arm, load_design(csv_design))
    assert str(caught.value).startswith(f"{csv_design}: reference.file")


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ("Gp = 100.0", "Gp = [100.0]", "gains.Gp"),
        ("Gv = [20.0, 20.0, 20.0]", "Gv = [20.0]", "gains.Gv"),
        ("Gi = 0.0", "Gi = [1.0]", "gains.Gi"),
        (
            '[loop]\nmeasures = "state"',
            '[observer.noise]\nencoder = [1e-4]\n[loop]\nmeasures = ["encoder", "strain_gauge"]',
            "observer.noise.encoder",
        ),
    ],
)
def test_a_list_of_one_for_several_joints_is_refused(design_text, write, old, new, key):
    assert old in design_text
    path = write(design_text.replace(old, new, 1))
    with pytest.raises(InputError) as caught:
        load_design(path)
    one = "one number for all joints, or a list of 3, one per joint"
    assert str(caught.value).startswith(f"{path}: {key}: expected {one}, got [")


def test_a_duration_in_a_list_of_one_is_that_of_all_joints(design_text, write):
    path = write(design_text.replace("duration = 0.5", "duration = [0.5]", 1))
    read = load_design(path)
    assert read.reference.duration == (0.5,)
    assert read.table()["reference"]["duration"] == 0.5


def test_a_list_of_one_is_counted_by_the_columns_of_a_csv_reference(design_text, write):
    (path := write(design_text)).with_name("two.csv").write_text("t,joint1,joint2\n0,0,0\n1,1,1\n")
    text = path.read_text().replace("Gp = 100.0", "Gp = [100.0]")
    head, _, rest = text.partition("[reference]")
    rest = rest[rest.index("\n[") :]
    path.write_text(f'{head}[reference]\nkind = "csv"\nfile = "two.csv"\n{rest}')
    with pytest.raises(InputError, match=r"gains\.Gp: expected one number .* a list of 2, one per"):
        load_design(path)


def test_a_number_for_all_joints_stays_one_in_the_table_of_a_design(design_text, write):
    design = load_design(write(design_text))
    table = design.table()
    assert table["gains"]["Gp"] == 100.0
    assert design.gains.Gp == (100.0,)
    assert load_design("hub-pd").table()["gains"]["Gp"] == (20.0,)
