"""Numbers of an arm that stay free, against arms that are assembled with them."""

import numpy as np
import pytest

from flexctl.errors import InputError
from flexctl.model.link import RigidBody
from flexctl.model.lookup import load_model
from flexctl.model.record import BasisChoice
from flexctl.model.settings import apply_settings
from flexctl.plant.plant import assemble_plant

NAMES = ("payload.mass", "payload.inertia", "payload.com", "link2.hub.com")
ARMS = ["theodore-ghosal-rrp", "subudhi-morris-2r"]
HEAVY = {"mass": 0.37, "inertia": (0.01, 0.02, 0.03), "com": (0.05, 0.02, -0.03)}

HUB = (0.02, -0.04, 0.06)


def with_hub(arm, com):
    """Return the arm with a heavy hub of its second link, with this centre of mass."""
    hub = RigidBody(mass=0.8, com=com, inertia=(0.01, 0.02, 0.025))
    links = [
        link.model_copy(update={"hub": hub} if k == 1 else {}) for k, link in enumerate(arm.links)
    ]
    return arm.model_copy(update={"links": tuple(links)})


@pytest.fixture(
    scope="module", params=[(arm, e) for arm in ARMS for e in ("recursion", "lagrange")]
)
def pair(request):
    """A plant at values of its free payload, and one of the arm that has this payload."""
    name, engine = request.param
    arm = load_model(name).model_copy(update={"gravity": (1.0, 2.0, -9.81)})
    heavy = arm.payload.model_copy(update=HEAVY)
    light = {"mass": 0.2, "inertia": (1e-3, 2e-3, 3e-3), "com": (-0.01, 0.03, 0.02)}
    light = heavy.model_copy(update=light)
    made = [
        assemble_plant(
            with_hub(arm, hub).model_copy(update={"payload": load}),
            BasisChoice(kind="elements", order=1),
            engine=engine,
            interpreted=True,
            parameters=free,
        )
        for load, hub, free in ((light, (0.1, 0.1, 0.1), NAMES), (heavy, HUB, ()))
    ]
    free, fixed = made
    values = {f"payload.{key}": HEAVY[key] for key in HEAVY}
    return free.at(values | {"link2.hub.com": HUB}), fixed, free


def state(plant):
    random = np.random.default_rng(0)
    q = plant.pose() + 0.05 * random.standard_normal(plant.n)
    return q, random.standard_normal(plant.n), random.standard_normal(plant.m)


@pytest.mark.slow_but("pair2-tip", "pair3-damping", "pair3-tip")
@pytest.mark.parametrize("term", ["mass_matrix", "gravity", "tangent_stiffness", "damping", "tip"])
def test_a_free_payload_gives_the_terms_of_the_arm_that_has_it(pair, term):
    at, fixed, _ = pair
    q, *_ = state(fixed)
    np.testing.assert_allclose(
        getattr(at, term)(q), getattr(fixed, term)(q), rtol=1e-12, atol=1e-12
    )


@pytest.mark.slow_but("pair3", "pair2")
def test_a_free_payload_moves_as_the_arm_that_has_it(pair):
    at, fixed, free = pair
    q, v, tau = state(fixed)
    expected = fixed.forward_dynamics(q, v, tau)
    np.testing.assert_allclose(at.forward_dynamics(q, v, tau), expected, rtol=1e-10)
    assert np.abs(free.forward_dynamics(q, v, tau) - expected).max() > 1e-3 * np.abs(expected).max()


def test_values_share_the_functions(pair):
    at, _, free = pair
    assert at.casadi_functions is free.casadi_functions


@pytest.mark.parametrize(
    ("free", "values", "words"),
    [
        (("payload.masss",), {}, "nearest: payload.mass"),
        (("payload.mass",) * 2, {}, "each name once"),
        (
            ("payload.mass",),
            {"payload.inertia": (0, 0, 0)},
            "payload.inertia: expected a number that is not zero in the loop",
        ),
        (NAMES[:2], {"payload.inertia": 0.1}, "payload.inertia"),
        (NAMES[:2], {"payload.mass": np.nan}, "payload.mass"),
    ],
)
def test_other_names_and_sizes_are_refused(free, values, words):
    arm = load_model("single-link-hub")
    with pytest.raises(InputError, match=words):
        assemble_plant(arm, BasisChoice(order=1), interpreted=True, parameters=free).at(values)


@pytest.mark.parametrize("name", ["payload.inertia", "link1.hub.inertia"])
def test_inertias_that_no_body_has_are_refused(name):
    arm = apply_settings(load_model("single-link-hub"), [f"{name}=[0.1, 0.1, 0.1]"])
    plant = assemble_plant(arm, BasisChoice(order=1), interpreted=True, parameters=(name,))
    with pytest.raises(InputError, match=f"^{name}: expected none larger than the other two"):
        plant.at({name: [0.001, 0.001, 5.0]})
