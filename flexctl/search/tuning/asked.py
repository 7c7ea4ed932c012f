"""What tuning is asked for: by the caller, and else by the design's own file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from flexctl import checks
from flexctl.errors import InputError
from flexctl.model import Design, TuneChoice, is_of_design
from flexctl.search.samples import Spec, Variation
from flexctl.search.tuning.free_numbers import Bounds, FreeNumbers

_MOST = 1_000_000
_LEAST_SHARE = 0.5  # of arms on which limits are kept


@dataclass(frozen=True, kw_only=True)
class Asked:
    """Arguments of `tune`, with those of the design's file where none are given: `of_file`."""

    free: Mapping[str, Bounds] | Sequence[str] | FreeNumbers
    minimise: str | Sequence[str] | None
    subject_to: Sequence[str] | None
    over: Mapping[str, Spec | Variation]
    untied: bool
    quantile: float | None = None
    of_file: frozenset[str] = frozenset()

    @contextmanager
    def named_in(self, design: Design) -> Iterator[None]:
        """Name file and key in refusals of what the table `tune` of a design asks for."""
        try:
            yield
        except InputError as error:
            words = str(error).removeprefix(f"{design.label}: ")
            key = words.partition(":")[0]
            of_over = "over" in self.of_file and key in self.over
            if not (of_over or key in self.of_file):
                raise
            where = "tune.over" if of_over else "tune"
            raise InputError(f"{design.label}: {where}.{words}") from error

    @property
    def specs(self) -> dict[str, Spec]:
        """How the arm varies, as a file has it."""
        return {key: _spec(one) for key, one in self.over.items()}


def _spec(one: Spec | Variation) -> Spec:
    """Write how a number varies, such as by a column of a table, as a text or plain numbers."""
    if isinstance(one, str):
        return one
    if not isinstance(one, Variation):
        numbers = np.asarray(one, dtype=float)  # of numpy too
        return tuple(numbers.tolist()) if numbers.ndim else float(numbers)
    factor = "*" if one.scaled else ""
    texts = [f"{factor}{float(x)!r}" for x in one.numbers]
    if one.kind != "values":
        return f"{one.kind}({', '.join(texts)})"
    return ", ".join(texts) if one.scaled else one.numbers


def asked_of(
    design: Design,
    free: Mapping[str, Bounds] | Sequence[str] | FreeNumbers,
    minimise: str | Sequence[str] | None,
    subject_to: Sequence[str] | None,
    over: Mapping[str, Spec | Variation] | None,
    *,
    untied: bool,
    quantile: float | None = None,
) -> Asked:
    """Return what is asked for; each of a design's table `tune` counts where it is not given."""
    own = design.tune or TuneChoice()
    given = {
        "free": bool(free),
        "minimise": minimise is not None,
        "subject_to": subject_to is not None,
        "over": over is not None,
        "quantile": quantile is not None,
    }
    free = [free] if isinstance(free, str) else free
    subject_to = [subject_to] if isinstance(subject_to, str) else subject_to
    over = (own.over or {}) if over is None else over
    checks.kind("over", over, Mapping)
    checks.kind("minimise", minimise, str, list, tuple, type(None))
    checks.kind("subject_to", subject_to, list, tuple, type(None))
    for name, texts in {"minimise": minimise, "subject_to": subject_to, "over": over}.items():
        checks.texts(name, () if texts is None else texts)
    if not isinstance(free, FreeNumbers):
        checks.kind("free", free, Mapping, list, tuple)
        checks.texts("free", free)
    quantile = own.quantile if quantile is None else quantile
    asked = Asked(
        free=free or own.free or (),
        minimise=own.minimise if minimise is None else minimise,
        subject_to=own.subject_to if subject_to is None else subject_to,
        over=over,
        untied=untied or own.untied,
        quantile=quantile,
        of_file=frozenset(key for key, here in given.items() if not here and getattr(own, key)),
    )
    with asked.named_in(design):
        for key in over:
            if is_of_design(key):
                raise InputError(f"over: expected numbers of the arm, got {key} of the design")
        if quantile is not None:
            _check_quantile(quantile, over)
    return asked


def _check_quantile(quantile: float, over: Mapping[str, object]) -> None:
    number = isinstance(quantile, int | float) and not isinstance(quantile, bool)
    if not number or not _LEAST_SHARE <= quantile <= 1:
        raise InputError(f"quantile: expected a share in {_LEAST_SHARE} .. 1, got {quantile!r}")
    if not over:
        raise InputError("quantile: expected numbers of the arm that vary (over), got none")


def check_effort(**numbers: int | None) -> dict[str, Any]:
    """Return numbers of starts, evaluations, ..., of NumPy too, as whole ones; refuse others."""
    return {
        name: number
        if number is None
        else checks.whole(name, number, least=0 if name in ("unseen", "seed") else 1, most=_MOST)
        for name, number in numbers.items()
    }
