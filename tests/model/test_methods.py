"""Methods by name: ours, and those of packages that are installed."""

import sys

import numpy as np
import pytest

from flexctl.control.controller import design_controller
from flexctl.errors import InputError
from flexctl.model.design import Design
from flexctl.model.lookup import load_design, load_model
from flexctl.model.methods import METHODS, load_method, method_names

OWN = '''
from flexctl.control import LawParts, law_signals


def law(plant, design, _reference):
    """Torque k (q_d - q) with the gain k of the design's options."""
    signals = law_signals(plant, integral=False)
    k = design.options["stiffness"]
    return LawParts(law=signals.law(k * (signals.q_d - signals.q[: plant.m])), n_state=0)
'''
DESIGN = """
summary = "A method of a package"
source = "own"
model = "single-link-hub"
method = "spring"
[reference]
kind = "setpoint"
from = [0.0]
to = [0.5]
[options]
stiffness = 12.0
"""


def install(folder, name, *points):
    """Put a distribution with entry points and its module into a folder of `sys.path`."""
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("\n".join(["[flexctl.methods]", *points]) + "\n")
    (folder / f"{name}.py").write_text(OWN)


@pytest.fixture
def package(tmp_path, monkeypatch):
    """package(*entry points): an installed distribution named spring_method."""
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(site)
    yield lambda *points: install(site, "spring_method", *points)
    sys.modules.pop("spring_method", None)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_of_the_table_is_there(name):
    assert callable(load_method(name))


def test_an_installed_package_adds_a_method(package, write):
    package("spring = spring_method:law")
    design = load_design(write(DESIGN))

    controller = design_controller(load_model("single-link-hub"), design, interpreted=True)

    zero, q = np.zeros(1), np.zeros(controller.plant.n)
    tau, _ = controller.law(0.0, [], [0.5], zero, zero, q, q)
    assert float(tau) == pytest.approx(6.0)
    assert "spring" in method_names()


def test_a_package_cannot_change_what_a_name_means(package):
    package("joint-pd = spring_method:law")

    assert load_method("joint-pd").__module__ == "flexctl.control.joint_pd"
    assert method_names() == tuple(METHODS)


def test_without_the_package_the_method_is_unknown(write):
    with pytest.raises(InputError, match=r"method: expected one of 'decoupling'.*, got \"spring\""):
        load_design(write(DESIGN))


def test_a_method_that_is_not_where_it_should_be_is_refused_in_one_line(package, write):
    package("spring = spring_method:other")
    design = load_design(write(DESIGN))

    expected = r"method spring: expected a function at spring_method:other, got: module"
    with pytest.raises(InputError, match=expected):
        design_controller(load_model("single-link-hub"), design, interpreted=True)


def test_two_packages_with_one_name_are_refused(package, tmp_path):
    package("spring = spring_method:law")
    install(tmp_path / "site", "other_method", "spring = other_method:law")

    with pytest.raises(InputError, match=r"expected one entry point of flexctl\.methods, got 2"):
        load_method("spring")


def test_options_are_for_methods_of_packages(package, write):
    package("spring = spring_method:law")
    text = DESIGN.replace("spring", "feedforward")

    with pytest.raises(
        InputError, match="options: expected no such table, as method is feedforward"
    ):
        load_design(write(text))


def test_a_design_survives_a_round_trip_with_its_options(package, write):
    package("spring = spring_method:law")
    design = load_design(write(DESIGN))

    again = {**design.table(), "name": design.name, "path": design.path}
    assert Design.model_validate(again) == design
