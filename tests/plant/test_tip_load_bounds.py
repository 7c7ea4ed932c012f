"""What shapes assume of the load beyond a link bounds the arm's frequencies, tightly or not.

The arm of [TG95], joints held and free, along its motion: assumed modes are Ritz's functions, so
that the k-th frequency lies above the exact one whatever load they assume; how far depends on it.
"""

import numpy as np
import pytest

from flexctl.control.reference import make_reference
from flexctl.model.lookup import load_design, load_model
from flexctl.model.record import BasisChoice
from flexctl.model.settings import apply_settings
from flexctl.plant.linearisation import linearise
from flexctl.plant.plant import assemble_plant

N_POSES, N_BOTH = 6, 8  # two modes on four lines
LOADS = {"M, J, D": ["M", "J", "D"], "M": ["M"], "none": []}


def along(arm, kind, order):
    """Frequencies [rad/s] with joints held and free, (poses, N_BOTH) each."""
    basis = BasisChoice.model_validate({"kind": kind, "order": order})
    plant = assemble_plant(arm, basis, interpreted=True)
    motion = make_reference(load_design("rrp-stiff"))
    joints = motion.sample(np.linspace(0, motion.duration, N_POSES))[0].T
    models = [linearise(plant, plant.straight(q)) for q in joints]
    held = np.arange(plant.n) >= plant.rigid
    return {
        "held": np.array([model.frequencies(held)[:N_BOTH] for model in models]),
        "free": np.array([model.frequencies()[3 : 3 + N_BOTH] for model in models]),
    }


@pytest.fixture(scope="module")
def elements():
    arm = load_model("theodore-ghosal-rrp")
    return {order: along(arm, "elements", order) for order in (8, 12)}


@pytest.fixture(scope="module")
def modes():
    """Two modes per line, whose shapes of link 2 know this much of link 3 at its full length."""

    def found(include):
        arm = load_model("theodore-ghosal-rrp")
        load = f"{{ reference_pose = {{ joint3 = 1.0 }}, include = {include} }}"
        return along(apply_settings(arm, [f"link2.tip_load={load}"]), "modes", 2)

    return {name: found(include) for name, include in LOADS.items()}


@pytest.mark.slow
@pytest.mark.parametrize("joints", ["held", "free"])
def test_twelve_elements_are_fine_enough_to_be_called_exact(elements, joints):
    off = elements[8][joints] / elements[12][joints] - 1

    assert (off > -1e-9).all()  # a finer mesh is lower, but for round-off
    assert off.max() < 4e-4


@pytest.mark.slow_but("none-held", "none-free")
@pytest.mark.parametrize("joints", ["held", "free"])
@pytest.mark.parametrize("load", LOADS)
def test_modes_bound_fine_elements_from_above_at_every_pose(modes, elements, load, joints):
    # what 12 elements are too high by is less than what they take off 8: their error falls as h^4
    coarse, fine = elements[8][joints], elements[12][joints]

    assert (modes[load][joints] >= fine - np.abs(coarse - fine)).all()


@pytest.mark.parametrize(
    ("load", "joints", "mode", "low", "high"),
    [
        ("M, J, D", "held", 0, -1e-7, 1e-5),
        ("M, J, D", "held", 2, 0, 2e-4),
        ("M", "held", 0, 5e-3, 2e-2),
        ("M", "held", 2, 0.10, 0.29),
        ("none", "held", 0, 1.5e-2, 4e-2),
        ("none", "held", 2, 0.15, 0.50),
        ("M, J, D", "free", 0, 0, 2e-4),
        ("M", "free", 0, 0.04, 0.05),
        ("none", "free", 0, 0.05, 0.09),
    ],
)
def test_the_less_shapes_know_the_higher_frequencies_are(
    modes, elements, load, joints, mode, low, high
):
    off = modes[load][joints][:, mode] / elements[12][joints][:, mode] - 1

    assert low <= off.min()
    assert off.max() <= high
