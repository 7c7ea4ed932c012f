"""Every example runs and ends in the number that it prints; the README's lines are one of them."""

import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest
import scipy.linalg

import flexctl

ROOT = Path(__file__).parent.parent


def example(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_arm_sags_as_a_beam_bent_by_its_weight_and_payload():
    # small deflections: rho g l^4 / (8 EI) + m g l^3 / (3 EI); foreshortening takes 2 % off
    g, EI = 9.81, 18.4
    sag = 0.54 * g / (8 * EI) + 0.25 * g / (3 * EI)

    assert example("linear_model").main() == pytest.approx(sag, rel=0.03)


README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_lines_of_the_readme_are_those_of_an_example():
    lines = re.search(r"```python\n(.*?)```", README, re.DOTALL).group(1)
    code = [line.partition("#")[0].strip() for line in lines.splitlines()]
    script = (ROOT / "examples" / "compare_gains.py").read_text(encoding="utf-8")
    assert [line for line in code if line not in script] == []


@pytest.mark.slow  # four designs on the RRP arm, compiled anew
def test_the_example_of_the_readme_prints_the_verdict_that_it_quotes(capsys):
    settled = example("compare_gains").main()

    printed = capsys.readouterr().out.split()
    quoted = re.search(r"    (Recommended: .*?)\n\n", README, re.DOTALL).group(1).split()
    assert 0.4 < settled < 0.5
    assert printed == quoted


@pytest.fixture(scope="module")
def stiffness_margin():
    return example("stiffness_margin")


@pytest.mark.slow
def test_the_lemma_allows_many_times_the_overestimate_that_is_borne(stiffness_margin):
    assert 58 < stiffness_margin.main() < 59


@pytest.mark.slow  # takes long
@pytest.mark.parametrize(("damping", "tolerated"), [(0.0, 0.0), (0.01, 0.0025), (0.02, 0.0050)])
def test_what_the_stiff_gains_bear_grows_with_damping(stiffness_margin, damping, tolerated):
    design = stiffness_margin.designs()["Gp = 400, Gv = 40"]
    found = stiffness_margin.margin(damping, design, stiffness_margin.MODES)

    assert found.exact.alpha_upper == pytest.approx(tolerated, abs=1e-4)
    assert found.lemma.alpha_star == pytest.approx(0.148, abs=1e-3)


@pytest.mark.slow
def test_stiff_gains_with_the_stiffness_of_two_elements_are_unstable_and_gentle_ones_are_not():
    table = {(row[0], row[1]): row[2:] for row in example("stiffness_from_elements").table()}

    # a clamped line's frequencies on two elements, 3.51772 and 22.2215, beside 3.51602 and 22.0345
    assert table["rrp-gentle", 2][:2] == pytest.approx(
        [(3.51772 / 3.516015) ** 2, (22.2215 / 22.034492) ** 2], rel=1e-5
    )
    assert not table["rrp-stiff-decoupling", 2][2]
    assert table["rrp-gentle", 2][2]


def test_an_own_h_infinity_controller_is_judged_beside_the_catalogue():
    # the run of the nonlinear loop by another integrator (SciPy, without a compiler) gives the same
    assert example("own_controller").main() == pytest.approx(1.064, abs=2e-3)


@pytest.mark.slow
def test_a_pid_from_matlab_is_judged_on_the_command_line():
    # the sampled loop of the example's matrices, put together by hand, loses stability at this gain
    assert example("matlab_pid").main() == pytest.approx(gain_margin_by_hand(), abs=0.01)


def gain_margin_by_hand():
    """Gain margin [dB] of the PID of the example on the linear arm, by bisection."""
    example_of = example("matlab_pid").MATRICES
    A, B, C, D = (np.array(example_of[name]) for name in "ABCD")
    plant = flexctl.assemble_plant(flexctl.load_model("single-link-hub"), modes=2)
    own, T = flexctl.linearise(plant, {"joint1": np.pi / 2}), example_of["Ts"]
    n = len(own.A_state)
    pair = np.zeros((n + 1, n + 1))
    pair[:n, :n], pair[:n, n:] = own.A_state * T, own.B_state * T
    step = scipy.linalg.expm(pair)
    Y = np.eye(1, n)

    def stable(k):
        whole = [
            [step[:n, :n] - k * step[:n, n:] @ D @ Y, k * step[:n, n:] @ C],
            [-B @ Y, A],
        ]
        return np.abs(np.linalg.eigvals(np.block(whole))).max() < 1

    low, high = 1.0, 1e3
    while high / low > 1 + 1e-6:
        middle = (low * high) ** 0.5
        low, high = (middle, high) if stable(middle) else (low, middle)
    return 20 * np.log10(low)
