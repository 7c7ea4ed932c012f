"""Shares of critical loads against the closed forms of columns and of bars that buckle sideways."""

import numpy as np
import pytest

from flexctl.plant.buckling import lateral_shares, load_shares, missing_terms

GREENHILL, EULER = 7.8373, np.pi**2 / 4  # rho A g l^3 / EI, P l^2 / EI
TIP, OWN = 4.0126, 12.85  # P l^2 and q l^3 over sqrt(EI GJ) [TimoshenkoGere61]
LEVEL = np.zeros(1)


def bar(make, gravity, EI, payload=None, density=1e-9, **more):
    """A line of 2 m along x."""
    link = {"joint": "revolute", "length": 2.0, "mass_per_length": density, "EI": EI}
    return make["arm"]([link | more], gravity, payload)


def twisting(make, EI, payload=None, density=1e-9, GJ=1.5, gravity=(0.0, -9.81, 0.0)):
    """The same with torsion, its weight along -y, where it is stiff."""
    torsion = {"GJ": GJ, "polar_inertia": 1e-4}
    return bar(make, gravity, EI, payload, density, torsion=torsion)


@pytest.mark.parametrize("foreshortening", [True, False])
def test_a_column_bears_its_own_weight_as_greenhill_says(make, foreshortening):
    arm = bar(make, (-9.81, 0, 0), {"y": 50.0}, density=0.4, foreshortening=foreshortening)
    found = load_shares(arm, LEVEL)
    share = 0.4 * 9.81 * 2.0**3 / 50.0 / GREENHILL

    assert found.arm == pytest.approx(share, rel=5e-3)
    assert found.largest == found.arm
    assert found.left_out == pytest.approx(0.0 if foreshortening else share, rel=5e-3, abs=1e-12)


def test_a_column_bears_a_weight_at_its_tip_as_euler_says(make):
    arm = bar(make, (-9.81, 0.0, 0.0), {"y": 50.0}, {"mass": 2.0})

    assert load_shares(arm, LEVEL).arm == pytest.approx(2 * 9.81 * 4 / 50 / EULER, rel=1e-2)


def test_the_share_is_where_the_model_itself_buckles(make, plant_of):
    # the stiffness of the standing arm with foreshortening is singular at a share of one
    arm = bar(make, (-9.81, 0.0, 0.0), {"y": 50.0}, {"mass": 2.0})
    weight = 9.81 / load_shares(arm, LEVEL).arm
    plant = plant_of(arm.model_copy(update={"gravity": (-weight, 0.0, 0.0)}))
    K = plant.tangent_stiffness(np.zeros(plant.n))[1:, 1:]

    assert abs(np.linalg.eigvalsh(K)[0]) < 1e-9 * np.linalg.eigvalsh(K)[-1]


@pytest.mark.parametrize(
    ("EI", "higher"),
    [({"z": 0.7}, 1.0), ({"y": 70.0, "z": 0.7}, 1 / np.sqrt(0.99 * (1 - 1.5 / 70)))],
)
def test_a_bar_buckles_sideways_under_a_weight_at_its_tip(make, EI, higher):
    # of EI 1 and 100, GJ 1 a chain of segments buckles at 1.010 times what a rigid plane bears
    share = lateral_shares(twisting(make, EI, {"mass": 0.05}), LEVEL)["link1"]

    assert share == pytest.approx(0.05 * 9.81 * 4 / (TIP * np.sqrt(0.7 * 1.5) * higher), rel=1e-3)


def test_a_bar_buckles_sideways_under_its_own_weight(make):
    share = lateral_shares(twisting(make, {"z": 0.7}, density=0.02), LEVEL)["link1"]

    assert share == pytest.approx(0.02 * 9.81 * 8 / (OWN * np.sqrt(0.7 * 1.5)), rel=2e-3)


@pytest.mark.parametrize(("com", "grows"), [(0.1, True), (-0.1, False)])
def test_a_load_above_the_tip_buckles_a_bar_sooner(make, com, grows):
    level, high = (
        lateral_shares(twisting(make, {"z": 0.7}, {"mass": 0.05, "com": c}), LEVEL)["link1"]
        for c in ([0.0, 0.0, 0.0], [0.0, com, 0.0])
    )

    assert (high > 1.01 * level) if grows else (high < 0.99 * level)


@pytest.mark.parametrize(
    ("EI", "gravity"),
    [({"y": 0.7, "z": 70.0}, (0, -9.81, 0)), ({"y": 70.0, "z": 0.7}, (-9.81, 0, 0))],
)
def test_what_is_loaded_where_it_is_soft_or_along_its_line_does_not_buckle_sideways(
    make, EI, gravity
):
    arm = twisting(make, EI, {"mass": 0.05}, gravity=gravity)

    assert lateral_shares(arm, LEVEL)["link1"] == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize(("share", "said"), [(0.0099, 0), (0.0101, 1)])
def test_lateral_terms_are_named_from_one_percent_on(make, share, said):
    critical = TIP * np.sqrt(0.7 * 1.5) / 4 / 9.81
    arm = twisting(make, {"z": 0.7}, {"mass": share * critical})
    sentences = missing_terms(arm, LEVEL)

    assert len(sentences) == said
    assert all("lateral buckling of link1" in s for s in sentences)


@pytest.mark.parametrize(("pull", "does"), [(-9.81, "softens"), (9.81, "stiffens")])
def test_a_line_without_foreshortening_is_named_where_it_is_pressed_or_pulled(make, pull, does):
    arm = bar(make, (pull, 0, 0), {"y": 50.0}, {"mass": 2.0}, foreshortening=False)
    (said,) = missing_terms(arm, LEVEL)

    assert f"left out of link1, and with it how the weight along the links {does}" in said
    assert "63 %" in said  # 2 9.81 4/50 over pi^2/4, from below
    assert missing_terms(arm, np.array([np.pi / 2])) == ()


def test_without_gravity_nothing_buckles_and_nothing_is_missing(make):
    arm = bar(make, (0.0, 0.0, 0.0), {"y": 50.0}, {"mass": 2.0}, foreshortening=False)

    assert load_shares(arm, LEVEL).largest is None
    assert missing_terms(arm, LEVEL) == ()
