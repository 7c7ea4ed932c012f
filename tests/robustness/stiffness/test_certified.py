"""Certified stiffness errors against exact margins, and controllers with a wrong stiffness."""

import numpy as np
import pytest

from flexctl.model.lookup import load_design, load_model
from flexctl.model.record import BasisChoice
from flexctl.plant.plant import assemble_plant
from flexctl.robustness.certificates.pieces import GAP
from flexctl.robustness.stiffness.margin import stiffness_margin
from flexctl.robustness.stiffness.model_errors import one_error_in_modes
from tests.robustness.stiffness.margin_witness import (
    all_parts,
    growth,
    matrix,
    rebuilt_loop,
    unknown_loop,
)

TWO = BasisChoice(kind="modes", order=2)
BASIS = {"kind": "modes", "order": 1}
ONE = BasisChoice(kind="modes", order=1)
LOOPS = [{}, {"sample_time": 2e-3}, {"sample_time": 2e-3, "delay": 1e-3}]


def case(make, gravity=(0.0, 0.0, 0.0), **tables):
    arm = make["two-link"](gravity, EI=40.0)
    tables = {"method": "decoupling", "basis": BASIS} | tables
    return arm, make["design"]([0.0, 0.4], [0.3, 0.9], **tables)


@pytest.mark.slow_but("sampled")
@pytest.mark.parametrize("loop", LOOPS, ids=["continuous", "sampled", "delayed"])
def test_what_is_certified_lies_within_the_exact_margin_and_close_to_it(make, loop):
    arm, design = case(make, loop=loop)
    truth = ONE if loop else TWO  # the second mode damps a law of one mode; sampled, it is unstable
    found = stiffness_margin(arm, design, truth_basis=truth, n_path=3, certify=True)
    judged = [(found.exact, found.certified), *((p.interval, p.certified) for p in found.path)]

    assert len(judged) == 4
    for exact, certified in judged:
        assert exact.alpha_lower <= certified.alpha_lower <= (1 - 1.001 * GAP) * exact.alpha_lower
        assert (1 - 1.001 * GAP) * exact.alpha_upper <= certified.alpha_upper <= exact.alpha_upper
        assert not certified.why
    low, high = found.certified_along
    assert low == max(p.certified.alpha_lower for p in found.path)
    assert high == min(p.certified.alpha_upper for p in found.path)


@pytest.mark.parametrize("loop", LOOPS, ids=["continuous", "sampled", "delayed"])
@pytest.mark.parametrize("alpha", [-0.7, 0.0, 0.3])
def test_the_loop_in_its_modes_has_the_eigenvalues_of_a_rebuilt_one(make, loop, alpha):
    arm, design = case(make, loop=loop)
    truth = assemble_plant(arm, TWO, interpreted=True)
    unknown = unknown_loop(arm, design, design.basis, truth)
    joints, weight = unknown.controller.reference.final, 0.0
    rebuilt = rebuilt_loop(arm, design, design.basis, truth, alpha)
    own = np.linalg.eigvals(one_error_in_modes(unknown, joints, weight).about(alpha).A)
    expected = np.linalg.eigvals(matrix(rebuilt, at=(joints, weight)))

    size = np.abs(expected).max()
    assert np.abs(own[:, None] - expected).min(axis=0) == pytest.approx(0, abs=1e-7 * size)


def test_under_gravity_nothing_is_certified_where_the_error_moves_the_equilibrium(make):
    arm, design = case(make, gravity=(0.0, -1.0, 0.0))
    found = stiffness_margin(arm, design, truth_basis=TWO, n_path=2, certify=True)

    assert not found.exact.proven
    assert not found.certified.proven
    assert found.certified.why == "the equilibrium moves with the error"
    assert found.certified_along is None


def test_under_gravity_integral_action_leaves_the_margin_to_be_certified(make):
    gains = {"Gp": [100.0], "Gv": [20.0], "Gi": [50.0]}
    arm, design = case(make, gravity=(0.0, -1.0, 0.0), gains=gains)
    found = stiffness_margin(arm, design, truth_basis=TWO, n_path=0, certify=True)

    assert found.exact.proven
    assert found.certified.alpha_upper == pytest.approx(found.exact.alpha_upper, rel=1.1 * GAP)


def test_undamped_modes_are_never_certified(make):
    arm, design = case(make)
    found = stiffness_margin(arm, design, truth_basis=ONE, n_path=0, certify=True)

    assert found.exact.alpha_upper == 0
    assert not found.certified.proven
    assert found.certified.why == "the loop without error is not proven to be stable"


@pytest.mark.slow
def test_poses_at_which_the_loop_is_unstable_are_told():
    design = load_design("two-link-decoupling")
    found = stiffness_margin(load_model(design.model), design, n_path=2, certify=True)

    assert found.certified.proven
    assert [pose.certified.proven for pose in found.path] == [False, False]
    assert {pose.certified.why for pose in found.path} == {
        "the loop is unstable there without error"
    }


def test_without_the_wish_nothing_is_certified(make):
    arm, design = case(make)
    found = stiffness_margin(arm, design, truth_basis=TWO, n_path=2)

    assert found.certified is None
    assert found.certified_along is None
    assert all(pose.certified is None for pose in found.path)


SLOW = ["rrp-gentle", "rrp-composite", "rrp-observer", "subudhi-morris-observer"]
SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in SLOW]


@pytest.mark.slow_but("hub-pd", "two-link-decoupling")
@pytest.mark.parametrize(
    "name",
    ["hub-pd", "two-link-decoupling", "subudhi-morris-decoupling", "subudhi-morris-lqr", *SLOW],
)
def test_certified_designs_of_the_catalogue_are_stable_with_a_wrong_stiffness(name):
    design = load_design(name)
    arm = load_model(design.model)
    found = stiffness_margin(arm, design, truth_basis=TWO, n_path=0, certify=True)
    loop = unknown_loop(arm, design, design.basis, assemble_plant(arm, TWO, interpreted=True))
    low, high = found.certified.alpha_lower, found.certified.alpha_upper

    assert max(found.exact.alpha_lower, -1.0) <= low < 0 < high <= found.exact.alpha_upper
    assert not found.certified.why
    for alpha in np.linspace(max(low, -0.99), min(high, 20.0), 7):
        assert growth(loop, all_parts(loop, alpha)) < 0
