"""Claims of [TG95] 1.1, 4, 4.1: against closed forms, the paper's figures, and the arm itself."""

import numpy as np
import pytest
from scipy.optimize import brentq

from examples.papers.theodore_ghosal import bases, meshes
from examples.papers.theodore_ghosal.arm import arm
from flexctl.beam.assumed_modes import assumed_modes, pinned_modes
from flexctl.model.record import BasisChoice
from flexctl.model.settings import apply_settings
from flexctl.plant.linearisation import linearise
from flexctl.plant.plant import assemble_plant


def exact_on_hub(hub, count):
    """Lowest frequencies of a line on a free hub, from the determinant of its four conditions."""

    def determinant(b):
        # phi = A sin + B sinh + C (cosh - cos) in b xi with phi'' = -hub b^4 phi' at the root
        s, c, sh, ch = np.sin(b), np.cos(b), np.sinh(b), np.cosh(b)
        rows = [[hub * b**3, hub * b**3, 2], [-s, sh, ch + c], [-c, ch, sh - s]]
        return np.linalg.det(np.array(rows) / [[1], [ch], [ch]])

    grid = np.arange(0.3, 12, 0.02)
    values = [determinant(b) for b in grid]
    starts = [i for i in range(len(grid) - 1) if values[i] * values[i + 1] < 0][:count]
    return np.array([brentq(determinant, grid[i], grid[i + 1], xtol=1e-13) for i in starts]) ** 2


@pytest.mark.parametrize("ratio", [0.1, 1.0, 100.0])
def test_the_frequencies_taken_for_exact_are(ratio):
    hub = 1 / 3 / ratio
    found = bases.bending_frequencies(assumed_modes(30), hub)[:3]
    assert found == pytest.approx(exact_on_hub(hub, 3), rel=1e-8)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_the_ranking_turns_where_both_err_alike(n):
    turn = bases.turning_point(n)
    assert bases.error("clamped", n, 0.98 * turn) < bases.error("pinned", n, 0.98 * turn)
    assert bases.error("clamped", n, 1.02 * turn) > bases.error("pinned", n, 1.02 * turn)


def test_pinned_modes_are_exact_on_no_hub():
    exact = np.array([3.92660231, 7.06858275]) ** 2  # tan b = tanh b
    assert bases.bending_frequencies(pinned_modes(2), 1e-12) == pytest.approx(exact)


def test_clamped_modes_are_better_where_the_paper_says():
    claim = bases.controlled_end()
    assert claim.verdict == "holds"
    assert claim.numbers["clamped"] < 1e-5
    assert claim.numbers["pinned"] > 0.2
    # findings.md, from tests/beam/test_unclamped_modes.py
    assert claim.numbers["clamped_2_at_10"] == pytest.approx(8e-4, rel=0.1)
    assert claim.numbers["pinned_2_at_0.01"] == pytest.approx(0.26, rel=0.03)


def test_both_frames_have_the_same_frequencies_and_other_modes_have_not():
    numbers = bases.equivalence().numbers
    assert numbers["same"] < 1e-10
    # pinned modes come down as 1/n: by 4 where they are 4 times as many
    assert numbers["pinned_8"] / numbers["pinned_32"] == pytest.approx(4, rel=0.1)


@pytest.mark.parametrize("key", ["free", "free_twisting"])
def test_the_swings_are_frequencies_of_the_arm(key):
    GJ, polar = bases.tube()
    setting = f"link2.torsion={{GJ={GJ!r}, polar_inertia={polar!r}}}"
    own = apply_settings(arm(), [setting] if key == "free_twisting" else [])
    plant = assemble_plant(own, BasisChoice(kind="elements", order=3), interpreted=True)
    found = linearise(plant, plant.straight([0.0, 0.0, 1.0])).frequencies()
    assert np.abs(found / bases.footnote_1().numbers[key] - 1).min() < 1e-3


def test_torsion_matters_on_the_papers_own_arm():
    claim = bases.footnote_1()
    assert claim.verdict == "differs"
    assert claim.numbers["held"] == pytest.approx(71.89, rel=1e-3)
    assert claim.numbers["held_twisting"] == pytest.approx(51.76, rel=1e-3)
    assert claim.numbers["axial"] > 30


@pytest.mark.parametrize("elements", [1, 2, 3])
def test_the_entries_of_table_1_come_out_but_for_one(elements):
    printed, found = meshes.TABLE_1[elements], meshes.table()[elements]
    off = np.abs(found[: len(printed)] / printed - 1) > 5e-5
    assert off.tolist() == [elements == 3, *[False] * (len(printed) - 1)]


def test_the_wrong_entry_of_table_1_is_named():
    claim = meshes.table_1()
    assert (claim.verdict, claim.numbers["entries"], claim.numbers["wrong"]) == ("differs", 18, 1)
    assert "3 elements, mode 1: 208.66" in claim.ours


def test_m_elements_give_m_modes():
    numbers = meshes.first_m().numbers
    assert numbers["worst_3"] == pytest.approx(3706.7 / 3661.1 - 1, rel=0.01)
    assert max(numbers[f"worst_{n}"] for n in (*range(1, 13), 24)) < 0.035
    assert min(numbers[f"beyond_{n}"] for n in (*range(1, 13), 24)) > 0.1


def test_elements_are_too_high_and_from_mesh_to_halved_mesh_less_so():
    assert meshes.overestimates().numbers["least"] > 0
    numbers = meshes.monotonic().numbers
    assert numbers["rise"] > 1e-3
    assert numbers["nested"] < 0
    assert numbers["order"] == pytest.approx(4, abs=0.1)


def test_matrices_are_banded_and_of_modes_not_diagonal():
    assert meshes.banded().numbers["band"] == 3
    numbers = meshes.diagonal().numbers
    assert max(numbers["alone"], numbers["stiffness"], numbers["end"]) < 1e-12
    assert min(numbers["start"], numbers["elastic"]) > 0.1


def test_two_modes_move_as_elements_do_and_a_law_on_them_needs_damping():
    numbers = meshes.few_modes().numbers
    assert max(numbers["frequency_2"], numbers["bending_2"]) < 1e-3
    assert numbers["growth"] > 0.01
