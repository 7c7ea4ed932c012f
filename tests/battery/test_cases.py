"""Ten fixed arms, each at an edge: what was computed of them by a second way is what is said."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from flexctl.model.lookup import load_design
from flexctl.robustness.stiffness.margin import stiffness_margin
from flexctl.verdict.evaluation import evaluate
from flexctl.view.to_json import to_json
from tests.battery.checks import Subject, check_runs, growth, with_payload
from tests.battery.one_link import OneLink
from tests.battery.witness import Held

FOLDER = Path(__file__).with_name("cases")
NAMES = sorted(path.name.removesuffix(".arm.toml") for path in FOLDER.glob("*.arm.toml"))
FIGURES = [(name, key) for name in NAMES for key in load_design(FOLDER / f"{name}.toml").expect]
SOFT = OneLink(length=0.9, rho=1.5, EI=200.0, payload=0.45, Gp=5.6, desired=np.pi / 6)
FOLD = (
    -0.0224917031
)  # error of the payload: `SOFT.fold(-1)`; upwards there is none up to 20 times it


@pytest.fixture(autouse=True)
def _no_compiler(monkeypatch):
    monkeypatch.setenv("FLEXCTL_CC", "none")


def paths(name):
    return FOLDER / f"{name}.arm.toml", FOLDER / f"{name}.toml"


@cache
def subject(name):
    return Subject(paths(name), quick=True)


@cache
def judged(name):
    """Evaluation of the loop that holds the end of the motion."""
    return to_json(evaluate(subject(name).loop))


def at(table, path):
    for key in path.split("."):
        table = table[key]
    return np.atleast_1d(table)


def test_there_are_ten():
    assert len(NAMES) == 10


@pytest.mark.slow_but(
    "integral-holds-stability.min_dampi*", "sampled-late-stability.spectral_abscissa"
)
@pytest.mark.parametrize(("name", "figure"), FIGURES)
def test_a_verdict_is_what_the_witness_recorded(name, figure):
    expected = subject(name).design.expect[figure]
    found = at(judged(name), expected.key)

    assert found == pytest.approx(np.array(expected.value), rel=expected.rtol)


@pytest.mark.slow  # a few seconds each
@pytest.mark.parametrize("name", NAMES)
def test_runs_beside_the_rest_decay_as_said(name):
    s = Subject(paths(name))
    check_runs(s)

    assert not s.report.findings


def test_an_arm_too_heavy_for_its_motor_fails_by_that_torque():
    found = judged("too-weak")

    assert not found["rest"]["holds"]
    assert "joint1 needs 21.6 N m, its limit is 20 N m" in found["failed"]


def test_an_arm_that_cannot_stand_is_unstable_where_it_is_to_stand():
    found = judged("falls-over")
    statics = OneLink(length=0.6, rho=0.8, EI=30.0, payload=0.4, Gp=2.0, desired=1.4)
    upright = statics.rest()

    assert found["rest"]["joint"] == pytest.approx(upright[:1], rel=1e-8)
    assert np.linalg.eigvalsh(statics.balance(upright, 0.0)[1])[0] < 0
    assert found["stability"]["stable"] is False


# The arm that loses its equilibrium with a little less payload


def test_statics_by_hand_rest_where_the_loop_does():
    rest = subject("payload-fold").rest

    np.testing.assert_allclose(rest.q, SOFT.rest(), rtol=1e-9)


def test_its_equilibrium_ends_with_two_per_cent_less_payload():
    assert SOFT.fold(-1)[0] == pytest.approx(FOLD, rel=1e-8)
    assert SOFT.fold(1, most=3.0, step=0.03) is None


def payload_loop(error):
    """The loop with another payload, as the witness sees it."""
    s = subject("payload-fold")
    return Held(type(s.loop)(**vars_of(s.loop, truth=with_payload(s.truth, error))))


def vars_of(loop, **changed):
    names = ("controller", "truth", "measurement")
    return {name: getattr(loop, name) for name in names} | changed


@pytest.mark.slow_but("0.9999-True")
@pytest.mark.parametrize(("share", "rests"), [(0.9999, True), (1.001, False)])
def test_the_loop_rests_on_one_side_of_the_fold_only(share, rests):
    grows = growth(payload_loop(share * FOLD), subject("payload-fold").rest)

    assert (grows < 0) is rests
    assert np.isinf(grows) is not rests


def test_the_margin_against_its_payload_ends_at_the_fold():
    s = subject("payload-fold")
    found = (
        stiffness_margin(s.arm, s.held_design, n_path=0, errors={"payload": 1.0})
        .independent[0]
        .bounds
    )

    assert found.guaranteed_fraction == pytest.approx(-FOLD, rel=1e-5)
    assert not found.proven
