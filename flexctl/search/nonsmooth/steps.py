"""Steps of descent from linear pieces and a metric, and the penalty that steers them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from flexctl.checks import Array
from flexctl.search.nonsmooth.combination import solve_dual

_LARGEST_PENALTY = 1e12
_ROUND_OFF = 1e-12  # of predicted violations
_SHARE = 0.1  # of the best predicted fall of the violation that a step shall predict


@dataclass(frozen=True, kw_only=True)
class LinearModel:
    """First-order pieces about a point: values there and gradients; and the box of its steps."""

    values: Array  # (k,)
    gradients: Array  # (k, n)
    constraints: Array  # (l,)
    constraint_gradients: Array  # (l, n)
    lowest: Array  # of a step, (n,) <= 0
    highest: Array  # (n,) >= 0

    def after(self, d: Array) -> tuple[float, float]:
        """Predict objective and violation after a step (n,)."""
        f = float((self.values + self.gradients @ d).max())
        v = float((self.constraints + self.constraint_gradients @ d).max(initial=0.0))
        return f, v


@dataclass(frozen=True, kw_only=True)
class Step:
    """A step d (n,), the change of objective + penalty * violation it predicts, the penalty.

    `weights` (k,) and `multipliers` (l,) are those of the pieces in the quadratic program.
    """

    d: Array
    change: float
    penalty: float
    weights: Array
    multipliers: Array


def make_step(model: LinearModel, inverse: Array, penalty: float) -> Step:
    """Minimise objective + penalty * violation + d'Bd/2 of the model, `inverse` (n, n) being B^-1.

    The penalty grows until the step predicts a fair share of the fall of the violation that is
    possible when the objective is left out. Source: [CurtisMitchellOverton17].
    """
    f0, v0 = model.after(np.zeros_like(model.lowest))
    d, z = _solve(model, inverse, penalty)
    f, v = model.after(d)
    tiny = _ROUND_OFF * (1 + float(np.abs(model.constraints).max(initial=0.0)))
    if v > tiny:
        best = model.after(_solve(model, inverse, None)[0])[1]
        while v0 - v < _SHARE * (v0 - best) - tiny and penalty < _LARGEST_PENALTY:
            penalty *= 10.0
            d, z = _solve(model, inverse, penalty)
            f, v = model.after(d)
    k, change = len(model.values), f - f0 + penalty * (v - v0)
    return Step(
        d=d,
        change=change,
        penalty=penalty,
        weights=z[:k],
        multipliers=z[k : k + len(model.constraints)],
    )


def _solve(model: LinearModel, inverse: Array, penalty: float | None) -> tuple[Array, Array]:
    """Find step and multipliers for one penalty; without one, of the violation alone."""
    k, m, n = len(model.values), len(model.constraints), inverse.shape[0]
    parts, values, groups, totals = [], [], [], []
    if penalty is not None:
        parts, values = [model.gradients], [model.values - model.values.max()]
        groups, totals = [np.r_[np.ones(k), np.zeros(m + 1 if m else 0)]], [1.0]
    if m:
        parts += [model.constraint_gradients, np.zeros((1, n))]  # the last: violation >= 0
        values += [model.constraints, np.zeros(1)]
        before = 0 if penalty is None else k
        groups.append(np.r_[np.zeros(before), np.ones(m + 1)])
        totals.append(1.0 if penalty is None else penalty)
    rows, b = np.vstack(parts), np.concatenate(values)
    return _within_box(rows, b, np.array(groups), np.array(totals), inverse, model)


def _within_box(
    rows: Array, b: Array, groups: Array, totals: Array, inverse: Array, model: LinearModel
) -> tuple[Array, Array]:
    """Solve, and again with the bounds that the step breaks, until it breaks none."""
    n = inverse.shape[0]
    size = max(float(np.abs(b).max(initial=0.0)), 1.0)
    held: list[int] = []
    while True:
        z = solve_dual(rows @ inverse @ rows.T, b, groups, totals)
        d = -inverse @ (rows.T @ z)
        below, above = model.lowest - d, d - model.highest
        tolerance = 1e-12 * (size + np.abs(d))
        outside = np.flatnonzero(np.r_[below > tolerance, above > tolerance])
        broken = [int(i) for i in outside if i not in held]
        if not broken:
            return np.clip(d, model.lowest, model.highest), z
        held += broken
        for i in broken:  # -d_i + lowest_i <= 0, or d_i - highest_i <= 0
            unit = np.zeros((1, n))
            unit[0, i % n] = -1.0 if i < n else 1.0
            rows = np.vstack([rows, unit])
            b = np.r_[b, model.lowest[i] if i < n else -model.highest[i - n]]
        groups = np.hstack([groups, np.zeros((len(groups), len(broken)))])
