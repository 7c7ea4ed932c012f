"""Friction of a joint in its file: what is refused, what it holds, and how it creeps."""

import numpy as np
import pytest
from scipy.optimize import brentq

from flexctl.errors import InputError
from flexctl.model import Friction
from flexctl.model.arm import Arm
from flexctl.model.refusals import build_file
from flexctl.model.settings import apply_settings
from flexctl.model.units import unit_of

RUBS = {"viscous": 0.2, "coulomb": 2.0, "static": 2.5, "stribeck_velocity": 0.01}

REFUSED = [
    ({"static": 1.0}, "friction.static: expected at least coulomb (2), or no such key, got 1.0"),
    (
        {"stribeck_velocity": None},
        "friction.stribeck_velocity: expected a velocity, as static is above coulomb, got nothing",
    ),
    (
        {"static": None},
        "friction.static: expected a value, as there is a stribeck_velocity, got nothing",
    ),
    (
        {"smoothing_velocity": 0.02},
        "friction.smoothing_velocity: expected less than stribeck_velocity (0.01), before which",
    ),
    (
        {"static": 50.0},
        "friction.static: expected less than the largest torque at rest (40): the joint could",
    ),
    (
        {"static": None, "stribeck_velocity": None, "coulomb": 60.0},
        "friction.coulomb: expected less than the largest torque at rest (40): the joint could",
    ),
    (
        {"model": "lugre", "sigma0": 1e4, "sigma1": 10.0, "coulomb": 0.0},
        'friction.coulomb: expected more than 0, as model is "lugre": bristles yield at g(v)',
    ),
    ({"viscous": -0.1}, "friction.viscous: expected at least 0, got -0.1"),
    ({"model": "dahl"}, "friction.model: expected one of"),
    ({"side": "gear"}, "friction.side: expected one of"),
    ({"columb": 1.0}, "friction.columb: expected a known key (nearest: coulomb), got columb"),
]


def rubbing_arm(**changed):
    """One rigid link with a torque limit; None leaves a key of its friction out."""
    friction = {k: x for k, x in (RUBS | changed).items() if x is not None}
    link = {"joint": "revolute", "length": 1.0, "dh": {"a": 1.0}, "mass_per_length": 1.0}
    link |= {"limits": {"torque": 40.0}, "friction": friction}
    table = {"summary": "own", "source": "own", "gravity": [0.0, 0.0, 0.0], "link": [link]}
    return build_file(Arm, table, "arm", None)


@pytest.mark.parametrize(("changed", "message"), REFUSED)
def test_impossible_friction_is_refused_in_one_line(changed, message):
    with pytest.raises(InputError) as refused:
        rubbing_arm(**changed)
    assert str(refused.value).startswith(f"arm: link[1].{message}")
    assert "\n" not in str(refused.value)


def test_the_side_of_a_motor_before_the_gear_of_a_rigid_joint_is_refused():
    table, motor = rubbing_arm().table(), {"torque_constant": 0.1, "gear": 100.0}
    table["link"][0]["motor"] = motor
    build_file(Arm, table, "arm", None)  # that is the default: units of the joint
    table["link"][0]["friction"]["side"] = "motor"
    message = (
        r'friction\.side: expected "link" or no such key, as the joint is rigid: .*'
        r'sigma1 times gear\^2, velocities divided by gear\), got "motor"'
    )
    with pytest.raises(InputError, match=message):
        build_file(Arm, table, "arm", None)


def test_friction_on_the_motors_side_is_compared_with_the_torque_before_the_gear():
    arm = rubbing_arm()
    gear = {"rotor_inertia": 1e-4, "gear": 20.0, "stiffness": 500.0}
    table = arm.table()
    table["link"][0]["flexible_joint"] = gear
    with pytest.raises(InputError, match=r"largest torque at rest \(2 on the motor's side\)"):
        build_file(Arm, table, "arm", None)
    table["link"][0]["friction"]["side"] = "link"
    assert build_file(Arm, table, "arm", None).links[0].friction_ratio == 1.0


def test_static_friction_is_the_coulomb_friction_unless_written():
    assert Friction(coulomb=2.0).breakaway == 2.0
    assert not Friction(viscous=1.0).dry


def test_settings_change_friction():
    arm = apply_settings(rubbing_arm(), ["link1.friction.coulomb=*0.5"])
    assert arm.links[0].friction.coulomb == 1.0


def test_numbers_of_friction_have_units(make):
    arm, design = rubbing_arm(), make["design"]([0.0], [1.0])
    assert unit_of("link1.friction.viscous", arm, design) == "N m s/rad"
    assert unit_of("link1.friction.stribeck_velocity", arm, design) == "rad/s"


def test_creep_is_the_rate_at_which_friction_carries_the_load():
    friction = Friction(**RUBS, smoothing_velocity=1e-6)
    for load in (0.3, 1.2, 2.4):
        exact = brentq(lambda v, F=load: friction.level(v) * np.tanh(v / 1e-6) - F, 0.0, 1e-5)
        # g differs from g(0) by less than (v/v_S)^2 = 1e-6 of it
        assert friction.creep(load) == pytest.approx(exact, rel=1e-4)
    assert friction.creep(2.5) == np.inf


def test_smoothed_friction_reaches_less_than_static_where_velocities_are_close():
    # maximum of (2 + 0.5 exp(-x^2/100)) tanh x at the root of its derivative
    def slope(x):
        drop = 0.5 * np.exp(-(x**2) / 100)
        return -x / 50 * drop * np.tanh(x) + (2 + drop) / np.cosh(x) ** 2

    x = brentq(slope, 1.0, 6.0)
    peak = (2 + 0.5 * np.exp(-(x**2) / 100)) * np.tanh(x)
    assert Friction(**RUBS).reached == pytest.approx(peak, rel=1e-5)
    assert peak < 0.98 * 2.5


def test_a_motor_whose_voltage_stalls_below_its_friction_is_refused():
    """10 V over 2 ohm and 0.1 N m/A give 0.5 N m at rest."""
    motor = {"command": "voltage", "resistance": 2.0, "torque_constant": 0.1, "back_emf": 0.1}
    link = {"joint": "revolute", "length": 1.0, "dh": {"a": 1.0}, "mass_per_length": 1.0}
    link |= {"motor": motor | {"voltage_limit": 10.0}}
    table = {"summary": "own", "source": "own", "gravity": [0.0, 0.0, 0.0]}
    build_file(Arm, table | {"link": [link | {"friction": {"coulomb": 0.4}}]}, "arm", None)
    with pytest.raises(InputError, match="less than the largest torque at rest"):
        build_file(Arm, table | {"link": [link | {"friction": {"coulomb": 0.6}}]}, "arm", None)
