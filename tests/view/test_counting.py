"""`flexctl count`: its contract, and that its numbers are those of the arm that was asked for."""

import json
from functools import cache

import numpy as np
import pytest

from flexctl.model.arm import Arm
from flexctl.model.lookup import load_model
from flexctl.model.record import BasisChoice
from flexctl.plant.operations import count_operations
from flexctl.plant.plant import assemble_plant

KEYS = {
    "provenance",
    "warnings",
    "model",
    "design",
    "basis",
    "engine",
    "coordinates",
    "mass_matrix",
    "forward_dynamics",
    "inverse_dynamics",
    "law",
    "written_out",
}


@pytest.fixture
def count(flexctl):
    def call(*words):
        said = flexctl("count", *words, "--json")
        assert (said.status, said.err) == (0, "")
        return json.loads(said.out)

    return call


@pytest.mark.parametrize("engine", ["recursion", "lagrange"])
def test_the_answer_has_the_keys_of_the_contract(count, engine):
    found = count("planar-two-link", "-m", "1", "--engine", engine)

    assert set(found) == KEYS
    assert (found["coordinates"], found["engine"]) == (4, engine)
    assert found["law"] is None
    for name in ("mass_matrix", "forward_dynamics", "inverse_dynamics"):
        assert set(found[name]) == {"mul", "add", "other"}
        assert found[name]["mul"] > 0


def test_written_out_an_arm_takes_at_least_what_it_takes_shared(count):
    found = count("planar-two-link", "-m", "1")
    tree = found["written_out"]

    assert tree["law"] is None
    assert tree["inverse_dynamics"]["mul"] > found["inverse_dynamics"]["mul"]
    assert tree["forward_dynamics"]["mul"] > found["forward_dynamics"]["mul"]
    # of the mass matrix every entry once, so it is the tree of ten entries and not of sixteen
    assert tree["mass_matrix"]["mul"] > found["mass_matrix"]["mul"]


def test_the_law_is_counted_in_the_basis_of_its_design(count):
    found = count("single-link-hub", "hub-pd")

    assert found["design"] == "hub-pd"
    assert found["law"]["mul"] > 0


def test_the_law_costs_what_a_verdict_on_it_says(count, flexctl):
    # the baseline joint-pd is left out: one design, one verdict
    words = ("single-link-hub", "hub-pd", "-m", "1")
    said = flexctl("compare", *words, "--truth-modes", "1", "--no-baseline", "--json")
    cost = json.loads(said.out)["evaluations"][0]["cost"]

    assert count(*words)["law"]["mul"] == cost["law_mul"]


def test_the_inertia_of_a_single_link_is_one_parabola(count):
    found = count("single-link-hub", "-m", "1", "--no-foreshortening")["mass_matrix"]

    # M = [J + (m + m_tip psi^2) q^2, constant; constant, constant]: two squares with their factors
    assert found["other"] == 0
    assert found["mul"] <= 6
    assert found["add"] <= 4


def test_more_modes_cost_more(count):
    one, two = (count("theodore-ghosal-rrp", "-m", order) for order in ("1", "2"))

    for name in ("mass_matrix", "forward_dynamics", "inverse_dynamics"):
        assert one[name]["mul"] < two[name]["mul"]


def test_foreshortening_costs_more(count):
    with_it, without = (
        count("single-link-hub", "-m", "1", option)
        for option in ("--foreshortening", "--no-foreshortening")
    )

    for name in ("mass_matrix", "forward_dynamics", "inverse_dynamics"):
        assert without[name]["mul"] < with_it[name]["mul"]


def test_recursion_needs_fewer_operations_than_lagrange(count):
    words = ("theodore-ghosal-rrp", "-m", "2", "--engine")
    recursion, lagrange = (
        count(*words, name)["forward_dynamics"] for name in ("recursion", "lagrange")
    )

    assert recursion["mul"] < lagrange["mul"]


def test_a_person_reads_a_table(flexctl):
    said = flexctl("count", "single-link-hub", "hub-pd")

    assert "multiplications" in said.out
    assert "forward dynamics" in said.out
    assert "control law" in said.out


def test_a_count_can_be_required(flexctl):
    words = ("count", "single-link-hub", "--json", "--require")

    assert flexctl(*words, "forward_dynamics.mul<1000").status == 0
    assert flexctl(*words, "forward_dynamics.mul<1").status == 1


def test_an_unknown_engine_is_refused(flexctl):
    said = flexctl("count", "single-link-hub", "--engine", "newton")

    assert (said.status, said.out) == (2, "")
    assert "recursion" in said.err


@pytest.fixture(scope="module")
def operations():
    """operations(n): forward dynamics and mass matrix of n planar links, two modes each."""

    def of(n_links):
        table = load_model("mohan-saha-canadarm").model_dump(by_alias=True, exclude_unset=True)
        links = table["link"]
        table["link"] = [links[i % 3] | {"name": f"link{i + 1}"} for i in range(n_links)]
        arm = Arm.model_validate(table)
        functions = assemble_plant(arm, BasisChoice(kind="modes", order=2)).casadi_functions
        return [count_operations(functions[name]) for name in ("forward_dynamics", "mass_matrix")]

    return cache(of)


def test_the_planar_canadarm_takes_half_of_five_hundred_multiplications(operations):
    forward, _ = operations(3)

    assert forward.mul <= 250
    assert forward.add <= 205


@pytest.mark.slow_but("6")
@pytest.mark.parametrize("n", [3, 6, 12])
def test_every_further_link_costs_the_same_in_forward_dynamics(operations, n):
    growth = [operations(k + 3)[0] for k in (n, n + 3)]
    before = [operations(k)[0] for k in (n, n + 3)]
    steps = [after.mul - less.mul for after, less in zip(growth, before, strict=True)]

    assert steps[0] == steps[1]
    assert steps[0] <= 3 * 125


@pytest.mark.slow
def test_the_mass_matrix_grows_with_the_square_of_the_links(operations):
    # third differences over equal steps vanish: from 6 links on, past what folds away at the base
    counts = np.array([operations(n)[1].mul for n in (6, 9, 12, 15, 18)])

    assert (np.diff(counts, 3) == 0).all()
