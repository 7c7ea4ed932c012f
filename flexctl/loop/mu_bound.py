"""Upper bound of the structured singular value of one matrix, checked whatever a routine says."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg
import slycot
from slycot.exceptions import SlycotError

from flexctl.checks import ComplexArray
from flexctl.loop.scalings import Block, Scalings, find_scalings

_CLOSE = 1e-3  # relative distance at which a bound is not lowered further
_LARGEST_STEP = 0.5  # by which a bound is tried to be lowered at once


@dataclass(frozen=True, kw_only=True)
class MuBound:
    """Upper bound of mu of a matrix [-] and the scalings that prove it; None when it is the norm.

    `method` is "ab13md", "complex" (ab13md failed with real blocks: all taken as complex), "norm",
    "small" (the norm is below what matters), "exact" (the norm of one full block) or "interior
    point".
    """

    value: float
    scalings: Scalings | None
    method: str


def expanded_bound(M: ComplexArray, blocks: tuple[Block, ...], floor: float) -> MuBound:
    """Bound of mu of M (r, r) by SLICOT's ab13md, every repeated delta taken as independent ones.

    ab13md takes real blocks of size one only. Its scalings are put into the linear matrix
    inequality again, and the smallest value that they prove is the bound, not what it returned;
    should that prove nothing, the errors are taken as complex, and at last the largest singular
    value bounds mu, as it does where it is not above `floor`. Source: [FanTitsDoyle91].
    """
    norm = float(np.linalg.norm(M, 2))
    if norm <= floor or (len(blocks) == 1 and blocks[0].full):
        return MuBound(value=norm, scalings=None, method="exact" if norm > floor else "small")
    for method in ("ab13md", "complex"):
        scalings = _from_slycot(M, blocks, real=method == "ab13md")
        value = np.inf if scalings is None else smallest_level(M, scalings)
        if scalings is not None and value <= norm * (1 + 1e-9):
            return MuBound(value=value, scalings=scalings, method=method)
    return MuBound(value=norm, scalings=None, method="norm")


def tight_bound(
    M: ComplexArray, blocks: tuple[Block, ...], known: MuBound, floor: float
) -> MuBound:
    """Lower a bound to within 0.1 % of what D and G can prove, repeated errors kept as one.

    A bound below `floor` > 0 is lowered no further: it does not matter.
    """
    low = floor
    while known.value > low * (1 + _CLOSE):
        level = max(float(np.sqrt(low * known.value)), known.value * _LARGEST_STEP)
        found = find_scalings((M / level)[None], blocks)
        if found is None:
            low = level
            continue
        scalings = found.at_level(level)
        value = smallest_level(M, scalings)
        if not value < known.value:
            break
        known = MuBound(value=value, scalings=scalings, method="interior point")
    return known


def band_bound(M: ComplexArray, blocks: tuple[Block, ...], floor: float) -> float:
    """Smallest level [-] above `floor` > 0 at which one pair of scalings suits all M (K, r, r).

    To a tenth of a per cent; the largest norm always does.
    """
    low, high = floor, float(np.linalg.norm(M, 2, axis=(1, 2)).max()) * 1.01
    while high > low * (1 + _CLOSE):
        middle = float(np.sqrt(low * high))
        low, high = (low, middle) if find_scalings(M / middle, blocks) else (middle, high)
    return high


def smallest_level(M: ComplexArray, scalings: Scalings) -> float:
    """Smallest beta [-] with M* D M + j (G M - M* G) <= beta^2 D, (r, r): it bounds mu of M.

    A generalised Hermitian eigenvalue problem; infinite when it cannot be solved.
    """
    try:
        largest = scipy.linalg.eigh(
            scalings.form(M) + scalings.D, scalings.D, eigvals_only=True, driver="gv"
        )[-1]
    except np.linalg.LinAlgError:
        return np.inf
    return float(np.sqrt(max(largest, 0.0)))


def _from_slycot(M: ComplexArray, blocks: tuple[Block, ...], *, real: bool) -> Scalings | None:
    """Scalings by ab13md of the balanced matrix of unit norm: G is in units of M.

    Of a matrix of a norm of 1e-6 with real blocks ab13md of slycot 0.7.1 may never return.
    """
    sizes = [(1 if not b.full else b.size, b.real) for b in blocks for _ in range(_pieces(b))]
    scale = np.ones(len(M))
    if all(not block.full for block in blocks):
        _, (scale, _) = scipy.linalg.matrix_balance(np.abs(M), permute=False, separate=True)
    balanced = M * scale / scale[:, None]
    n_blocks = np.array([size for size, _ in sizes])
    kinds = np.array([1 if is_real and real else 2 for _, is_real in sizes])
    if len(n_blocks) == 1:  # one block: nothing to scale, but a real one has a G
        return _alone(balanced, real=bool(kinds[0] == 1))
    try:
        norm = float(np.linalg.norm(balanced, 2))
        _, d, g, _ = slycot.ab13md(balanced / norm, n_blocks, kinds)
    except (SlycotError, ValueError):
        return None
    if not (np.isfinite(d).all() and np.isfinite(g).all() and (d > 0).all()):
        return None
    D, G = d**2 / scale**2, norm * g / scale**2
    return Scalings(D=np.diag(D / D.max()).astype(complex), G=np.diag(G / D.max()).astype(complex))


def _pieces(block: Block) -> int:
    return 1 if block.full else block.size


def _alone(M: ComplexArray, *, real: bool) -> Scalings:
    """Scalings of one block: mu of a real 1 x 1 is zero unless M is real."""
    G = np.zeros_like(M)
    m = M[0, 0]
    if real and abs(m.imag) > 1e-12 * abs(m):
        G[0, 0] = abs(m) ** 2 / (2 * m.imag)  # |m|^2 - 2 G Im m = 0
    return Scalings(D=np.eye(len(M), dtype=complex), G=G)
