"""`flexctl separation` as a person and as a script use it."""

import json

import numpy as np
import pytest

ARM = "subudhi-morris-2r"
QUICK = ("--truth-modes", "2")


def of(name):
    """Words that name a catalogue design of the arm."""
    return ("separation", ARM, f"subudhi-morris-{name}", *QUICK)


def test_the_answers_numbers_belong_together(flexctl):
    said = flexctl(*of("lqr"), "--json")
    found = json.loads(said.out)
    poles = np.array(found["full_poles"])

    assert (said.status, said.err) == (0, "")
    assert found["s_star"] == max(*found["path"]["s_star"], *found["orders"]["s_star"])
    assert found["mu_star"] == pytest.approx(found["mu"] / np.sqrt(found["s_star"]), rel=1e-12)
    assert found["epsilon"] == pytest.approx(found["mu"] ** 2, rel=1e-12)
    assert found["stable_ranges"][-1] == [pytest.approx(found["s_star"], rel=1e-12), None]
    assert found["stable"] is bool((poles[:, 0] < 0).all())
    assert len(poles) == len(found["slow_poles"]) + len(found["fast_poles"])


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("lqr", "stable down to 0.0038"),
        ("slow-only", "the loop is stable at every stiffness."),
        ("too-fast", "unstable although both subsystems are stable"),
    ],
)
def test_a_person_reads_how_far_the_arm_is_from_its_bound(flexctl, name, words):
    said = flexctl(*of(name))

    assert said.status == 0
    assert words in " ".join(said.out.split())


@pytest.mark.parametrize("name", ["lqr", "slow-only", "too-fast"])
def test_the_figure_is_drawn(flexctl, tmp_path, name):
    assert flexctl(*of(name), "--plot", tmp_path / "bound.svg").status == 0
    drawn = (tmp_path / "bound.svg").read_text(encoding="utf-8")

    assert "Bound along the motion (2 modes)" in drawn
    assert ("s* =" in drawn) == (name != "slow-only")


@pytest.mark.parametrize(("largest", "status"), [(0.01, 0), (0.001, 1)])
def test_a_bound_may_be_required(flexctl, largest, status):
    assert flexctl(*of("lqr"), "--json", "--require", f"s_star<{largest}").status == status


@pytest.mark.parametrize(
    ("name", "status", "words"),
    [
        ("decoupling", 2, "method: wanted composite, the one with two time scales, came decoup"),
        ("printed", 3, "no stiffness makes this loop stable at t = 0 s: separation bound: wanted"),
    ],
)
def test_what_has_no_bound_is_refused_in_one_line(flexctl, name, status, words):
    said = flexctl(*of(name))

    assert (said.status, said.out) == (status, "")
    assert words in said.err
    assert said.err.strip().count("\n") == 0
