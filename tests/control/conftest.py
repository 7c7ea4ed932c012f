"""Controllers and states to test laws with; no compiler: every function is called a few times."""

from functools import cache

import numpy as np
import pytest

from flexctl.control import design_controller
from tests.arms import (
    middle_pose,
    rigid_sliding,
    rigid_two_link,
    rrp,
    sliding_first,
    spatial,
    two_link,
)
from tests.designs import make_design

ARMS = {
    "rrp": lambda: rrp((2.0, 3.0, -9.81), damping=0.02),
    "two-link": lambda: two_link((0.0, -9.81, 0.0)),
    "spatial": spatial,
    "sliding-first": sliding_first,
    "rigid-sliding": rigid_sliding,
    "rigid": rigid_two_link,
}


@pytest.fixture(scope="module", autouse=True)
def _interpreted(no_compiler):
    """Nothing here is worth compiling."""


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
def random_state():
    """random_state(plant, seed): q, v (n,) in the workspace, bent and moving."""

    def state(plant, seed):
        rng = np.random.default_rng(seed)
        q = rng.uniform(-0.03, 0.03, plant.n)
        q[: plant.m] = middle_pose(plant.arm) + rng.uniform(-0.1, 0.1, plant.m)
        return q, rng.normal(size=plant.n)

    return state
