"""Arms to test with, each with every feature of its kind, and plants and witnesses of them."""

import runpy
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from flexctl.model.arm import Arm
from flexctl.model.lookup import load_model
from flexctl.model.record import BasisChoice
from flexctl.plant.plant import assemble_plant

# tests are no package, so a module beside this one is read by its path
Witness = runpy.run_path(str(Path(__file__).with_name("witness.py")))["Witness"]
TURN = np.pi / 2


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory):
    """Compile into a folder of this session: no library of the user is met or left behind."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FLEXCTL_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


def make_arm(links, gravity=(0.0, 0.0, 0.0), payload=None, **more):
    """Build an arm from tables as a file would hold them."""
    table = {"name": "arm", "summary": "made for a test", "source": "own", "link": links}
    table |= {"gravity": list(gravity), "payload": payload or {}, **more}
    return Arm.model_validate(table)


def rrp(gravity=(0.0, 0.0, 0.0), EI=1165.4916, foreshortening=True, damping=0.0):
    """The arm of [TG95], or with EI = None its rigid twin."""
    first = {"joint": "revolute", "dh": {"a": 0.0, "alpha": TURN, "d": 0.1}}
    first |= {"length": 0.1, "mass_per_length": 37.051, "joint_inertia": 0.352}
    second = {"joint": "revolute", "dh": {"a": 1.0, "alpha": TURN}, "length": 1.0}
    second |= {"mass_per_length": 0.331, "joint_inertia": 3.2}
    third = {"joint": "prismatic", "total_length": 1.3, "mass_per_length": 0.331}
    if EI is not None:
        elastic = {"foreshortening": foreshortening, "damping_ratio": damping}
        second |= {"EI": {"y": EI, "z": 1.3 * EI}} | elastic
        third |= {"EI": {"x": EI, "y": 0.8 * EI}} | elastic
    return make_arm([first, second, third], gravity, {"mass": 0.0828})


def two_link(gravity=(0.0, 0.0, 0.0), EI=4.0, foreshortening=True):
    """A planar arm with a hub and a payload that has its own inertia, off the tip."""
    hub = {"mass": 0.7, "com": [0.03, 0.02, 0.0], "inertia": [0.01, 0.02, 0.025]}
    links = [
        {"joint": "revolute", "length": length, "mass_per_length": 0.2, "joint_inertia": 0.05}
        | {"hub": hub, "foreshortening": foreshortening}
        | ({"EI": {"y": EI}} if EI else {"dh": {"a": length}})
        for length in (0.5, 0.4)
    ]
    payload = {"mass": 0.1, "com": [0.02, 0.01, 0.0], "inertia": [0.001, 0.001, 0.0015]}
    return make_arm(links, gravity, payload)


def spatial():
    """Every feature at once: twists, offsets, a sliding middle link, a turned and moved base."""
    hub = {"mass": 0.4, "com": [0.02, -0.03, 0.05], "inertia": [0.01, 0.012, 0.015]}
    first = {"joint": "revolute", "dh": {"alpha": 0.7, "d": 0.3, "theta": 0.4}, "length": 0.6}
    first |= {"mass_per_length": 0.5, "EI": {"z": 30.0, "y": 20.0}, "hub": hub}
    middle = {"joint": "prismatic", "dh": {"alpha": -1.1, "d": 0.15, "theta": 0.5}}
    middle |= {"total_length": 0.9, "mass_per_length": 0.4, "EI": {"y": 25.0, "x": 15.0}}
    middle |= {"hub": {"mass": 0.3, "inertia": [0.01, 0.01, 0.01]}, "joint_inertia": 0.2}
    last = {"joint": "revolute", "dh": {"a": 0.35, "alpha": 0.9, "d": -0.1}, "length": 0.5}
    last |= {"mass_per_length": 0.6, "hub": hub, "joint_inertia": 0.03}
    payload = {"mass": 0.5, "com": [0.05, 0.02, -0.04], "inertia": [0.002, 0.003, 0.004]}
    base = {"position": [0.1, -0.2, 0.3], "rotation_vector": [0.4, -0.9, 0.6]}
    return make_arm([first, middle, last], (1.0, -9.0, 3.0), payload, base=base)


def sliding_first():
    """A flexible sliding link that carries a flexible revolute one, bending in one plane each."""
    first = {"joint": "prismatic", "total_length": 1.1, "mass_per_length": 0.7}
    first |= {"dh": {"alpha": 0.5}, "EI": {"x": 9.0}, "joint_inertia": 0.1}
    second = {"joint": "revolute", "length": 0.7, "mass_per_length": 0.3, "EI": {"z": 5.0}}
    return make_arm([first, second | {"dh": {"alpha": 0.2}}], (0.0, 2.0, -9.81))


def rigid_sliding():
    """Rigid links only: one on its axis pointing down, a sliding one with a twist and an offset."""
    first = {"joint": "revolute", "dh": {"alpha": 1.2, "d": -0.4}, "mass_per_length": 2.0}
    second = {"joint": "prismatic", "dh": {"a": 0.2, "alpha": 0.8, "theta": 0.3, "d": 0.1}}
    second |= {"total_length": 0.8, "mass_per_length": 1.5}
    third = {"joint": "revolute", "dh": {"a": 0.5}, "mass_per_length": 0.9}
    return make_arm([first, second, third], (0.0, -3.0, -9.81), {"mass": 0.2, "com": [0, 0, 0.1]})


ARMS = {
    "rrp-file": lambda: load_model("theodore-ghosal-rrp"),
    "two-link-file": lambda: load_model("planar-two-link"),
    "hub-file": lambda: load_model("single-link-hub"),
    "rrp": lambda: rrp((0.0, 0.0, -9.81)),
    "two-link": lambda: two_link((0.0, -9.81, 0.0)),
    "spatial": spatial,
    "sliding-first": sliding_first,
    "rigid-sliding": rigid_sliding,
}


@pytest.fixture(scope="session")
def arms():
    """Arms by name."""
    return {name: build() for name, build in ARMS.items()}


@pytest.fixture(scope="session")
def build():
    """Builders of arms with parameters."""
    return {"rrp": rrp, "two-link": two_link, "arm": make_arm}


@pytest.fixture(scope="session")
def interpreted():
    """interpreted(arm, kind, order): a plant that is not compiled."""

    def plant(arm, kind="modes", order=2):
        return assemble_plant(arm, BasisChoice(kind=kind, order=order), interpreted=True)

    return plant


@pytest.fixture(scope="session")
def plant_of(arms):
    """plant_of(name, kind, order): an interpreted plant, built once per session."""

    @cache
    def plant(name, kind="modes", order=2):
        return assemble_plant(arms[name], BasisChoice(kind=kind, order=order), interpreted=True)

    return plant


@pytest.fixture(scope="session")
def witness_of(arms):
    """witness_of(name, kind, order): the same arm as a sum over material points."""
    return cache(lambda name, kind="modes", order=2: Witness(arms[name], kind, order))


@pytest.fixture(scope="session")
def witness():
    """Make a witness of any arm: witness(arm, kind, order)."""
    return Witness


@pytest.fixture(scope="session")
def random_state():
    """random_state(plant, seed): q, v and a in the workspace, deflections up to a tenth."""

    def state(plant, seed):
        rng = np.random.default_rng(seed)
        q = rng.uniform(-0.06, 0.06, plant.n)
        for j, link in enumerate(plant.arm.links):
            free = link.length * rng.uniform(0.35, 0.95) - link.dh.d
            q[j] = free if link.joint == "prismatic" else rng.uniform(-3, 3)
        return q, rng.normal(size=plant.n), rng.normal(size=plant.n)

    return state
