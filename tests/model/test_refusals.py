import pytest

from flexctl.errors import InputError
from flexctl.model.lookup import load_design, load_model

# What is replaced in the valid file, by what, and the message after "{path}: ".
MODEL_CASES = [
    ("gravity = [0.0, 0.0, -9.81]", "", "gravity: expected a value, got nothing"),
    ("[0.0, 0.0, -9.81]", "[0.0, 0.0]", "gravity: expected 3 numbers, got [0.0, 0.0]"),
    ("[0.0, 0.0, -9.81]", "-9.81", "gravity: expected an array, got -9.81"),
    ("[0.0, 0.0, -9.81]", '[0, 0, "g"]', 'gravity[3]: expected a number, got "g"'),
    ("[0.0, 0.0, -9.81]", "[0, 0, nan]", "gravity[3]: expected a finite number, got NaN"),
    ("[0.0, 0.0, -9.81]", "[0, 0, inf]", "gravity[3]: expected a finite number, got Infinity"),
    ("[0.0, 0.0, -9.81]", "[0, 0, true]", "gravity[3]: expected a number, got true"),
    ("gravity", "gravitiy", "gravitiy: expected a known key (nearest: gravity), got gravitiy"),
    ("source", "zzz", "zzz: expected a known key (one of: base, expect, gravity, link, payload, "),
    ('source = "flexctl"', 'source = ""', 'source: expected a text that is not empty, got ""'),
    ('source = "flexctl"', "source = 3", "source: expected a text in quotes, got 3"),
    ("summary", 'name = "x"\nsummary', "name: expected a known key (nearest: base), got name"),
    ("summary", 'path = "x"\nsummary', "path: expected a known key (one of: "),
    (
        "position = [0.0,",
        "positon = [0.0,",
        "base.positon: expected a known key (nearest: position",
    ),
    (
        "mass_per_length = 0.33\nEI = { y",
        "EI = { y",
        "link[2].mass_per_length: expected more than 0,",
    ),
    ("= 37.0", "= -37.0", "link[1].mass_per_length: expected at least 0, got -37.0"),
    ("EI = { y", "EI_ = { y", "link[2].EI_: expected a known key (nearest: EI), got EI_"),
    ("y = 1165.0", "y = 0.0", "link[2].EI.y: expected more than 0, got 0.0"),
    ("y = 1165.0", "y = -1.0", "link[2].EI.y: expected more than 0, got -1.0"),
    ("y = 1165.0", "y = nan", "link[2].EI.y: expected a finite number, got NaN"),
    ("y = 1165.0", "x = 1165.0", "link[2].EI.x: expected a direction of a revolute link (y or z)"),
    ("x = 1165.0", "z = 1165.0", "link[3].EI.z: expected a direction of a prismatic link (x or y)"),
    ("EI = { x = 1165.0 }", "EI = 1165.0", "link[3].EI: expected a table, got 1165.0"),
    ("length = 1.0\n", "length = -1.0\n", "link[2].length: expected more than 0, got -1.0"),
    ("length = 1.0\n", "length = true\n", "link[2].length: expected a number, got true"),
    ("length = 1.0\n", 'length = "1"\n', 'link[2].length: expected a number, got "1"'),
    ("length = 1.0\n", "", "link[2].length: expected a number, as the link bends, got nothing"),
    ("length = 1.0\n", "length = 1.1\n", "link[2].dh.a: expected 1.1 (= length, as the beam lies"),
    ("dh = { d = 0.0 }", "dh = { a = 0.1 }", "link[3].dh.a: expected 0, as the beam slides"),
    (
        "length = 1.0\n",
        "length = 1.0\ntotal_length = 1.0\n",
        "link[2].total_length: expected length ",
    ),
    ("total_length = 1.3", "length = 1.3", "link[3].length: expected total_length instead"),
    ("total_length = 1.3", "", "link[3].total_length: expected a number, as the link has mass"),
    ("total_length = 1.3", "total_length = 1.2", "link[3].limits.position: expected a free length"),
    ("[0.01, 0.02]", "[0.01, 1.0]", "link[2].damping_ratio[2]: expected less than 1, got 1.0"),
    ("[0.01, 0.02]", "-0.01", "link[2].damping_ratio[1]: expected at least 0, got -0.01"),
    ("[0.01, 0.02]", "[]", "link[2].damping_ratio: expected at least 1 entry, got 0 entries"),
    ("= true", "= 1", "link[2].foreshortening: expected true or false, got 1"),
    ("mass = 0.5", "mass = -0.5", "link[2].hub.mass: expected at least 0, got -0.5"),
    ("[0.1, 0.1, 0.1]", "[0.1, 0.1, 0.3]", "link[2].hub.inertia: expected none larger than the"),
    ("[0.1, 0.1, 0.1]", "[0.1, 0.1]", "link[2].hub.inertia: expected 3 numbers, got [0.1, 0.1]"),
    ("= 0.35", "= -0.35", "link[1].joint_inertia: expected at least 0, got -0.35"),
    (
        "joint3 = 0.5",
        "joint4 = 0.5",
        "link[2].tip_load.reference_pose.joint4: expected a joint (one",
    ),
    ('["M", "J"]', '["M", "K"]', "link[2].tip_load.include[2]: expected one of 'M', 'J', 'D' or '"),
    ("[-3.1, 3.2]", "[3.2, -3.1]", "link[2].limits.position: expected [lowest, highest], got [3.2"),
    ("[-3.1, 3.2]", "[3.2]", "link[2].limits.position: expected 2 numbers, got [3.2]"),
    ("torque = 50.0", "torque = 0", "link[2].limits.torque: expected more than 0, got 0"),
    (
        "torque = 50.0",
        "troque = 5",
        "link[2].limits.troque: expected a known key (nearest: torque)",
    ),
    (
        '"prismatic"',
        '"helical"',
        "link[3].joint: expected one of 'revolute' or 'prismatic', got \"h",
    ),
    (
        '"upper"',
        '"link1"',
        'link[2].name: expected a name that no other link or key has, got "link1',
    ),
    (
        '"upper"',
        '"payload"',
        'link[2].name: expected a name that no other link or key has, got "pay',
    ),
    *(
        (
            '"upper"',
            f'"{name}"',
            f'link[2].name: expected a name that no other link or key has, got "{name}"',
        )
        for name in ("tip", "loop", "gains", "elements")
    ),
    ('"upper"', '"a.b"', "link[2].name: expected a name of letters, digits and _ that begins with"),
    ("mass = 0.1\n", "mass = -0.1\n", "payload.mass: expected at least 0, got -0.1"),
    ("[payload]", "[payloads]", "payloads: expected a known key (nearest: payload), got payloads"),
    ("order = 4", "order = 0", "truth.order: expected at least 1, got 0"),
    ("order = 4", "order = 201", "truth.order: expected at most 200, got 201"),
    ("order = 4", "order = 4.0", "truth.order: expected a whole number, got 4.0"),
    ("drop_above = 1e5", "drop_above = 0", "truth.drop_above: expected more than 0, got 0"),
    ("rtol = 1e-4", "", "expect.link_frequencies.upper.y.rtol: expected a value, got nothing"),
    (
        "rtol = 1e-4",
        "rto = 1",
        "expect.link_frequencies.upper.y.rto: expected a known key (nearest",
    ),
    ("[200.0, 1300.0]", "[[200.0]]", "expect.link_frequencies.upper.y.value[1]: expected a number"),
    (
        "joint_inertia = 0.35",
        "flexible_joint = { stiffness = 100.0 }",
        "link[1].flexible_joint.rotor_inertia: expected a value, got nothing",
    ),
]

FROM, TO = "from = [0.0, 0.0, 0.3]", "to = [3.1, 1.5, 1.0]"
GAINS = "[gains]\nGp = 100.0\nGv = [20.0, 20.0, 20.0]\nGi = 0.0\n"
SECOND_LOOP = """\
[second_loop]
weights = { joint_error = 300.0, joint_rate = 0.3, strain_energy = 1.0, effort = 1e-4 }
switch = { blend = 0.05 }
solver = "slycot"
"""

DESIGN_CASES = [
    ("[basis]", "[base]", "base: expected a known key (nearest: basis), got base"),
    (
        '"decoupling"',
        '"decupling"',
        "method: expected one of 'decoupling', 'composite', 'joint-pd'",
    ),
    ('"decoupling"', "[1]", "method: expected one of 'decoupling', 'composite', 'joint-pd', 'pid'"),
    (
        '"decoupling"',
        '"feedforward"',
        "gains: expected no such table, as method is feedforward, go",
    ),
    (GAINS, "", "gains: expected a value, got nothing"),
    (
        '"decoupling"',
        '"joint-pd"',
        "second_loop: expected no such table, as method is none of decoupling, com",
    ),
    (
        'kind = "modes"',
        'kind = "mods"',
        "basis.kind: expected one of 'modes', 'elements', 'pinned-modes' or 'free-modes', got",
    ),
    (
        'kind = "modes"',
        'kind = "elements"\nsliding = "exact"',
        'basis.sliding: expected "fixed" or no such key with kind "elements", as only modes',
    ),
    (
        'kind = "modes"',
        'kind = "modes"\nsliding = "follow"',
        "basis.sliding: expected one of 'fixed', 'exact' or 'roots', got",
    ),
    (
        "order = 2",
        "order = 2\ndrop_above = 1.0",
        "basis.drop_above: expected no such key (it belongs",
    ),
    (
        '"cycloid"',
        '"bang"',
        "reference.kind: expected one of 'cycloid', 'quintic', 'setpoint', 'csv",
    ),
    (
        f'"cycloid"\n{FROM}\n{TO}',
        f'"bang-bang"\n{FROM}',
        "reference.to: expected a value (or torque instead), got nothing",
    ),
    (
        '"cycloid"',
        '"bang-bang"\ntorque = [1, 1, 0]',
        "reference.torque: expected no such key, as there is a to, got [1.0, 1.0, 0.0]",
    ),
    (
        f'"cycloid"\n{FROM}\n{TO}',
        f'"bang-bang"\n{FROM}\ntorque = 0.2',
        "reference.torque: expected 3 numbers, as many as in from, got [0.2]",
    ),
    (
        f'"cycloid"\n{FROM}\n{TO}',
        f'"bang-bang"\n{FROM}\ntorque = [1, 1, 0]',
        "reference.torque: expected no such key (a motion instead), as "
        "method is not torque, got [1",
    ),
    (
        '"decoupling"',
        '"torque"',
        "reference.torque: expected a value, as method is torque, got not",
    ),
    (TO, f"{TO}\ntorque = [1, 1, 0]", "reference.torque: expected no such key, as kind is cycloid"),
    (
        'kind = "cycloid"',
        'kind = "setpoint"\nfile = "x.csv"',
        "reference.file: expected no such key, as kind is setpoint",
    ),
    ('"cycloid"', '"csv"', "reference.file: expected a value, as kind is csv, got nothing"),
    ("from = [0.0, 0.0, 0.3]", "", "reference.from: expected a value, as kind is cycloid"),
    ("to = [3.1, 1.5, 1.0]", "to = [3.1]", "reference.to: expected 3 numbers, as many as in from"),
    ("to = [3.1, 1.5, 1.0]", "to = [nan, 1, 1]", "reference.to[1]: expected a finite number, got"),
    ("duration = 0.5", "duration = 0.0", "reference.duration[1]: expected more than 0, got 0.0"),
    (
        "duration = 0.5",
        "duration = [0.5, 0.6]",
        "reference.duration: expected one number, or 3 numbers, as many as in from, got [0.5, 0.6]",
    ),
    (
        'kind = "cycloid"\nfrom = [0.0, 0.0, 0.3]\nto = [3.1, 1.5, 1.0]\nduration = 0.5',
        'kind = "setpoint"\nfrom = [0, 0, 0.3]\nto = [3, 1, 1]\nduration = [0.5, 0.5, 0.5]',
        "reference.duration: expected one number, got [0.5, 0.5, 0.5]",
    ),
    (TO, "rate = [1, 1, 0]", "reference.to: expected a value, as kind is cycloid, got nothing"),
    (TO, f"{TO}\nrate = [1, 1, 0]", "reference.rate: expected no such key, as kind is cycloid"),
    ('"cycloid"', '"spin-up"', "reference.rate: expected a value, as kind is spin-up, got nothing"),
    (f'"cycloid"\n{FROM}\n{TO}', f'"spin-up"\n{FROM}\nrate = 1', "reference.rate: expected 3 num"),
    (
        f'"cycloid"\n{FROM}\n{TO}',
        f'"spin-up"\n{FROM}\nrate = [0, 1, 0]',
        "second_loop: expected no such table, as the reference (spin-up) never rests",
    ),
    ("Gp = 100.0", "gp = 100.0", "gains.gp: expected a known key (nearest: G"),
    ("Gp = 100.0", "Gp = 0.0", "gains.Gp[1]: expected more than 0, got 0.0"),
    ("Gp = 100.0", 'Gp = "a"', 'gains.Gp: expected a number or an array of numbers, got "a"'),
    ("Gi = 0.0", "Gi = true", "gains.Gi: expected a number or an array of numbers, got true"),
    ("Gp = 100.0", "", "gains.Gp: expected a value, got nothing"),
    ("[20.0, 20.0, 20.0]", "[20.0, -1.0]", "gains.Gv[2]: expected at least 0, got -1.0"),
    ("Gi = 0.0", "Gi = -1.0", "gains.Gi[1]: expected at least 0, got -1.0"),
    ("effort = 1e-4", "effort = 0", "second_loop.weights.effort: expected more than 0, got 0"),
    (", effort = 1e-4", "", "second_loop.weights.effort: expected a value, got nothing"),
    (
        "joint_rate = 0.3",
        "rate = 0.3",
        "second_loop.weights.rate: expected a known key (nearest: joi",
    ),
    ("joint_rate = 0.3", "joint_rate = -1", "second_loop.weights.joint_rate: expected at least 0"),
    (
        "joint_error = 300.0, joint_rate = 0.3, strain_energy = 1.0, ",
        "",
        "second_loop.weights.joint_error: expected one weight beside effort above 0",
    ),
    ("{ blend = 0.05 }", '"begin"', 'second_loop.switch: expected "end" or { blend = seconds }'),
    ("{ blend = 0.05 }", "{ blend = 0 }", "second_loop.switch.blend: expected more than 0, got 0"),
    (
        '"slycot"',
        '"scypi"',
        "second_loop.solver: expected one of 'scipy' or 'slycot', got \"scypi\"",
    ),
    (
        '"state"',
        '["encodr"]',
        'loop.measures: expected "state" or some of encoder, tachometer, joint_encoder, '
        'strain_gauge, got "encodr"',
    ),
    ('"state"', "[]", 'loop.measures: expected "state" or some of encoder, '),
    ('"state"', '"encoder"', 'loop.measures: expected "state" or some of encoder, '),
    ('"state"', '["encoder", "encoder"]', "loop.measures: expected every instrument once, got "),
    (
        '"state"',
        '["encoder"]',
        "loop.strain_gauges: expected no such key, as loop.measures does not name strain_gauge",
    ),
    (
        "[loop]",
        "[observer]\n[loop]",
        'observer: expected no such table, as loop.measures is "state"',
    ),
    (
        "[loop]",
        "[observer]\nnoise = { encoder = 0 }\n[loop]",
        "observer.noise.encoder[1]: expected more than 0",
    ),
    (
        "[loop]",
        "[observer]\nnoise = { gyro = 1 }\n[loop]",
        "observer.noise.gyro: expected a known key",
    ),
    (
        "sample_time = 0.001",
        "",
        "loop.sample_time: expected more than 0, as there is a delay, got 0",
    ),
    ("sample_time = 0.001", "sample_time = -1", "loop.sample_time: expected at least 0, got -1"),
    ("delay = 0.001", "delay = -0.001", "loop.delay: expected at least 0, got -0.001"),
    (
        "settle_within = 1e-4",
        "settle_within = 0",
        "loop.settle_within: expected more than 0, got 0",
    ),
    ("[0.1, 0.5]", "[0.1, 1.0]", "loop.strain_gauges[2]: expected less than 1, got 1.0"),
    (
        "[0.1, 0.5]",
        "[0.1, 0.1]",
        "loop.strain_gauges: expected every position once, got [0.1, 0.1]",
    ),
]


def refusal(load, path):
    with pytest.raises(InputError) as caught:
        load(path)
    message = str(caught.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize(("old", "new", "message"), MODEL_CASES)
def test_a_faulty_model_is_refused_in_one_line(model_text, write, old, new, message):
    assert old in model_text
    path = write(model_text.replace(old, new, 1))

    assert refusal(load_model, path).startswith(f"{path}: {message}")


@pytest.mark.parametrize(("old", "new", "message"), DESIGN_CASES)
def test_a_faulty_design_is_refused_in_one_line(design_text, write, old, new, message):
    assert old in design_text
    path = write(design_text.replace(old, new, 1))

    assert refusal(load_design, path).startswith(f"{path}: {message}")


@pytest.mark.parametrize(
    ("removed", "message"),
    [
        ([GAINS], "second_loop: expected no such table, as method is none of decoupling, composi"),
        (
            [GAINS, SECOND_LOOP],
            "loop.strain_gauges: expected no such key, as method feedforward "
            "measures nothing, got ",
        ),
    ],
)
def test_a_feedforward_design_has_nothing_of_a_loop(design_text, write, removed, message):
    text = design_text.replace('"decoupling"', '"feedforward"')
    for part in removed:
        assert part in text
        text = text.replace(part, "")
    path = write(text)

    assert refusal(load_design, path).startswith(f"{path}: {message}")


def test_a_feedforward_design_asked_for_its_gains_says_that_it_has_none():
    with pytest.raises(InputError, match=r"gains: expected a table, got nothing \(an open loop\)"):
        _ = load_design("mohan-saha-forced").joint_gains


def test_several_faults_are_counted_and_the_unknown_key_comes_first(model_text, write):
    text = model_text.replace("rate = 10.0", "rate = -1.0").replace("mass = 0.1\n", "mas = 0.1\n")

    message = refusal(load_model, write(text))

    assert "payload.mas: expected a known key (nearest: mass), got mas (and 1 more)" in message


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("y = 1165.0", "y = -1.0", "link[2].EI.y: expected more than 0, got -1.0"),
        ("EI = { y", "EI_ = { y", "link[2].EI_: expected a known key (nearest: EI), got EI_"),
    ],
)
def test_a_single_fault_inside_an_array_is_counted_once(model_text, write, old, new, message):
    path = write(model_text.replace(old, new, 1))

    assert refusal(load_model, path) == f"{path}: {message}"


def test_an_array_that_is_too_short_by_itself_is_still_refused(design_text, write):
    path = write(design_text.replace("strain_gauges = [0.1, 0.5]", "strain_gauges = []", 1))

    message = refusal(load_design, path)

    assert message == f"{path}: loop.strain_gauges: expected at least 1 entry, got 0 entries"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"summary = ", "expected TOML, got: Invalid value"),
        (b"a = 1\na = 2", "expected TOML, got: Cannot overwrite a value"),
        (b"a = " + b"9" * 5000, "expected TOML, got: "),
        (b"a = " + b"[" * 100_000, "expected TOML, got: deep nesting"),
        (b"\xff\xfe\x00", "expected text in UTF-8, got byte 1 that is not"),
        (b"\x7fELF\x02\x01\x00\x00\x90", "expected text in UTF-8, got byte 9 that is not"),
        (b"", "summary: expected a value, got nothing (and "),
    ],
    ids=["syntax", "twice", "digits", "nesting", "utf-16", "binary", "empty"],
)
def test_a_file_that_is_no_toml_is_refused(write, content, message):
    path = write(content)

    assert refusal(load_model, path).startswith(f"{path}: {message}")


def test_a_missing_file_and_a_folder_are_refused(tmp_path):
    missing = tmp_path / "missing.toml"
    assert refusal(load_model, missing) == f"{missing}: expected a file, got nothing (no such file)"
    assert refusal(load_design, tmp_path) == f"{tmp_path}: expected a file, got a folder"
    assert "null" in refusal(load_model, "a\0b.toml")


def test_an_unreadable_file_is_refused(write, monkeypatch):
    def deny(_):
        raise PermissionError(13, "Permission denied")

    path = write("")
    monkeypatch.setattr(type(path), "read_bytes", deny)

    assert refusal(load_model, path) == f"{path}: expected a file to read, got: Permission denied"


@pytest.mark.parametrize(
    ("load", "word", "message"),
    [
        (load_model, "theodore-ghosal-rrpp", "(nearest: theodore-ghosal-rrp) or a path"),
        (load_model, "zzz", "(one of: de-luca-siciliano-2r, kane-spin-up, "),
        (load_design, "rrp-gentel", "(nearest: rrp-gentle) or a path"),
    ],
)
def test_an_unknown_name_gets_the_nearest(load, word, message):
    found = refusal(load, word)

    assert message in found
    assert found.endswith(f"got {word!r}")


OBSERVED = [
    (
        'method = "decoupling"',
        'method = "joint-pd"',
        'loop.measures: expected "state", as method joint-pd takes no more of it than encoders and '
        "tachometers give, and needs no observer, got ",
    ),
    (
        "settle_within = 1e-4",
        "settle_within = 1e-4\nstrain_gauges = [0.1, 0.5]",
        "loop.strain_gauges: expected no such key, as loop.measures does not name strain_gauge",
    ),
    (
        "tachometer = 1e-2",
        "joint_encoder = 1e-2",
        "observer.noise.joint_encoder: expected no such key, as loop.measures does not name it",
    ),
]


@pytest.mark.parametrize(("old", "new", "message"), OBSERVED)
def test_an_observer_has_its_place(design_text, write, old, new, message):
    observer = "[observer]\nnoise = { tachometer = 1e-2 }\n[loop]"
    text = design_text.replace("[loop]", observer).replace(SECOND_LOOP, "")
    text = text.replace('"state"', '["encoder", "tachometer"]')
    for line in ("sample_time = 0.001\n", "delay = 0.001\n", "strain_gauges = [0.1, 0.5]\n"):
        text = text.replace(line, "")
    load_design(write(text))
    path = write(text.replace(old, new, 1))

    assert refusal(load_design, path).startswith(f"{path}: {message}")


def test_a_file_with_a_slip_in_its_ending_is_named(tmp_path, monkeypatch):
    (tmp_path / "arm-pd.toml").write_text("")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r"nearest file here: arm-pd.toml"):
        load_design("arm-pd.tml")
