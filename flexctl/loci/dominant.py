"""Which branches matter: by their damping and by the motions that participate in them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

from flexctl.checks import ComplexArray
from flexctl.loop import ON_AXIS

MOST = 9  # pairs and real eigenvalues among the dominant ones
FIRST = 6  # eigenvalues that are dominant however small their index
LEAST = 0.01  # of the largest index: below, no further one is dominant
_SEEN = 0.03  # weight below which a branch is not seen at the tip: a second mode alone has 0.025
_LIGHT = 0.01  # damping ratio: what is damped less counts as damped so much
_MODE = re.compile(r"\S+\.(?P<plane>[xyz]|twist)\.(?P<number>[0-9]+)$")
_CLAMPED = (1.875104, 4.694091, 7.854757)  # roots of cos(b) cosh(b) = -1


class LabelledBranch(Protocol):
    """What dominance depends on: label, values (k,) [1/s] and shares of motions of a branch."""

    @property
    def label(self) -> str:
        """Name of the pair, or of the real eigenvalue, alike of both halves."""
        ...

    @property
    def values(self) -> ComplexArray:
        """Eigenvalues (k,) [1/s]."""
        ...

    @property
    def participation(self) -> Mapping[str, float]:
        """Shares [-] of motions."""
        ...


def dominant(branches: Sequence[LabelledBranch], most: int = MOST) -> tuple[int, ...]:
    """Choose the branches of which the response is made, by their index of dominance.

    Branches that are unstable somewhere come first. The others follow by `dominance`, until there
    are `most` pairs and real eigenvalues. Beyond the first six branches those with an index below
    1 % of the largest are left out, and always those with none. What a state is called makes no
    difference: a copy of a law with other names has the same dominant branches.

    Returns
    -------
    tuple
        Indices into `branches`, the most dominant first.
    """
    index = np.array([dominance(branch) for branch in branches])
    least = LEAST * index[np.isfinite(index)].max(initial=0.0)
    order = [int(k) for k in np.argsort(-index, kind="stable") if index[k] > 0]
    order = [k for i, k in enumerate(order) if i < FIRST or index[k] >= least]
    labels = list(dict.fromkeys(branches[k].label for k in order))[:most]
    return tuple(k for k in order if branches[k].label in labels)


def dominance(branch: LabelledBranch) -> float:
    """Area under the envelope of a branch's decay [s], relative to that of other branches.

    weight / (-Re lambda) where its decay is slowest; infinite where the branch is unstable, zero
    where the weight is below 3 %. The weight is the sum of the shares of motions, each as far as
    it is seen at the tip: joints, rotors and first modes count 1, higher modes by their part in
    the static compliance of a clamped line, (beta_1/beta_k)^4 in bending and 1/(2k - 1)^2 in
    torsion; torques that wait for their time count 0. Damping ratios below 1 % count as 1 %: a
    model without damping of its structure does not say which mode decays last.
    """
    values = branch.values[np.isfinite(branch.values)]
    if not len(values):
        return 0.0
    if (values.real > ON_AXIS * np.abs(values)).any():
        return float("inf")
    weight = sum(share * _seen(name) for name, share in branch.participation.items())
    if weight < _SEEN:
        return 0.0
    decay = np.maximum(-values.real, _LIGHT * np.abs(values))
    slowest = max(float(decay.min()), np.finfo(float).tiny)
    return weight / slowest


def _seen(name: str) -> float:
    """Part of a motion that is seen at the tip, beside the first mode's of a line."""
    if name == "delayed torque":
        return 0.0
    mode = _MODE.fullmatch(name)
    if mode is None:
        return 1.0
    k = int(mode["number"])
    if mode["plane"] == "twist":
        return 1.0 / (2 * k - 1) ** 2
    root = _CLAMPED[k - 1] if k <= len(_CLAMPED) else (k - 0.5) * np.pi
    return float((_CLAMPED[0] / root) ** 4)
