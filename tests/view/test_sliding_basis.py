"""What commands say of a sliding link with its exact modes at every length."""

import json

import numpy as np
import pytest
from scipy.optimize import brentq

from flexctl.model.lookup import load_model
from flexctl.model.record import BasisChoice
from flexctl.plant.plant import assemble_plant
from flexctl.view.figures.drawing import make_skeleton
from flexctl.view.words.numbers import basis_words

RRP = "theodore-ghosal-rrp"
EXACT = ("-m", "2", "--sliding", "exact")


def exact_frequencies(length):
    """Of a clamped line with a point mass at its tip [rad/s], from the closed form."""
    M = 0.0828 / (0.331 * length)

    def equation(b):
        return (
            1 + np.cos(b) * np.cosh(b) + M * b * (np.cos(b) * np.sinh(b) - np.sin(b) * np.cosh(b))
        )

    beta = np.array([brentq(equation, *bounds, xtol=1e-14) for bounds in ((0.5, 2), (3.5, 4.75))])
    return beta**2 * np.sqrt(1165.4916 / 0.331) / length**2


@pytest.fixture
def ask(flexctl):
    def call(command, *words):
        said = flexctl(command, RRP, "--json", *words)
        assert (said.status, said.err) == (0, "")
        return json.loads(said.out)

    return call


@pytest.mark.slow_but("1.3")
@pytest.mark.parametrize("length", [0.3, 1.3])
def test_inspect_gives_the_exact_frequencies_of_the_pose(ask, length):
    found = ask("inspect", *EXACT, "--pose", f"joint3={length}")["link_frequencies"]["link3"]
    expected = exact_frequencies(length)
    np.testing.assert_allclose([found["x"], found["y"]], [expected, expected], rtol=1e-10)


def test_fixed_modes_are_off_away_from_their_pose(ask):
    found = ask("inspect", "-m", "2", "--pose", "joint3=0.3")["link_frequencies"]["link3"]["x"]
    assert found[1] > exact_frequencies(0.3)[1] * (1 + 5e-4)


def test_inspect_says_which_modes_it_has(ask):
    found = ask("inspect", *EXACT)
    assert found["basis"] == {"kind": "modes", "order": 2, "sliding": "exact"}
    assert any("link3: clamped modes" in sentence for sentence in found["assumptions"])
    assert found["tip_load"]["link3"]["x"]["M"] == pytest.approx(0.0828)


@pytest.mark.parametrize(
    ("more", "words"),
    [({}, "2 modes"), ({"sliding": "exact"}, "2 modes exact at every length")],
)
def test_a_basis_in_words(more, words):
    assert basis_words({"kind": "modes", "order": 2, **more}) == words


def test_the_drawn_line_ends_where_the_arm_does():
    plant = assemble_plant(load_model(RRP), BasisChoice(sliding="exact"), interpreted=True)
    q = plant.straight(np.array([0.3, -0.4, 0.7]))
    q[3:] = 0.02 * np.random.default_rng(1).normal(size=plant.n - 3)
    line = make_skeleton(plant).lines(q)[-1]
    np.testing.assert_allclose(line[:, -2], plant.tip(q), rtol=0, atol=1e-12)
