"""Compiled, interpreted and cached evaluations are the same functions."""

import os
from pathlib import Path

import numpy as np
import pytest

from flexctl.model.record import BasisChoice
from flexctl.plant.compilation import backend
from flexctl.plant.library_cache import cache_folder, find_compiler
from flexctl.plant.plant import assemble_plant

CALLS = {
    "mass_matrix": "q",
    "bias": "qv",
    "gravity": "q",
    "elastic_force": "q",
    "damping": "q",
    "tangent_stiffness": "q",
    "inverse_dynamics": "qva",
    "tip": "q",
    "tip_jacobian": "q",
    "line_tips": "q",
    "deflections_jacobian": "q",
}
needs_compiler = pytest.mark.skipif(find_compiler() is None, reason="no C compiler here")


@pytest.fixture(scope="module")
def arm(make):
    return make["rrp"]((0.0, 0.0, -9.81), damping=0.01, foreshortening=False)


@pytest.fixture(scope="module")
def pair(arm, plant_of):
    return assemble_plant(arm, BasisChoice(order=1)), plant_of(arm, "modes", 1)


@pytest.fixture(scope="module")
def state(pair, random_state):
    return dict(zip("qva", random_state(pair[0], 1), strict=True))


@pytest.mark.slow_but("line_tips", "tip", "elastic_force")
@needs_compiler
@pytest.mark.parametrize("name", CALLS)
def test_compiled_and_interpreted_agree(name, pair, state):
    compiled, plain = (getattr(p, name)(*[state[x] for x in CALLS[name]]) for p in pair)

    assert compiled == pytest.approx(plain, rel=1e-12, abs=1e-12 * np.abs(plain).max())


@needs_compiler
def test_compiled_forward_dynamics_and_energies_agree_with_the_interpreted(pair, state):
    q, v, tau = state["q"], state["v"], np.array([3.0, -2.0, 5.0])
    compiled, plain = (p.forward_dynamics(q, v, tau) for p in pair)
    energies = [p.energies(q, v) for p in pair]

    assert compiled == pytest.approx(plain, rel=1e-10, abs=1e-10 * np.abs(plain).max())
    assert energies[0] == pytest.approx(energies[1], rel=1e-12)


@needs_compiler
def test_the_backend_is_named(pair):
    assert pair[0].backend == backend()
    assert "compiled C" in pair[0].backend
    assert "virtual machine" in pair[1].backend


@pytest.mark.slow
@needs_compiler
def test_a_second_plant_of_the_same_arm_hits_the_cache(pair, arm, state, nothing_compiled):
    q, v, tau = state["q"], state["v"], np.zeros(3)
    for name in ("mass_matrix", "tip_jacobian"):
        getattr(pair[0], name)(q)
    pair[0].forward_dynamics(q, v, tau)
    again = assemble_plant(arm, BasisChoice(order=1))
    with nothing_compiled():
        for name in ("mass_matrix", "tip_jacobian"):
            getattr(again, name)(q)
        again.forward_dynamics(q, v, tau)

    assert Path(os.environ["FLEXCTL_CACHE"]) == cache_folder()


@needs_compiler
def test_another_arm_does_not_meet_the_library_of_the_first(make, plant_of, state):
    heavier = make["rrp"]((0.0, 0.0, -9.81), EI=1000.0, damping=0.01, foreshortening=False)
    compiled, plain = assemble_plant(heavier, BasisChoice(order=1)), plant_of(heavier, order=1)

    assert compiled.elastic_force(state["q"]) == pytest.approx(
        plain.elastic_force(state["q"]), rel=1e-12, abs=1e-12
    )


def test_without_a_compiler_the_virtual_machine_does_it_and_says_so(arm, pair, state, monkeypatch):
    monkeypatch.setenv("FLEXCTL_CC", "none")
    plant = assemble_plant(arm, BasisChoice(order=1))

    assert plant.mass_matrix(state["q"]) == pytest.approx(pair[1].mass_matrix(state["q"]))
    assert "FLEXCTL_CC=none: slower" in plant.backend


def test_every_call_returns_an_array_of_its_own(pair, state):
    first = pair[1].mass_matrix(state["q"])
    kept = first.copy()
    pair[1].mass_matrix(state["q"] + 0.1)

    assert (first == kept).all()


def test_plants_of_one_content_share_their_functions_and_others_do_not(make, plant_of):
    one, again = (plant_of(make["rrp"]((0.0, 0.0, -9.81)), order=1) for _ in range(2))
    other = plant_of(make["rrp"]((0.0, 0.0, -9.80665)), order=1)

    assert one is not again
    assert one.casadi_functions["gravity"] is again.casadi_functions["gravity"]
    assert other.casadi_functions["gravity"] is not one.casadi_functions["gravity"]


def test_only_the_last_contents_stay_in_memory(make, plant_of):
    plants = [plant_of(make["rrp"]((0.0, 0.0, -g)), order=1) for g in range(1, 40)]
    first = plants[0].casadi_functions
    for plant in plants:
        _ = plant.casadi_functions

    again = plant_of(make["rrp"]((0.0, 0.0, -1.0)), order=1)
    assert again.casadi_functions is not first
    assert plants[-1].casadi_functions is plant_of(plants[-1].arm, order=1).casadi_functions
