"""Methods by name: ours, and those of packages that are installed."""

import sys

import numpy as np
import pytest

from flexctl.control import design_controller
from flexctl.errors import DesignError, InputError
from flexctl.loop import close_loop, linearise
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

    expected = (
        r"method spring: expected a function at spring_method:other, got AttributeError: module"
    )
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


@pytest.fixture
def refusal(package, write, tmp_path):
    """refusal(code, design text): the line with which the method of that module is refused."""

    def refused(code, text=DESIGN):
        package("spring = spring_method:law")
        (tmp_path / "site" / "spring_method.py").write_text(code)
        with pytest.raises((InputError, DesignError)) as caught:
            design_controller("single-link-hub", load_design(write(text)), interpreted=True)
        line = str(caught.value)
        assert "\n" not in line
        return line

    return refused


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("law = 3", "expected a function at spring_method:law, got 3"),
        ("def law(:", "expected a function at spring_method:law, got SyntaxError"),
        ("1/0", "expected a function at spring_method:law, got ZeroDivisionError"),
        ("import nowhere_at_all", "got ModuleNotFoundError: No module named 'nowhere_at_all'"),
        ("def law(plant): ...", "(spring_method:law): expected a law, got TypeError"),
        ("def law(*a): raise OSError", "(spring_method:law): expected a law, got OSError"),
        ("def law(*a): return None", "(spring_method:law): expected LawParts, got null"),
        (OWN.replace("signals.law(", "("), "law: expected a CasADi function, got "),
        (OWN.replace("k * (", "plant.m * 5 * (").replace("plant.m])", "4])"), "expected a law"),
        (OWN.replace("n_state=0", "n_state=2"), "n_state: expected 0 or 1 (integrals"),
        (OWN.replace("n_state=0", "n_state=1"), "law: expected inputs of sizes [1, 1, 1, "),
        (OWN.replace("n_state=0", "n_state=0.0"), "n_state: expected a whole number"),
    ],
)
def test_a_method_that_gives_no_law_is_refused_in_one_line(refusal, code, says):
    line = refusal(code)

    assert says in line
    assert line.startswith("/")  # the design's file comes first


FIVE = """
import casadi as ca
from flexctl.control import LawParts, law_signals


def law(plant, design, _reference):
    signals = law_signals(plant, integral=False)
    return LawParts(law=signals.law(ca.repmat(signals.q_d, 5)), n_state=0)
"""
UNKNOWN_SIGNAL = """
from flexctl.control import ExternalLaw, LawParts, law_signals


def law(plant, design, _reference):
    signals = law_signals(plant, integral=False)
    own = ExternalLaw(measures=("jiont1",))
    return LawParts(law=signals.law(signals.q_d), n_state=0, external=own)
"""


@pytest.mark.parametrize(
    ("code", "says"),
    [
        (FIVE, "law: expected outputs of sizes [1, 0], got [5, 0]"),
        (
            UNKNOWN_SIGNAL,
            "measures: expected signals of single-link-hub (nearest: joint1), got jiont1",
        ),
    ],
)
def test_a_law_that_does_not_fit_the_arm_is_refused(refusal, code, says):
    assert says in refusal(code)


def test_an_option_that_is_missing_is_named(refusal):
    line = refusal(OWN, DESIGN.replace("[options]\nstiffness = 12.0\n", ""))

    assert "options.stiffness: expected a value, as method spring reads it, got nothing" in line


def test_what_a_method_refuses_keeps_its_own_words(refusal):
    code = "from flexctl.errors import InputError\ndef law(*a): raise InputError('k: expected 1')"

    assert "method spring (spring_method:law): k: expected 1" in refusal(code)


def test_the_error_of_a_method_is_chained(package, write, tmp_path):
    package("spring = spring_method:law")
    (tmp_path / "site" / "spring_method.py").write_text("def law(*a): raise OSError('lost')")

    with pytest.raises(InputError) as caught:
        design_controller("single-link-hub", load_design(write(DESIGN)), interpreted=True)

    assert isinstance(caught.value.__cause__, OSError)


EXTERNAL = """
import casadi as ca
from flexctl.control import ExternalLaw, LawParts


def law(plant, design, _reference):
    s, z, q_d, v_d, a_d, y, r = (ca.SX.sym(k, n) for k, n in zip("szqvayr", (1, 0, 1, 1, 1, 1, 1)))
    tau = FORMULA
    law = ca.Function("law", [s, z, q_d, v_d, a_d, y, r], [tau, ca.SX(0, 1)])
    return LawParts(law=law, n_state=0, external=ExternalLaw(measures=("tip_y",)))
"""


@pytest.mark.parametrize(
    ("formula", "timed", "nonlinear"),
    [
        ("q_d - y - r", False, False),
        ("ca.sin(q_d) - y - r + ca.sin(s)", True, False),
        ("q_d - y - r * y", False, True),
    ],
)
def test_it_is_seen_what_an_external_law_depends_on(
    package, write, tmp_path, formula, timed, nonlinear
):
    package("spring = spring_method:law")
    code = EXTERNAL.replace("FORMULA", formula)
    (tmp_path / "site" / "spring_method.py").write_text(code)
    made = design_controller("single-link-hub", load_design(write(DESIGN)), interpreted=True)

    assert (made.external.timed, made.external.nonlinear) == (timed, nonlinear)


INSTRUMENTS = """
[[instruments]]
kind = "encoder"
[[instruments]]
kind = "tachometer"
[loop]
sample_time = 0.001
"""
IDEAL = '[loop]\nmeasures = ["encoder", "tachometer"]\n'


@pytest.mark.parametrize(("table", "key"), [(INSTRUMENTS, "instruments"), (IDEAL, "loop.measures")])
def test_a_law_that_names_its_measurements_has_no_other_instruments(refusal, table, key):
    line = refusal(EXTERNAL.replace("FORMULA", "q_d - y - r"), DESIGN + table)

    assert f"{key}: expected none, as method spring names the signals that it measures" in line


@pytest.mark.parametrize("value", ["'text'", "[3]"])
def test_assumptions_are_texts(refusal, value):
    assert "assumptions: expected texts" in refusal(
        OWN.replace("n_state=0", f"n_state=0, assumptions={value}")
    )


def test_the_weight_of_a_second_loop_that_is_not_there_is_refused(refusal):
    code = OWN.replace("k * (", "signals.s * k * (")
    assert "law: expected no dependence on s" in refusal(code)


DAMPED = OWN.replace("signals.q[: plant.m])", "signals.q[: plant.m]) - signals.v[: plant.m]")
STATES = DAMPED.replace("signals.v[: plant.m])", "signals.v[: plant.m], moved=-9 * signals.own)")
STATES = STATES.replace("integral=False", "integral=False, n_own=1")
STATES = STATES.replace("n_state=0", 'n_state=1, own_states=("lag",)')
SHAPER = 'to = [0.5]\nshaper = { kind = "ZV", frequency = "loop1" }\n'
SHAPED = DESIGN.replace("to = [0.5]", SHAPER)
FILTERED = SHAPED + '[[filters]]\nkind = "low-pass"\norder = 2\nfrequency = 60.0\n'
SAMPLED = "[loop]\nsample_time = 0.01\n"


def test_the_loop_of_a_sampled_law_with_own_states_is_unknown_to_a_shaper(refusal):
    line = refusal(STATES, SHAPED + SAMPLED)

    assert "reference.shaper.frequency: expected numbers or modes of the arm" in line
    assert "as the law of method spring has own states, which are known at samples only" in line


@pytest.mark.parametrize(
    ("code", "text"), [(STATES, SHAPED), (DAMPED, FILTERED), (DAMPED, FILTERED + SAMPLED)]
)
def test_other_laws_of_packages_are_shaped_for_their_loop(package, write, tmp_path, code, text):
    package("spring = spring_method:law")
    (tmp_path / "site" / "spring_method.py").write_text(code)
    made = design_controller("single-link-hub", load_design(write(text)), interpreted=True)

    continuous = design_controller(
        "single-link-hub", load_design(write(text.replace(SAMPLED, ""))), interpreted=True
    )
    expected = loop_modes_of(continuous)[:1]
    assert made.reference.shaper.frequencies == pytest.approx(expected, rel=1e-6)


def loop_modes_of(controller):
    """Frequencies (k,) [rad/s] of the ringing poles of a controller's loop."""
    arm, basis = load_model("single-link-hub"), controller.design.basis
    poles = linearise(close_loop(controller, arm, basis)).poles
    rings = poles[(poles.imag > 0) & (-poles.real < 0.5 * np.abs(poles))]
    return np.sort(np.abs(rings))


def test_an_entry_point_may_name_an_attribute_of_a_class(package, tmp_path):
    package("spring = spring_method:Kept.law [extra]")
    own = OWN + "\n\nclass Kept:\n    law = staticmethod(law)\n"
    (tmp_path / "site" / "spring_method.py").write_text(own)

    assert callable(load_method("spring"))
