"""Compiled laws are cached by the law: whatever is replaced in a record is what runs."""

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest

from flexctl.control import design_controller
from flexctl.errors import FlexctlWarning
from flexctl.loop.closed_loop import close_loop
from flexctl.model.lookup import load_design, load_model
from flexctl.plant import library_cache
from flexctl.plant import plant as plant_module
from flexctl.plant.library_cache import find_compiler
from flexctl.simulation import right_hand_side, scipy_sundials
from flexctl.simulation.simulation import simulate

TIMES = np.array([0.0, 0.1, 0.2])


@pytest.fixture(scope="module")
def arm():
    return load_model("single-link-hub")


@pytest.fixture(scope="module")
def controller(arm):
    return design_controller(arm, load_design("hub-pd"))


def run(controller, arm, integrator="explicit"):
    loop = close_loop(controller, arm, controller.plant.basis)
    return simulate(loop, times=TIMES, integrator=integrator)


def weaker(controller, share=0.2):
    """Return the controller with a share of its torques."""
    law = controller.law
    inputs = [ca.SX.sym(f"i{k}", law.numel_in(k)) for k in range(law.n_in())]
    tau, z_rate = law(*inputs)
    return replace(controller, recipe=ca.Function("law", inputs, [share * tau, z_rate]))


@pytest.mark.parametrize("integrator", ["explicit", "esdirk", "bdf"])
def test_a_replaced_law_runs_and_leaves_the_old_one_alone(controller, arm, integrator):
    before = run(controller, arm, integrator)
    replaced = run(weaker(controller), arm, integrator)
    after = run(controller, arm, integrator)

    seen = (part[:, 1] for part in (replaced.desired, replaced.desired_rate))
    own = controller.law(0, [], *seen, 0, replaced.q[:, 1], replaced.v[:, 1])[0]  # of its own state
    assert replaced.tau[0, 1] == pytest.approx(0.2 * float(own), rel=1e-5)
    assert (after.q == before.q).all()


def test_a_replaced_law_that_comes_first_does_not_poison_the_cache(controller, arm, monkeypatch):
    """The law of the design file, met by nobody yet, must not find what its name stood for."""
    design = controller.design.model_validate(controller.design.table() | {"name": "other"})
    unmet = replace(controller, design=design)
    run(weaker(unmet, 0.3), arm)
    honest = run(unmet, arm)
    monkeypatch.setenv("FLEXCTL_CC", "none")

    assert honest.q == pytest.approx(run(unmet, arm).q, rel=1e-6, abs=1e-9)


def test_a_replaced_reference_runs(controller, arm):
    other = design_controller(arm, load_design("hub-pd"))
    table = other.design.table()
    table["reference"] = table["reference"] | {"to": [0.1]}
    small = design_controller(arm, other.design.model_validate(table | {"name": "small"}))
    replaced = run(replace(controller, reference=small.reference), arm)

    assert np.abs(replaced.desired).max() < 0.11
    assert (replaced.desired == run(small, arm).desired).all()


@pytest.mark.skipif(find_compiler() is None, reason="no C compiler here")
def test_a_changed_name_or_summary_compiles_nothing(controller, arm, nothing_compiled):
    run(controller, arm)
    table = controller.design.table() | {"name": "another", "summary": "the same law"}
    with nothing_compiled():
        run(design_controller(arm, controller.design.model_validate(table)), arm)


def test_a_run_goes_on_interpreted_where_nothing_can_be_written(
    controller, arm, tmp_path, monkeypatch
):
    compiled, file = run(controller, arm), tmp_path / "file"
    file.write_text("no folder")
    monkeypatch.setattr(library_cache, "_loaded", set())
    monkeypatch.setattr(library_cache._Trouble, "cache", "")
    monkeypatch.setattr(library_cache._Trouble, "everywhere", "")
    monkeypatch.setenv("FLEXCTL_CACHE", str(file))
    monkeypatch.setattr(library_cache, "_own_folder", lambda: file)
    with pytest.warns(FlexctlWarning) as said:
        found = run(controller, arm)

    assert len(said) == 1
    assert found.q == pytest.approx(compiled.q, rel=1e-6, abs=1e-9)
    assert "compiled" not in found.integrator


def keys_of_a_run(controller, arm, monkeypatch):
    """Keys of what the sources derive from the arm and the law, by what they are keys of."""
    loop = close_loop(controller, arm, controller.plant.basis)
    names = ("forward_dynamics", "dissipation", "law_jacobian")
    keys = {name: right_hand_side.content(loop, name) for name in names}
    with monkeypatch.context() as patch:
        patch.setattr(scipy_sundials, "compile_functions", lambda key, _: keys.update(rate=key))
        scipy_sundials._load_rate(loop)
    return keys


def test_other_sources_do_not_meet_what_these_compiled(controller, arm, monkeypatch):
    before = keys_of_a_run(controller, arm, monkeypatch)
    for module in (plant_module, right_hand_side, scipy_sundials):
        monkeypatch.setattr(module, "source_digest", lambda: "of other sources")
    after = keys_of_a_run(controller, arm, monkeypatch)

    assert not set(before.values()) & set(after.values())
