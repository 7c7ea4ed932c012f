"""Which branches are dominant: by hand, from decay and participation."""

from dataclasses import dataclass, field

import numpy as np
import pytest

from flexctl.loci import family
from flexctl.loci.family import dominance, dominant


@dataclass
class Made:
    """A branch with one value, or several, and shares of motions."""

    label: str
    values: np.ndarray
    participation: dict = field(default_factory=dict)


def branch(label, *values, **shares):
    return Made(label, np.array(values, dtype=complex), shares or {label.split(" (")[0]: 1.0})


def test_the_index_is_the_time_constant_of_what_is_seen():
    assert dominance(branch("joint1", -4.0 + 3j)) == pytest.approx(0.25)
    assert dominance(branch("joint1", -4.0, -2.0, -8.0)) == pytest.approx(0.5)


def test_higher_modes_count_by_their_static_compliance():
    # of a clamped line under a force at its tip the second mode has (1.8751/4.6941)^4 of the first
    half = {"joint1": 0.5, "link1.y.2": 0.5}
    assert 2 * dominance(branch("joint1", -2.0 + 9j, **half)) == pytest.approx(0.51273, rel=1e-4)
    twist = [dominance(branch(f"link1.twist.{k}", -2.0 + 9j)) for k in (1, 2)]
    assert twist[1] / twist[0] == pytest.approx(1 / 9)


def test_modes_of_a_structure_without_damping_count_as_damped_by_a_hundredth():
    assert dominance(branch("link1.y.1", 50j)) == pytest.approx(1 / 0.5)


@pytest.mark.parametrize(
    "unseen",
    [
        branch("link1.y.2", -1 + 300j),
        branch("delayed torque", -1.0),
        Made("joint1", np.array([-np.inf + 0j]), {"joint1": 1.0}),
    ],
)
def test_what_is_not_seen_at_the_tip_is_not_dominant(unseen):
    assert dominance(unseen) == 0
    assert dominant([branch("joint1", -1.0), unseen]) == (0,)


def test_what_is_unstable_somewhere_comes_first_whatever_it_is():
    found = [branch("joint1", -1.0), branch("link2.y.5", -3 + 900j, 1 + 900j)]

    assert dominant(found) == (1, 0)


def test_slow_real_branches_are_dominant_beside_lightly_damped_modes():
    found = [
        branch("link1.y.1", -0.5 + 50j),
        branch("joint1 (1)", -0.2),
        branch("joint1 (2)", -90.0),
    ]

    assert dominant(found) == (1, 0, 2)


def test_no_more_pairs_than_asked_for_and_both_halves_of_each(monkeypatch):
    monkeypatch.setattr(family, "_MOST", 3)
    found = [branch(f"joint{k}", -float(k)) for k in range(1, 10)]
    found += [branch("link1.y.1", -1.5 + 9j), branch("link1.y.1", -1.5 - 9j)]

    assert dominant(found) == (0, 9, 10, 1)


@pytest.mark.parametrize("name", ["integral of joint1", "observer of link1.y.5", "anything"])
def test_the_name_of_a_state_of_the_law_makes_no_difference(name):
    def choose(state, *numbers):
        own = [branch(f"{state}{n}", -k, **{state: 0.7, "joint1": 0.3}) for k, n in numbers]
        return dominant([branch("joint1", -1.0), *own])

    numbers = [(0.2 * k, f" ({k})") for k in range(1, 20)]
    assert dominance(branch(name, -2.0, **{name: 1.0})) == pytest.approx(0.5)
    assert choose(name, *numbers) == choose("controller", *numbers)


def test_where_nothing_is_followed_nothing_is_dominant():
    assert dominant([]) == ()
