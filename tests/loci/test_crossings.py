"""Where branches cross the imaginary axis, against what is known by hand and against bisection."""

from typing import Any

import numpy as np
import pytest
from scipy.linalg import block_diag

from flexctl.control import design_controller
from flexctl.loci.branches import follow
from flexctl.loci.crossings import find_crossings
from flexctl.loci.family import trace_loci
from flexctl.loci.sources import Source
from flexctl.loci.variation import Variation, over_number
from flexctl.loop.closed_loop import close_around
from flexctl.loop.eigenvalues import spectral_abscissa
from flexctl.loop.linear import linearise_loop
from flexctl.loop.setup import Setup
from flexctl.model.lookup import load_design, load_model
from flexctl.model.record import BasisChoice
from flexctl.model.settings import apply_settings
from flexctl.plant.plant import assemble_plant


def pair(sigma, omega):
    return np.array([[sigma, omega], [-omega, sigma]])


def unasked(_: float) -> Any:
    raise AssertionError("neither names nor fields are asked for")


def crossings(matrix, grid, period=None):
    source = Source(
        parameter="s",
        matrix=matrix,
        names=unasked,
        fields=unasked,
        sample_time=lambda _: period,
    )
    return find_crossings(source, follow(source.matrix, np.asarray(grid, dtype=float)))


@pytest.mark.parametrize("points", [2, 7])
def test_a_pair_crosses_where_its_real_part_is_zero(points):
    found, stable = crossings(
        lambda s: block_diag(pair(s**2 - 0.25, 3 + s), [[-1.0]]), np.linspace(0, 1, points)
    )

    (one,) = found
    assert one.s == pytest.approx(0.5, abs=1e-9)
    assert one.value == pytest.approx(3.5j, abs=1e-8)
    assert (one.unstable, one.whole) == ("above", True)
    assert stable == ((0.0, one.s),)


def test_a_real_eigenvalue_crosses_at_zero():
    found, stable = crossings(lambda s: block_diag(pair(-1, 4), [[0.3 - s]]), [0.0, 0.7, 1.0])

    (one,) = found
    assert one.s == pytest.approx(0.3, abs=1e-9)
    assert abs(one.value) < 1e-9
    assert (one.unstable, one.whole) == ("below", True)
    assert stable == ((one.s, 1.0),)


def test_only_the_first_limit_is_that_of_the_loop():
    found, stable = crossings(
        lambda s: block_diag(pair(s - 0.25, 3), pair(2 * (s - 0.75), 9)), np.linspace(0, 1, 4)
    )

    assert [one.s for one in found] == pytest.approx([0.25, 0.75], abs=1e-9)
    assert [one.whole for one in found] == [True, False]
    assert stable == ((0.0, found[0].s),)


def test_near_neighbours_are_not_taken_for_the_branch_that_crosses():
    # two pairs of nearly one frequency whose ways cross each other beside the axis
    found, _ = crossings(
        lambda s: block_diag(pair(s - 0.31, 5 + s), pair(-0.01, 5.6 - s)), np.linspace(0, 1, 3)
    )

    (one,) = found
    assert one.s == pytest.approx(0.31, abs=1e-9)
    assert one.value == pytest.approx(5.31j, abs=1e-8)


def test_a_loop_may_be_stable_between_two_limits():
    found, stable = crossings(lambda s: pair((s - 0.2) * (s - 0.9), 2), np.linspace(0, 1, 5))

    assert [one.unstable for one in found] == ["below", "above"]
    assert np.array(stable) == pytest.approx(np.array([[0.2, 0.9]]), abs=1e-9)


def test_a_free_body_and_undamped_modes_are_no_limits():
    rng = np.random.default_rng(3)
    T = np.eye(6) + 0.3 * rng.standard_normal((6, 6))
    free = np.array([[0.0, 1.0], [0.0, 0.0]])
    found, stable = crossings(
        lambda s: T @ np.asarray(block_diag(free, pair(0, 3 + s), pair(-1, 7))) @ np.linalg.inv(T),
        np.linspace(0, 1, 9),
    )

    assert found == ()
    assert stable == ((0.0, 1.0),)


def test_of_a_sampled_law_the_limit_is_the_unit_circle():
    period = 0.1
    found, _ = crossings(
        lambda s: (0.8 + s) * pair(np.cos(0.4), np.sin(0.4)), np.linspace(0, 0.5, 4), period
    )

    (one,) = found
    assert one.s == pytest.approx(0.2, abs=1e-9)
    assert one.value == pytest.approx(0.4j / period, abs=1e-7)


@pytest.mark.slow
def test_the_abscissa_of_an_arm_changes_its_sign_at_the_limit():
    # where bisection on the abscissa of the loop, made anew, ends: within 1e-6 of the limit
    basis = BasisChoice(kind="modes", order=1)
    arm = load_model("planar-two-link")
    design = load_design("two-link-decoupling").model_copy(
        update={"basis": basis, "second_loop": None}
    )
    varied = Variation(
        key="link2.EI",
        setup=Setup.of(arm, design.basis, truth_basis=basis),
        design=design,
        scaled=True,
    )
    found = trace_loci(over_number(varied), np.array([0.9, 1.1]))
    controller = design_controller(arm, design, interpreted=True)

    def poles(factor):
        truth = assemble_plant(
            apply_settings(arm, [f"link2.EI=*{factor!r}"]), basis, interpreted=True
        )
        closed = close_around(controller, truth)
        return linearise_loop(closed, controller.reference.final, 0.0).poles

    (one,) = found.crossings
    below, above = (poles(one.s * (1 + off)) for off in (-1e-6, 1e-6))
    assert spectral_abscissa(below) > 0 > spectral_abscissa(above)
    assert np.abs(below - one.value).min() < 1e-5
    assert (one.unstable, one.whole) == ("below", True)
    assert found.stable == ((one.s, 1.1),)
