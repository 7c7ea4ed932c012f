"""Which derivatives of the reference a law gets, and which a csv file gives."""

import casadi as ca
import numpy as np
import pytest

from flexctl.control import design_controller, make_reference, wrap_controller
from flexctl.errors import InputError
from flexctl.loop.linear import linearise
from flexctl.model import Design, build, load_design, load_model
from flexctl.simulation.simulation import simulate
from tests.arms import rigid_link
from tests.designs import make_design
from tests.loops import close

KEPT = {"position": (0.0, 0.0), "rate": (1.0, 0.0), "acceleration": (1.0, 1.0)}
LAWS = ["joint-pd", "decoupling", "feedforward"]


def fed(design, feeds):
    """The design with `feed_forward`."""
    reference = {**design.reference.table(), "feed_forward": feeds}
    return Design.model_validate({**design.table(), "name": "trial", "reference": reference})


@pytest.mark.parametrize("feeds", KEPT)
@pytest.mark.parametrize("method", LAWS)
def test_a_law_gets_zero_for_what_is_not_fed_forward(make, method, feeds):
    arm = make["two-link"]((0.0, -9.81, 0.0), EI=40.0)
    design = make["design"]([-1.2, 0.3], [-0.5, 0.9], method, basis={"kind": "modes", "order": 1})
    blind, whole = (design_controller(arm, d) for d in (fed(design, feeds), design))
    rng, n = np.random.default_rng(3), whole.plant.n
    q_d, v_d, a_d = rng.normal(size=(3, 2))
    q, v, z = 0.01 * rng.normal(size=n), rng.normal(size=n), np.zeros(whole.n_state)
    by_rate, by_acceleration = KEPT[feeds]

    found = blind.evaluate("law", 0.0, z, q_d, v_d, a_d, q, v)[0]
    expected = whole.evaluate("law", 0.0, z, q_d, by_rate * v_d, by_acceleration * a_d, q, v)[0]
    np.testing.assert_allclose(found, expected, rtol=1e-13)
    said = [words for words in blind.assumptions if "of its reference: " in words]
    assert len(said) == (feeds != "acceleration")


def test_an_observed_law_and_its_integral_get_no_derivatives_either():
    arm, design = load_model("theodore-ghosal-rrp"), load_design("rrp-observer")
    blind, whole = (design_controller(arm, d) for d in (fed(design, "position"), design))
    rng, n = np.random.default_rng(5), whole.plant.n
    q_d, v_d, a_d, q = np.array([0.4, 0.5, 0.6]), *rng.normal(size=(2, 3)), np.zeros(n)
    q[:3] = q_d
    z = np.concatenate([q, 0.1 * rng.normal(size=n)])

    found = blind.evaluate("law", 0.0, z, q_d, v_d, a_d, q, np.zeros(n))
    expected = whole.evaluate("law", 0.0, z, q_d, 0 * v_d, 0 * a_d, q, np.zeros(n))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


def test_a_law_from_outside_gets_no_derivatives_either():
    arm = rigid_link(0.5)
    design = fed(make_design([0.0], [1.0], "joint-pd", duration=0.5), "position")
    gains = wrap_controller([[20.0, 6.0]], arm, design, measures=["joint1", "joint1_rate"])
    symbols = [ca.SX.sym(name, k) for name, k in zip("tzqvay", (1, 0, 1, 1, 1, 1), strict=True)]
    tau = symbols[2] + 3 * symbols[3] + 5 * symbols[4] - symbols[5]
    function = ca.Function("own", symbols, [tau, ca.SX(0, 1)])
    own = wrap_controller(function, arm, design, measures=["joint1"])

    at = (0.0, np.zeros(0), np.array([0.3]), np.array([7.0]), np.array([9.0]))
    found = gains.evaluate("law", *at, np.array([0.1]), np.array([0.4]))[0]
    assert found.ravel() == pytest.approx([20 * 0.2 - 6 * 0.4], rel=1e-13)
    found = own.evaluate("law", *at, np.array([0.1]), np.array([0.4]))[0]
    assert found.ravel() == pytest.approx([0.2], rel=1e-13)


def test_the_linear_loop_is_not_driven_by_what_the_law_does_not_get(make):
    design = make["design"]([0.0], [1.0], "joint-pd", gains={"Gp": [20.0], "Gv": [6.0]})
    B = linearise(close(rigid_link(0.5), fed(design, "position"))).to_control().B

    # disturbance, desired position, rate and acceleration on [joint; rate]
    np.testing.assert_allclose(B[1], [2.0, 40.0, 0.0, 0.0], atol=1e-12)


def test_rates_on_measurement_only_follow_their_closed_form(make):
    # J q'' + Gv q' + Gp (q - W t) = 0: in the end Gv W/Gp late; with rates fed forward not at all
    gains = {"Gp": [20.0], "Gv": [8.0]}
    design = make["design"]([0.0], [0.5], "joint-pd", kind="spin-up", duration=1.0, gains=gains)
    late, exact = (
        simulate(close(rigid_link(0.5), fed(design, feeds)), duration=8.0).joint_error[0, -1]
        for feeds in ("position", "rate")
    )
    assert late == pytest.approx(-8.0 * 0.5 / 20.0, abs=1e-7)
    assert exact == pytest.approx(0.0, abs=1e-7)


def test_what_is_fed_forward_changes_no_reference(make):
    design = make["design"]([0.0], [1.0], "joint-pd")
    runs = [simulate(close(rigid_link(0.5), fed(design, f))) for f in ("position", "acceleration")]

    np.testing.assert_array_equal(runs[0].desired, runs[1].desired)
    np.testing.assert_array_equal(runs[0].desired_rate, runs[1].desired_rate)
    assert runs[0].desired_rate.any()


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ({"feed_forward": "speed"}, r"reference\.feed_forward: expected"),
        ({"to": None, "torque": [0.1], "feed_forward": "rate"},
         r"reference\.feed_forward: expected no such key, as torques are given"),
    ],
)  # fmt: skip
def test_what_cannot_be_fed_forward_is_refused(reference, message):
    method = "torque" if "torque" in reference else "joint-pd"
    table = {"summary": "s", "source": "own", "model": "arm", "method": method}
    own = {"kind": "bang-bang", "from": [0.0], "to": [1.0], "duration": 1.0} | reference
    table["reference"] = {key: value for key, value in own.items() if value is not None}
    if method == "joint-pd":
        table["gains"] = {"Gp": 1.0, "Gv": 1.0}
    with pytest.raises(InputError, match=message):
        build(Design, {"name": "trial", **table}, "trial")


def written(tmp_path, **columns):
    """The motion of a csv file with these columns."""
    table = np.array(list(columns.values())).T
    header = ",".join(columns)
    np.savetxt(tmp_path / "m.csv", table, fmt="%.17g", delimiter=",", header=header, comments="")
    table = make_design([0.0], [1.0], "joint-pd").table()
    table |= {"name": "x", "path": tmp_path / "x.toml"}
    table["reference"] = {"kind": "csv", "file": "m.csv"}
    return make_reference(Design.model_validate(table))


def test_rates_and_accelerations_of_a_file_are_used_where_given(tmp_path):
    t = np.linspace(0.0, 1.0, 12)
    own = {"joint1": np.sin(t), "joint2": t**2, "joint3": np.cos(t)}
    more = {"joint3_acceleration": 5 + t, "joint2_rate": 3 * t**3, "joint2_acceleration": 0 * t - 7}
    motion = written(tmp_path, t=t, **own, **more, joint1_rate=t**4)
    q, v, a = motion.sample(t[1:-1])
    t = t[1:-1]

    np.testing.assert_allclose(q, [np.sin(t), t**2, np.cos(t)], atol=1e-9)
    np.testing.assert_allclose(v, [t**4, 3 * t**3, -np.sin(t)], atol=1e-5)
    # of joint1 the derivative of its rates, of the others what the file says
    np.testing.assert_allclose(a, [4 * t**3, 0 * t - 7, 5 + t], atol=1e-7)


def test_rates_and_accelerations_that_contradict_the_motion_are_named(tmp_path):
    t = np.linspace(0.0, 3.0, 301)
    columns = {f"joint{k + 1}": np.sin(t) for k in range(5)} | {"joint4": 0 * t}
    columns |= {"joint1_rate": np.rad2deg(np.cos(t)), "joint2_rate": -np.cos(t)}
    columns |= {"joint3_acceleration": np.sin(t), "joint4_rate": 1e-4 * np.cos(t)}
    columns |= {"joint5_rate": np.cos(t), "joint5_acceleration": np.sin(t)}
    assert written(tmp_path, t=t, **columns).contradictions == (
        "joint1_rate is not the derivative of its positions",
        "joint2_rate is not the derivative of its positions",
        "joint3_acceleration is not the second derivative of its positions",
        "joint5_acceleration is not the derivative of its rates",
    )


def test_noise_bias_and_steps_of_an_encoder_are_no_contradiction(tmp_path):
    t, rng = np.linspace(0.0, 6.0, 3001), np.random.default_rng(1)
    s = np.clip((t - 1) / 2, 0, 1)
    q = 0.5 * (10 * s**3 - 15 * s**4 + 6 * s**5)
    v = 0.25 * (30 * s**2 - 60 * s**3 + 30 * s**4)
    a = 0.125 * (60 * s - 180 * s**2 + 120 * s**3)
    step = 2 * np.pi / 2**12
    steps = step * np.round(q / step)
    columns = {"joint1": steps, "joint2": steps, "joint3": steps}
    columns |= {"joint1_rate": v + 0.05 + 0.1 * rng.normal(size=len(t))}
    columns |= {"joint2_acceleration": a + 0.1 + 0.5 * rng.normal(size=len(t))}
    columns |= {"joint3_rate": v, "joint3_acceleration": a - 0.1}
    assert written(tmp_path, t=t, **columns).contradictions == ()


@pytest.mark.parametrize(
    "header",
    ["t,joint1,joint3_rate", "t,joint1_rate,joint1", "t,joint1,joint1_speed",
     "t,joint1,joint1_rate,joint1_rate"],
)  # fmt: skip
def test_columns_of_no_joint_or_twice_are_refused(tmp_path, header):
    count = header.count(",")
    (tmp_path / "m.csv").write_text(f"{header}\n0{',0' * count}\n1{',1' * count}\n")
    table = make_design([0.0], [1.0], "joint-pd").table()
    table |= {
        "name": "x",
        "path": tmp_path / "x.toml",
        "reference": {"kind": "csv", "file": "m.csv"},
    }
    with pytest.raises(InputError, match=r"header: expected t, joint1[ ,].*joint1_rate"):
        design_controller(rigid_link(0.5), Design.model_validate(table))
