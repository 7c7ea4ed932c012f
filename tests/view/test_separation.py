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
        ("printed", "no stiffness makes the loop stable on 2 modes"),
    ],
)
def test_a_person_reads_how_far_the_arm_is_from_its_bound(flexctl, name, words):
    said = flexctl(*of(name))

    assert said.status == 0
    assert words in " ".join(said.out.split())


@pytest.mark.parametrize("name", ["lqr", "slow-only", "too-fast", "printed"])
def test_the_figure_is_drawn(flexctl, tmp_path, name):
    assert flexctl(*of(name), "--plot", tmp_path / "bound.svg").status == 0
    drawn = (tmp_path / "bound.svg").read_text(encoding="utf-8")

    assert "Bound along the motion (2 modes)" in drawn
    assert ("s* =" in drawn) == (name in {"lqr", "too-fast"})


@pytest.mark.parametrize(("largest", "status"), [(0.01, 0), (0.001, 1)])
def test_a_bound_may_be_required(flexctl, largest, status):
    assert flexctl(*of("lqr"), "--json", "--require", f"s_star<{largest}").status == status


def test_where_no_stiffness_helps_the_answer_says_so_and_why(flexctl):
    found = json.loads(flexctl(*of("printed"), "--json").out)

    assert (found["s_star"], found["mu_star"], found["stable"]) == (None, 0.0, False)
    assert "unstable fast subsystem" in found["worst"]["why"]
    assert flexctl(*of("printed"), "--json", "--require", "s_star<1").status == 1


def test_a_design_without_two_time_scales_is_refused_in_one_line(flexctl):
    said = flexctl(*of("decoupling"))

    assert (said.status, said.out) == (2, "")
    assert "method: wanted composite, the one with two time scales, came decoup" in said.err
    assert said.err.strip().count("\n") == 0
