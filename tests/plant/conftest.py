"""Arms by name, plants and witnesses of them, states in their workspace."""

from functools import cache

import numpy as np
import pytest

from flexctl.model.lookup import load_model
from tests.arms import plant_of, rigid_sliding, rrp, sliding_first, spatial, two_link
from tests.plant.witness import Witness

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


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory):
    """Compile into a new folder, also where the caller names one: nothing is met there."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FLEXCTL_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def arms():
    """Arms by name."""
    return {name: build() for name, build in ARMS.items()}


@pytest.fixture(scope="session")
def plant_named(arms):
    """plant_named(name, kind, order): an interpreted plant, built once per session."""
    return cache(lambda name, kind="modes", order=2: plant_of(arms[name], kind, order))


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
