"""A tuning that is killed goes on where it was, and comes to what it would have found at once."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

from flexctl import trade_off, tune
from flexctl.errors import InputError
from flexctl.model import load_design, load_model
from flexctl.search.tuning.memory import _facts
from flexctl.search.tuning.problem import Problem
from flexctl.search.tuning.reading import read_problem
from flexctl.search.tuning.spectra import Case
from flexctl.search.tuning.verification import watched_over, with_cases
from tests.search.test_sweeps import judged

ARM, DESIGN = "single-link-hub", "hub-pd"
FREE = {"gains.Gv": (2.0, 12.0), "gains.Gp": (5.0, 60.0)}
HOW = {
    "minimise": "stability.spectral_abscissa",
    "subject_to": ["margins.phase_deg>=72", "residual.tip_error_end<=0.02"],
    "over": {"payload.mass": "*0.8:*1.5"},
    "unseen": 3,
    "starts": 2,
    "evaluations": 15,
}
_TUNING = f"""
import sys
import flexctl
if __name__ == "__main__":
    flexctl.tune("{ARM}", "{DESIGN}", {FREE}, jobs=int(sys.argv[2]), ledger=sys.argv[1], **{HOW})
"""


def told(found):
    """All that a tuning found, as text to the last digit."""
    facts = found.values, found.objective_after, found.evaluations, found.arms, found.unseen
    return repr((facts, found.constraints, [(one, one.history) for one in found.starts]))


@pytest.fixture(scope="module")
def whole():
    return tune(ARM, DESIGN, FREE, jobs=1, **HOW)


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_tuning_that_is_killed_comes_to_the_same_result(whole, jobs, tmp_path):
    script, file = tmp_path / "run.py", tmp_path / "killed.db"
    script.write_text(_TUNING)
    words = [sys.executable, str(script), str(file), str(jobs)]
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    for enough in (4, 40):
        run = subprocess.Popen(words, start_new_session=True, env=environment)
        while run.poll() is None and judged(file) <= enough:
            time.sleep(0.002)
        assert run.poll() is None
        os.killpg(run.pid, signal.SIGKILL)
        run.wait()
    known = judged(file)

    found = tune(ARM, DESIGN, FREE, jobs=jobs, ledger=file, **HOW)

    assert found.resumed == known > 40
    assert told(found) == told(whole)


@pytest.mark.slow
def test_what_is_in_the_ledger_is_not_evaluated_again(whole, tmp_path, monkeypatch):
    file = tmp_path / "l.db"
    tune(ARM, DESIGN, FREE, jobs=1, ledger=file, **HOW)
    known = judged(file)

    def refuse(*_):
        raise AssertionError("evaluated again")

    for name in ("judged", "value", "spectral_at", "spillover"):
        monkeypatch.setattr(Problem, name, refuse)
    monkeypatch.setattr("flexctl.search.tuning.rounds.verdict_on", refuse)
    again = tune(ARM, DESIGN, FREE, jobs=1, ledger=file, **HOW)

    assert told(again) == told(whole)
    assert judged(file) == again.resumed == known


@pytest.mark.slow
def test_more_evaluations_begin_with_what_is_known(tmp_path):
    how = {"minimise": "residual.tip_error_max", "subject_to": [], "starts": 1, "jobs": 1}
    file = tmp_path / "l.db"
    tune(ARM, DESIGN, FREE, evaluations=4, ledger=file, **how)
    more = tune(ARM, DESIGN, FREE, evaluations=8, ledger=file, **how)
    assert more.resumed > 4
    assert told(more) == told(tune(ARM, DESIGN, FREE, evaluations=8, **how))


@pytest.mark.slow
def test_a_limit_of_margins_that_needs_more_rounds_is_kept_with_a_ledger_too(tmp_path):
    """Later searches watch other cases of the same arms: they find nothing of those before."""
    how = {
        "minimise": "stability.path_spectral_abscissa",
        "subject_to": ["stiffness.exact.path_alpha_upper>=0.15"],
        "starts": 1,
        "evaluations": 6,
        "jobs": 1,
    }
    given = "planar-two-link", "two-link-decoupling", ("gains.Gp", "gains.Gv")
    once, *others = (tune(*given, **how, ledger=x) for x in (None, *2 * [tmp_path / "l.db"]))
    assert len(once.starts) > 1
    assert len(once.arms) == 1
    assert [told(other) for other in others] == 2 * [told(once)]


def test_other_cases_that_are_watched_are_another_problem():
    asked = {"minimise": "residual.tip_error_max", "subject_to": ("margins.gain_db>=6",)}
    given = load_model(ARM), load_design(DESIGN), {"gains.Gv": (2.0, 12.0)}
    problem = watched_over(read_problem(*given, **asked), ({},))
    more = with_cases(problem, [(Case(gains=(0.5,)),)])
    u = np.array([0.5])
    assert _facts("judged", problem, u) == _facts("judged", replace(problem), u)
    assert _facts("judged", problem, u) != _facts("judged", more, u)


@pytest.mark.slow
def test_other_bounds_find_nothing_of_these(tmp_path):
    how = {"minimise": "stability.spectral_abscissa", "subject_to": [], "starts": 1, "jobs": 1}
    file = tmp_path / "l.db"
    tune(ARM, DESIGN, {"gains.Gv": (2.0, 12.0)}, evaluations=3, ledger=file, **how)
    other = tune(ARM, DESIGN, {"gains.Gv": (2.0, 13.0)}, evaluations=3, ledger=file, **how)
    assert other.resumed == 0
    assert told(other) == told(tune(ARM, DESIGN, {"gains.Gv": (2.0, 13.0)}, evaluations=3, **how))


@pytest.mark.slow
def test_searches_of_a_trade_off_share_a_ledger(tmp_path):
    how = {
        "minimise": "stability.spectral_abscissa",
        "against": "stability.min_damping_ratio",
        "subject_to": [],
        "points": 3,
        "starts": 1,
        "evaluations": 10,
        "jobs": 1,
    }
    free, file = {"gains.Gv": (1.0, 10.0)}, tmp_path / "l.db"
    first = trade_off(ARM, DESIGN, free, ledger=file, **how)
    known = judged(file)
    again = trade_off(ARM, DESIGN, free, ledger=file, **how)
    ends = [[(one.first, one.second) for one in found.front] for found in (first, again)]
    np.testing.assert_array_equal(*ends)
    assert judged(file) == known > 10


def test_the_ledger_of_another_search_is_refused(tmp_path):
    file = tmp_path / "l.db"
    how = {"minimise": "stability.spectral_abscissa", "subject_to": [], "jobs": 1}
    tune(ARM, DESIGN, {"gains.Gv": (2.0, 12.0)}, evaluations=3, starts=1, ledger=file, **how)
    message = (
        "expected the ledger of single-link-hub with hub-pd over gains.Gp, got that of "
        "single-link-hub with hub-pd over gains.Gv; name another file"
    )
    with pytest.raises(InputError, match=message):
        tune(ARM, DESIGN, {"gains.Gp": (5.0, 60.0)}, ledger=file, **how)
    with pytest.raises(InputError, match=r"^ledger: expected str or Path or NoneType, got int$"):
        tune(ARM, DESIGN, {"gains.Gv": (2.0, 12.0)}, ledger=3, **how)
    file.write_text("not a ledger, but long enough to be read as something else " * 40)
    with pytest.raises(InputError, match="expected a ledger of flexctl, got another file"):
        tune(ARM, DESIGN, {"gains.Gv": (2.0, 12.0)}, ledger=file, **how)
    with pytest.raises(InputError, match=r"l\.db: expected an existing folder, got "):
        tune(ARM, DESIGN, {"gains.Gv": (2.0, 12.0)}, ledger=tmp_path / "no" / "l.db", **how)
