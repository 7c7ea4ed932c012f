"""What a tuning finds at places, kept in a ledger: begun again, it goes on where it was ended.

A search is repeatable. So what it evaluated is all that has to be kept: the same search finds it
in the ledger and goes on from where it got to, whatever ended it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, astuple
from pathlib import Path
from typing import Any, Self

import numpy as np

from flexctl.checks import Array
from flexctl.search.ledger import Ledger, Row
from flexctl.search.nonsmooth import Pieces
from flexctl.search.tuning.coarse_search import merit
from flexctl.search.tuning.loops_of_arms import LostError
from flexctl.search.tuning.point import Point
from flexctl.search.tuning.problem import Problem
from flexctl.search.tuning.spectra import Case
from flexctl.search.tuning.verification import Verified


class Memory:
    """Values by what they are of; without a file each is found anew.

    Parameters
    ----------
    path
        The ledger's file, None for none.
    problem
        Of the tuning: arm, design, free numbers, objective and limits, on which all values depend.

    Raises
    ------
    InputError
        When the file is no ledger, or that of another arm, design or other free numbers.
    """

    def __init__(self, path: Path | None, problem: Problem) -> None:
        self.path = path
        asked = problem.objective, problem.requirements
        facts = repr((problem.study.content, problem.free.numbers, asked))
        self._content = hashlib.sha256(facts.encode()).hexdigest()
        self._label = {
            "model": problem.study.setup.design_arm.name,
            "designs": [problem.study.designs[0].name],
            "keys": [one.name for one in problem.free.numbers],
        }
        self._open: Ledger | None = None
        self.resumed = len(self._book) if path else 0

    @property
    def _book(self) -> Ledger:
        if self._open is None:
            self._open = Ledger(self.path, self._content, self._label)
        return self._open

    def release(self) -> None:
        """Close the file until it is needed: SQLite's connections must not pass a fork."""
        if self._open is not None:
            self._open.close()
        self._open = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def judged(
        self, problem: Problem, here: Point, *, limits_alone: bool = False
    ) -> tuple[Pieces, list[int]]:
        """Return `Problem.judged` of a place."""
        limits_alone &= here.slopes
        if self.path is None:
            return problem.judged(here, limits_alone=limits_alone)

        def make() -> dict[str, Any]:
            pieces, owners = problem.judged(here, limits_alone=limits_alone)
            return {**_plain(pieces), "owners": owners}

        slopes = "of limits" if limits_alone else here.slopes
        found = self._known(_facts(f"judged {slopes}", problem, here.u), make)
        return _pieces(found), list(found["owners"])

    def spectral(self, problem: Problem, u: Array) -> Pieces:
        """Return `Problem.spectral_at` with derivatives; raises LostError as that does."""
        if self.path is None:
            return problem.spectral_at(u)

        def make() -> dict[str, Any]:
            try:
                return _plain(problem.spectral_at(u))
            except LostError:
                return {}

        found = self._known(_facts("spectral", problem, u), make)
        if not found:
            raise LostError("no loop")
        return _pieces(found)

    def value(self, problem: Problem, here: Point) -> float:
        """Return `Problem.value` of a place."""
        return self._number("value", problem, here.u, lambda: problem.value(here))

    def merit(self, problem: Problem, u: Array) -> float:
        """Return the `merit` of a place u (n,)."""
        return self._number("merit", problem, u, lambda: merit(problem, u))

    def spillover(self, problem: Problem, u: Array) -> dict[Case, float]:
        """Return `Problem.spillover` of a place u (n,)."""
        if self.path is None:
            return problem.spillover(u)

        def make() -> dict[str, Any]:
            found = problem.spillover(u).items()
            return {"finer": [[case.order, case.time, x] for case, x in found]}

        known = self._known(_facts("spillover", problem, u), make)["finer"]
        return {Case(order=order, time=time): x for order, time, x in known}

    def verified(
        self, problem: Problem, u: Array, arms: Sequence[Mapping[str, float]]
    ) -> list[Verified | None]:
        """Return verdicts that are known of a place u (n,) on arms; None where there is none."""
        if self.path is None:
            return [None] * len(arms)
        rows = [self._book.get(self._point(_of_verdict(problem, u, arm))) for arm in arms]
        return [
            _verified(row.metrics, arm) if row and row.metrics else None
            for row, arm in zip(rows, arms, strict=True)
        ]

    def keep(self, problem: Problem, u: Array, verdicts: Sequence[Verified]) -> None:
        """Keep verdicts on a place u (n,)."""
        if self.path is None or not verdicts:
            return
        rows = [
            Row(point=self._point(_of_verdict(problem, u, one.arm)), metrics=_table(one))
            for one in verdicts
        ]
        self._book.add(rows)

    def _known(self, key: str, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        point = self._point(key)
        row = self._book.get(point)
        if row is None:
            row = Row(point=point, metrics=make())
            self._book.add([row])
        return dict(row.metrics or {})

    def _number(self, kind: str, problem: Problem, u: Array, make: Callable[[], float]) -> float:
        if self.path is None:
            return make()
        return float(self._known(_facts(kind, problem, u), lambda: {"x": make()})["x"])

    @staticmethod
    def _point(key: str) -> int:
        """Return a number of 63 bits for a key, as SQLite holds."""
        return int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big") >> 1


def _facts(kind: str, problem: Problem, u: Array) -> str:
    """Name a value of a kind at u (n,): all that it depends on, beside what the ledger is of."""
    asked = problem.objective, problem.requirements, problem.arms, problem.runs_on
    limits = [*problem.spectral, *filter(None, [problem.of_eigenvalues])]
    watched = [astuple(one) for one in limits]  # with all their cases, which repr leaves out
    how = len(problem.spectral), problem.scale, problem.aim, problem.exact, problem.rounded
    return repr((kind, asked, watched, how, list(problem.reserves.items()), u.tolist()))


def _of_verdict(problem: Problem, u: Array, arm: Mapping[str, float]) -> str:
    return repr(("verdict", problem.objective, problem.requirements, dict(arm), u.tolist()))


def _plain(pieces: Pieces) -> dict[str, Any]:
    parts = "values", "gradients", "constraints", "constraint_gradients"
    return {name: getattr(pieces, name).tolist() for name in parts} | {
        "n": pieces.gradients.shape[1]
    }


def _pieces(found: Mapping[str, Any]) -> Pieces:
    n = found["n"]
    values, limits = (np.array(found[name], dtype=float) for name in ("values", "constraints"))
    return Pieces(
        values=values,
        gradients=np.array(found["gradients"], dtype=float).reshape(len(values), n),
        constraints=limits,
        constraint_gradients=np.array(found["constraint_gradients"], float).reshape(len(limits), n),
    )


def _table(one: Verified) -> dict[str, Any]:
    """Write a verdict without its arm; complex factors of the torques as pairs of their parts."""
    found = asdict(one)
    del found["arm"]
    for case in (case for cases in found["lost"] for case in cases):
        case["gains"] = [[x.real, x.imag] if isinstance(x, complex) else x for x in case["gains"]]
    return found


def _verified(table: Mapping[str, Any], arm: Mapping[str, float]) -> Verified:
    lost = tuple(
        tuple(Case(**{**case, "gains": tuple(map(_factor, case["gains"]))}) for case in cases)
        for cases in table["lost"]
    )
    own = {"violations": tuple(table["violations"]), "lost": lost}
    return Verified(arm=arm, **{**table, **own})


def _factor(written: float | Sequence[float]) -> complex:
    """Return a factor as it was before it was written: a real one stays real, as its loop does."""
    return complex(*written) if isinstance(written, Sequence) else written
