"""Arms and designs to make controllers of; no compiler, as every function is called a few times."""

import runpy
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from flexctl.control.controller import design_controller
from flexctl.model.design import Design
from flexctl.model.record import BasisChoice
from flexctl.plant.plant import assemble_plant

# tests are no package, so a module of another folder is read by its path
PLANT = runpy.run_path(str(Path(__file__).parents[1] / "plant" / "conftest.py"))
make_arm, rrp, two_link = PLANT["make_arm"], PLANT["rrp"], PLANT["two_link"]
EARTH = (0.0, 0.0, -9.81)
WEIGHTS = {"joint_error": 300.0, "joint_rate": 0.3, "strain_energy": 1.0, "kinetic_energy": 1.0}
WEIGHTS |= {"effort": 1e-4}


def rigid_two_link(gravity=(0.0, -9.81, 0.0)):
    """A planar arm of two rigid links, under gravity in its plane."""
    return two_link(gravity, EI=None)


def single_link(damping=0.01, hub=0.1, EI=18.4, **more):
    """One flexible link on a hub with a payload; linear but for squares of the deflection."""
    link = {"joint": "revolute", "length": 1.0, "mass_per_length": 0.54, "EI": {"y": EI}}
    link |= {"damping_ratio": damping, "joint_inertia": hub, "foreshortening": False} | more
    return make_arm([link], (0.0, 0.0, 0.0), {"mass": 0.25})


def make_design(start, end, method="decoupling", **tables):
    """Design from `start` to `end` (m,); keys `basis`, `gains`, `loop`, ... replace defaults.

    Of a spin-up `end` holds the rates, of method torque the torques; an open loop has no gains.
    """
    kind = tables.pop("kind", "bang-bang" if method == "torque" else "cycloid")
    ends = "torque" if method == "torque" else "rate" if kind == "spin-up" else "to"
    reference = {"kind": kind, "from": list(start)}
    reference[ends] = list(end)
    if kind != "setpoint":
        reference["duration"] = tables.pop("duration", 0.5)
    table = {"name": "trial", "summary": "made for a test", "source": "own", "model": "arm"}
    table |= {"method": method, "reference": reference}
    table |= {} if method in ("feedforward", "torque") else {"gains": {"Gp": [100.0], "Gv": [20.0]}}
    return Design.model_validate(table | tables)


ARMS = {
    "rrp": lambda: rrp((2.0, 3.0, -9.81), damping=0.02),
    "two-link": lambda: two_link((0.0, -9.81, 0.0)),
    "spatial": PLANT["spatial"],
    "sliding-first": PLANT["sliding_first"],
    "rigid-sliding": PLANT["rigid_sliding"],
    "rigid": rigid_two_link,
}


def middle_pose(arm):
    """Joint variables (m,) within every beam, no symmetry."""
    poses = [0.6 * k.length - k.dh.d if k.joint == "prismatic" else 0.5 for k in arm.links]
    return np.array(poses)


@pytest.fixture(scope="module", autouse=True)  # not of the session: tests of other folders compile
def _no_compiler():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FLEXCTL_CC", "none")
        yield


@pytest.fixture(scope="session")
def controller_of():
    """controller_of(arm name, method, Gi): controller with its plant, made once per session."""

    @cache
    def build(name, method="decoupling", integral=False):
        arm = ARMS[name]()
        m = len(arm.links)
        gains = {"Gp": [80.0 + 10 * j for j in range(m)], "Gv": [15.0 + j for j in range(m)]}
        gains |= {"Gi": [7.0 + j for j in range(m)]} if integral else {}
        end = middle_pose(arm)
        return design_controller(arm, make_design(end * 0.9, end, method, gains=gains))

    return build


@pytest.fixture(scope="session")
def plant_of():
    """plant_of(arm, kind, order): the arm in this discretisation."""

    def build(arm, kind="modes", order=2):
        return assemble_plant(arm, BasisChoice(kind=kind, order=order), interpreted=True)

    return build


@pytest.fixture(scope="session")
def random_state():
    """random_state(plant, seed): q, v (n,) in the workspace, bent and moving."""

    def state(plant, seed):
        rng = np.random.default_rng(seed)
        q = rng.uniform(-0.03, 0.03, plant.n)
        q[: plant.m] = middle_pose(plant.arm) + rng.uniform(-0.1, 0.1, plant.m)
        return q, rng.normal(size=plant.n)

    return state


@pytest.fixture(scope="session")
def make():
    """Builders: of arms, designs and their common parts."""
    return {
        "arm": make_arm,
        "design": make_design,
        "rigid": rigid_two_link,
        "rrp": rrp,
        "single": single_link,
        "two-link": two_link,
        "weights": WEIGHTS,
    }
