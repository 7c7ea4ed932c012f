"""Every example runs and ends in the number that it prints; the README's lines are one of them."""

import importlib.util
import re
from functools import partial
from pathlib import Path

import mpmath
import numpy as np
import pytest

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


@pytest.mark.slow
def test_the_tip_settles_as_in_the_paper_with_modes_and_with_elements():
    assert example("theodore_ghosal_figures").main() < 1e-4


@pytest.mark.slow  # compiles long
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


@pytest.fixture(scope="module")
def bang_bang():
    return example("subudhi_morris_figures")


@pytest.mark.parametrize("damping", [0.0, 0.01])
@pytest.mark.parametrize("joints", ["flexible", "rigid"])
@pytest.mark.slow  # takes long
def test_the_energy_account_of_the_bang_bang_runs_closes(bang_bang, joints, damping):
    flexible, rigid = bang_bang.figures(damping)

    assert {"flexible": flexible, "rigid": rigid}[joints].energy.imbalance < 1e-9


@pytest.mark.slow
def test_tips_deflect_more_with_flexible_joints_only_below_five_newton_metres(bang_bang):
    assert 5.0 < bang_bang.main() < 5.5


@pytest.mark.parametrize("damping", [0.0, 0.01])
@pytest.mark.slow  # takes long
def test_at_the_stiffness_of_the_paper_both_tips_deflect_less(bang_bang, damping):
    (point,) = bang_bang.sweep(damping, [bang_bang.PAPER])

    assert point.peak == pytest.approx((0.98, 0.953), abs=2e-3)


@pytest.mark.slow  # the limit of figures 4 to 6; tests/plant has that of the equations
@pytest.mark.parametrize("damping", [0.0, 0.01])
def test_tips_tend_to_those_with_rigid_joints_in_proportion_to_the_softness(bang_bang, damping):
    # one over the stiffness: past its coarse range at 1e3, integrated to 1e-10
    softer, stiffer = bang_bang.sweep(damping, [1e3, 1e4])

    assert np.subtract(1, softer.peak) / np.subtract(1, stiffer.peak) == pytest.approx(10, rel=0.1)


@pytest.mark.parametrize(("stiffness", "low", "high"), [(1.0, 0, 0.1), (100.0, 0.9, 1.1)])
def test_tips_do_not_decay_only_behind_soft_joints(bang_bang, stiffness, low, high):
    (point,) = bang_bang.sweep(0.01, [stiffness])

    assert low < point.decay[0] / point.decay[1] < high


@pytest.mark.slow  # compiles long
def test_the_figures_of_subudhi_and_morris_are_drawn(bang_bang, tmp_path, monkeypatch):
    monkeypatch.setattr(bang_bang, "sweep", partial(bang_bang.sweep, stiffness=[1.0, 5.0, 100.0]))
    bang_bang.draw(tmp_path)

    drawn = sorted(path.name for path in tmp_path.iterdir())
    names = ("fig4-5", "fig6", "stiffness")
    assert drawn == [f"subudhi-morris-{name}.png" for name in names]


@pytest.fixture(scope="module")
def composite():
    return example("subudhi_morris_control")


def test_only_composite_control_damps_the_links(composite):
    rings = composite.main()

    assert rings["composite, LQR"] < 0.02 * rings["slow control alone"]
    assert rings["composite, LQR"] < 0.02 * rings["decoupling"]


def test_the_figures_of_composite_control_are_drawn(composite, tmp_path):
    composite.draw(tmp_path)

    drawn = sorted(path.name for path in tmp_path.iterdir())
    assert drawn == ["subudhi-morris-fig7-8.png", "subudhi-morris-fig8-modes.png"]


@pytest.fixture(scope="module")
def complexity():
    return example("mohan_saha_complexity")


@pytest.mark.parametrize(
    ("name", "algorithm"),
    [
        ("Mohan & Saha", lambda paper: paper.mohan_saha(8, 2)),
        ("Jain & Rodriguez", lambda paper: paper.jain_rodriguez(8, 2, few=False)),
        ("Cyril", lambda paper: paper.cyril(8, 2)),
    ],
)
def test_the_printed_operations_come_out_of_table_1_for_two_modes(complexity, name, algorithm):
    # cut off, not rounded: Cyril's are 13990 1/3 and 12683 1/3
    assert tuple(map(int, algorithm(complexity))) == complexity.PRINTED[name]


def test_the_misprint_of_table_1_does_not_give_the_printed_additions(complexity):
    assert complexity.cyril(8, 2, as_printed=True).add == pytest.approx(10675 + 1 / 3)


@pytest.mark.parametrize(("m", "few"), [(7, True), (8, False)])
def test_the_rows_of_jain_and_rodriguez_meet_between_seven_and_eight_modes(complexity, m, few):
    rows = {few: complexity.jain_rodriguez(1, m, few=few).mul for few in (True, False)}

    assert min(rows, key=rows.get) is few


@pytest.mark.parametrize("part", ["recursion", "terms"])
@pytest.mark.parametrize("spatial", [False, True], ids=["planar", "spatial"])
@pytest.mark.slow  # takes long
def test_operations_grow_as_the_polynomial_that_the_example_takes(complexity, part, spatial):
    n = 6 if spatial else 9

    found = complexity.counted(n, 1, part, spatial=spatial)
    assert found == complexity.polynomial(n, 1, part, spatial=spatial)


def test_recursion_needs_fewer_operations_than_cholesky_from_one_link_on(complexity):
    found = complexity.main(1)

    assert found["spatial"] == found["planar"] == {"Cholesky": 1}
    assert found["Mohan & Saha"]["Jain & Rodriguez, few modes"] is None


@pytest.mark.slow
def test_the_operations_in_the_findings_are_those_of_the_code(complexity):
    assert complexity.table() in (ROOT / "docs" / "findings.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def stability():
    return example("mohan_saha_stability")


@pytest.fixture(scope="module")
def verdict(stability):
    return stability.main(duration=1.0)


@pytest.mark.slow  # takes long
def test_in_double_precision_both_solvers_give_the_same_motion(verdict):
    assert verdict["gap"]["Cholesky", "double"] < 1e-13
    assert verdict["peak"]["Cholesky", "double"] == pytest.approx(
        verdict["peak"]["recursive", "double"], rel=1e-9
    )


@pytest.mark.slow  # takes long
def test_the_step_decides_and_not_the_solver(stability, verdict):
    stable, unstable = stability.STEPS[:2]
    assert stable < stability.stability_limit() < unstable
    peaks = verdict["unstable peak"]
    assert min(peaks.values()) > 20 * max(verdict["peak"].values())
    assert peaks["Cholesky", "double"] == pytest.approx(peaks["recursive", "double"], rel=1e-6)


@pytest.mark.parametrize(("precision", "factor"), [("double", 30), ("single", 100)])
@pytest.mark.slow  # takes long
def test_recursion_errs_orders_less_over_eight_links(verdict, precision, factor):
    error = verdict["error"]

    assert factor * error["recursive", precision] < error["Cholesky", precision]


def test_a_heavy_payload_costs_both_solvers_their_digits(stability):
    error = stability.forward_errors(stability.over_payload(1e6), states=1)

    assert error["recursive", "double"] > 1e-9
    assert error["recursive", "single"] > 0.1


def test_cholesky_in_single_precision_finds_no_factor_where_masses_grow_outwards(stability):
    error = stability.forward_errors(stability.growing(1e6), states=1)

    assert np.isnan(error["Cholesky", "single"])
    assert error["recursive", "single"] < 0.02
    assert 1e3 * error["recursive", "double"] < error["Cholesky", "double"]


def test_the_refined_solution_is_that_of_the_equations_in_fifty_digits(stability):
    solvers = stability.Solvers(stability.over_payload(1.0))
    state = stability.random_state(solvers.plant, 0)
    with mpmath.workdps(50):
        M, force = map(mpmath.matrix, solvers.terms(state, mpmath.mpf))
        expected = mpmath.cholesky_solve(M, force)
        error = mpmath.norm(mpmath.matrix(solvers.refined(state)) - expected) / mpmath.norm(
            expected
        )

    assert error < mpmath.mpf(10) ** -40


def test_both_solvers_solve_the_same_equations_up_to_the_rounding_of_constants(verdict):
    assert verdict["error"]["constants", "double"] < 1e-12


README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_lines_of_the_readme_are_those_of_an_example():
    lines = re.search(r"```python\n(.*?)```", README, re.DOTALL).group(1)
    code = [line.partition("#")[0].strip() for line in lines.splitlines()]
    script = (ROOT / "examples" / "compare_gains.py").read_text(encoding="utf-8")
    assert [line for line in code if line not in script] == []


@pytest.mark.slow  # three designs on the RRP arm, compiled anew
def test_the_example_of_the_readme_prints_the_verdict_that_it_quotes(capsys):
    settled = example("compare_gains").main()

    printed = capsys.readouterr().out.split()
    quoted = re.search(r"    (Recommended: rrp-stiff.*?)\n\n", README, re.DOTALL).group(1).split()
    assert 0.1 < settled < 0.2
    assert printed == quoted


@pytest.fixture(scope="module")
def lemma():
    return example("stiffness_lemma")


@pytest.mark.slow
def test_the_lemma_tends_to_the_ratio_of_inertias(lemma):
    # 0.005315 m l^2 / 12^3 beside the hub's 0.1 kg m^2, and that times (J + I)/I
    J, I, stays = 0.1, 0.54 / 3 + 0.25, 0.00531508859875 * 0.54 / 12**3  # noqa: E741

    assert lemma.main() == pytest.approx((J + stays) / (I - stays) * I / J, rel=1e-9)


@pytest.mark.parametrize(("hub", "ratio"), [(0.0, 8.0), (0.1, 1.0)])
def test_the_growth_that_the_lemma_does_not_see_depends_on_the_hub_alike(lemma, hub, ratio):
    # from 4 to 8 elements: as one over the inertia that is left, or hardly
    coarse, fine = (lemma.growth(hub, elements).rate[0] for elements in (4, 8))

    assert coarse > 0
    assert fine / coarse == pytest.approx(ratio, rel=1e-3)


@pytest.fixture(scope="module")
def stiffness_margin():
    return example("stiffness_margin")


@pytest.mark.slow
def test_the_lemma_allows_many_times_the_overestimate_that_is_borne(stiffness_margin):
    assert 58 < stiffness_margin.main() < 59


@pytest.mark.slow  # takes long
@pytest.mark.parametrize(("damping", "borne"), [(0.0, 0.0), (0.01, 0.0025), (0.02, 0.0050)])
def test_what_the_stiff_gains_bear_grows_with_damping(stiffness_margin, damping, borne):
    design = stiffness_margin.designs()["Gp = 400, Gv = 40"]
    found = stiffness_margin.margin(damping, design, stiffness_margin.MODES)

    assert found.exact.alpha_upper == pytest.approx(borne, abs=1e-4)
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
