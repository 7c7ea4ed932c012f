"""Every example runs and ends in the number that it prints; the README's lines are one of them."""

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def example(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_best_gain_set_settles_within_a_fifth_of_a_second():
    assert 0.1 < example("compare_gains").main() < 0.2


def test_the_arm_sags_as_a_beam_bent_by_its_weight_and_payload():
    # small deflections: rho g l^4 / (8 EI) + m g l^3 / (3 EI); foreshortening takes 2 % off
    g, EI = 9.81, 18.4
    sag = 0.54 * g / (8 * EI) + 0.25 * g / (3 * EI)

    assert example("linear_model").main() == pytest.approx(sag, rel=0.03)


def test_the_tip_settles_as_in_the_paper_with_modes_and_with_elements():
    assert example("theodore_ghosal_figures").main() < 1e-4


def test_the_figures_of_the_paper_are_drawn(tmp_path):
    example("theodore_ghosal_figures").draw(tmp_path)

    drawn = sorted(path.name for path in tmp_path.iterdir())
    assert drawn == [f"theodore-ghosal-fig{k}.png" for k in range(4, 9)]


def test_the_torques_of_the_rigid_canadarm_leave_its_joints_4_mrad_off():
    # joint 3, by two integrators that agree to 1e-8
    assert example("mohan_saha_figures").main() == pytest.approx(4.43502e-3, rel=1e-4)


def test_the_figures_of_mohan_and_saha_are_drawn(tmp_path):
    example("mohan_saha_figures").draw(tmp_path)

    drawn = sorted(path.name for path in tmp_path.iterdir())
    assert drawn == ["mohan-saha-fig4.png", "mohan-saha-fig5.png"]


def test_the_lines_of_the_readme_are_those_of_the_example_and_run(capsys):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    lines = re.search(r"```python\n(.*?)```", text, re.DOTALL).group(1)
    exec(compile(lines, "README.md", "exec"), {})
    printed = capsys.readouterr().out.split()
    quoted = re.search(r"    (Take rrp-stiff.*?)\n\n", text, re.DOTALL).group(1).split()

    assert printed == quoted
