"""Discretisations that `flexctl track --beside` sets beside each other."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from flexctl.errors import InputError
from flexctl.loci import MatchedBranch
from flexctl.view.options import TrackOptions

_WORD = re.compile(r"(?:(m)|e)([1-9][0-9]{0,2})")
_LOUD = 5e-5  # of a frequency, to be called higher or lower


def read_beside(text: str, asked: TrackOptions) -> TrackOptions:
    """Read ``e2``, or ``m2:e8``: what to ask for in place of the discretisations of `asked`.

    Raises
    ------
    InputError
        When it is not m or e with a number, or two such with a colon between.
    """
    basis, _, truth = (part.strip() for part in text.partition(":"))
    words = [_WORD.fullmatch(word) for word in (basis, truth or basis)]
    if None in words or text.endswith(":"):
        raise InputError(f"--beside: expected such as e2 or m2:e8, got {text!r}")
    orders = [{bool(word[1]): int(word[2])} for word in words if word]
    own, around = orders
    return replace(
        asked,
        modes=own.get(True),
        elements=own.get(False),
        truth_modes=around.get(True),
        truth_elements=around.get(False),
        sliding=None,
        truth_drop_above=None,
    )


def twin_json(match: MatchedBranch) -> dict[str, Any]:
    """Write which eigenvalue of the other discretisation a branch is, and how far off."""
    return {
        "label": match.branch.label,
        "branch": [int(k) if k >= 0 else None for k in match.index],
        "likeness": match.likeness,
        "ratio": match.ratio,
    }


def side_by_side(name: str, matches: Sequence[MatchedBranch]) -> str:
    """Say whether imaginary parts of another discretisation are higher or lower, and how far."""
    off = [match.ratio[match.index >= 0] - 1 for match in matches]
    every = np.concatenate([*off, np.zeros(0)])
    if not len(every):
        return f"{name}: no mode corresponds."
    low, high = float(every.min()), float(every.max())
    if max(-low, high) <= _LOUD:
        return f"{name}: imaginary parts are the same within {_percent(_LOUD)}."
    if low > -_LOUD:
        return f"{name}: no imaginary part is lower, the highest by {_percent(high)} higher."
    if high < _LOUD:
        return f"{name}: no imaginary part is higher, the lowest by {_percent(-low)} lower."
    extremes = [
        next(match for match, x in zip(matches, off, strict=True) if len(x) and pick(x) == expected)
        for pick, expected in ((np.min, low), (np.max, high))
    ]
    least, most = (match.branch.label for match in extremes)
    return (
        f"{name}: imaginary parts are up to {_percent(-low)} lower ({least}) and up to "
        f"{_percent(high)} higher ({most}) among corresponding modes."
    )


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"
