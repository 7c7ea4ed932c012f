"""`flexctl count`: its contract, and that its numbers are those of the arm that was asked for."""

import json

import pytest

KEYS = {
    "model",
    "design",
    "basis",
    "engine",
    "coordinates",
    "mass_matrix",
    "forward_dynamics",
    "inverse_dynamics",
    "law",
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
