"""Modes that follow the length of a sliding link, and their range of lengths."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from io import BytesIO

import numpy as np

from flexctl.beam import (
    LegendreShapes,
    LengthShapes,
    RootShapes,
    SlidingLine,
    SlidingShapes,
    fit_root_shapes,
    fit_sliding_shapes,
)
from flexctl.body import Body
from flexctl.checks import Array
from flexctl.errors import ComputationError, InputError
from flexctl.model import BasisChoice, Link, read_sealed, write_sealed
from flexctl.plant.library_cache import cache_folder, source_digest

_BEYOND = 0.05  # of the lengths that the limits allow: a run may swing beyond them
_TOLERANCE = 1e-9  # of shapes: the error of frequencies is its square


def modes_of_length(
    link: Link, body: tuple[float, float, float], basis: BasisChoice
) -> LengthShapes:
    """Return the exact modes of a sliding link on all lengths slightly beyond its limits.

    `body` is mass [kg], moment of inertia [kg m^2] and first moment [kg m] at its tip.

    Raises InputError if the link has no limits, or may vanish in its hub. Raises ComputationError
    if modes from a table cannot be proven to be within 1e-9, or roots are not found. Source:
    [TG95], 4.2.
    """
    low, high = _allowed_lengths(link, basis)
    mass, inertia, first_moment = body
    try:
        line = SlidingLine(
            mass_per_length=link.mass_per_length,
            mass=mass,
            inertia=inertia,
            first_moment=first_moment,
        )
        make = _fitted if basis.sliding == "exact" else _rooted
        return make(basis.order, line, low * (1 - _BEYOND), high * (1 + _BEYOND))
    except (InputError, ComputationError) as error:
        raise type(error)(f"{link.name}, modes of every length: {error}") from error


def _allowed_lengths(link: Link, basis: BasisChoice) -> tuple[float, float]:
    """Return the least and the greatest free length [m] that the limits allow."""
    if link.limits.position is None:
        raise InputError(
            f"{link.name}.limits.position: expected the range of its modes, as the basis has "
            f'sliding = "{basis.sliding}", got nothing'
        )
    low, high = (position + link.dh.d for position in link.limits.position)
    if low <= 0:
        raise InputError(
            f"{link.name}.limits.position: expected a free length above 0, as the basis has "
            f'sliding = "{basis.sliding}", got {low:g} m'
        )
    return low, high


@lru_cache(maxsize=64)
def _rooted(n: int, line: SlidingLine, shortest: float, longest: float) -> RootShapes:
    """Fit once: planes, design and truth often share the modes."""
    return fit_root_shapes(n, line, shortest, longest)


@lru_cache(maxsize=64)
def _fitted(n: int, line: SlidingLine, shortest: float, longest: float) -> SlidingShapes:
    """Fit once: planes, design and truth often share the modes, and later commands do."""
    key = f"{source_digest()} {n} {line!r} {shortest!r} {longest!r} {_TOLERANCE!r}"
    name = f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.npz"
    kept = _kept(name)
    if kept is None:
        kept = fit_sliding_shapes(n, line, shortest, longest, _TOLERANCE)
        _keep(name, kept)
    return kept


def _kept(name: str) -> SlidingShapes | None:
    """Return the modes that an earlier fit left in the cache; None if there are none."""
    try:
        content = read_sealed(cache_folder() / name)
    except OSError:  # missing or damaged
        return None
    with np.load(BytesIO(content)) as file:
        return SlidingShapes(
            shortest=float(file["range"][0]),
            longest=float(file["range"][1]),
            base=LegendreShapes(curvatures=file["curvatures"]),
            mix=file["mix"],
            error=file["error"],
        )


def _keep(name: str, shapes: SlidingShapes) -> None:
    """Leave modes in the cache, if it can be written."""
    buffer = BytesIO()
    np.savez(
        buffer,
        range=[shapes.shortest, shapes.longest],
        curvatures=shapes.base.curvatures,
        mix=shapes.mix,
        error=shapes.error,
    )
    with suppress(OSError):
        folder = cache_folder()
        folder.mkdir(parents=True, exist_ok=True)
        write_sealed(folder / name, buffer.getvalue())


def followed_range(bodies: Sequence[Body]) -> tuple[Array, Array]:
    """Lowest and highest joint variables (m,) for which the modes were fitted; else infinite."""
    low, high = np.full(len(bodies), -np.inf), np.full(len(bodies), np.inf)
    for j, body in enumerate(bodies):
        for mixed in body.mixes.values():
            low[j] = max(low[j], mixed.shortest - body.link.dh.d)
            high[j] = min(high[j], mixed.longest - body.link.dh.d)
    return low, high


def check_followed(bodies: Sequence[Body], joints: Sequence[float] | Array) -> None:
    """Refuse a pose (m,) in which a sliding link's length is outside the range of its modes.

    Raises InputError naming the joint, the range of its modes and what was given.
    """
    for j, (low, high) in enumerate(zip(*followed_range(bodies), strict=True)):
        if not low <= joints[j] <= high:
            raise InputError(
                f"pose.joint{j + 1}: expected {low:g} .. {high:g} m, for which its modes were made "
                f"(its limits and {_BEYOND:.0%} beyond, as its modes follow its length), "
                f"got {joints[j]:g}"
            )
