"""Blocks of Delta: which channels each error has, and which of them are bounded apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from flexctl.errors import InputError
from flexctl.robustness.lft.scalings import Block
from flexctl.robustness.lft.uncertain_loop import Parameter, UncertainLoop

KINDS = ("real", "complex", "full")
_MOST_CHANNELS = 4  # of one error that are bounded together


def blocks_of(loop: UncertainLoop, kinds: Sequence[str] | None) -> tuple[Block, ...]:
    """Block of Delta of each parameter (p,), all of them real where no `kinds` are named.

    Raises
    ------
    InputError
        When `kinds` are not as many as the parameters, or one is not in `KINDS`.
    """
    kinds = ("real",) * len(loop.parameters) if kinds is None else tuple(kinds)
    if len(kinds) != len(loop.parameters) or not set(kinds) <= set(KINDS):
        raise InputError(
            f"kinds: expected one of {', '.join(KINDS)} for each of {len(loop.parameters)} "
            f"parameters, got {kinds}"
        )
    first = np.concatenate([[0], np.cumsum([p.size for p in loop.parameters])])
    return tuple(
        Block(first=int(at), size=p.size, real=kind == "real", full=kind == "full")
        for at, p, kind in zip(first, loop.parameters, kinds, strict=False)
    )


def split_channels(loop: UncertainLoop, blocks: tuple[Block, ...]) -> tuple[Block, ...]:
    """Treat the separable channels of an error with many channels as independent errors.

    The unknowns of a scaling grow with the square of the channels of a repeated error, and the
    search for it with the sixth power. A bound for independent errors holds for equal ones too.
    """
    return tuple(
        part
        for parameter, block in zip(loop.parameters, blocks, strict=True)
        for part in (_channels(block, parameter) if is_split(parameter, block) else (block,))
    )


def is_split(parameter: Parameter, block: Block) -> bool:
    """Whether a real error has separable channels, and too many to bound them together."""
    separable = bool(parameter.separable) and block.real and not block.full
    return separable and block.size > _MOST_CHANNELS


def _channels(block: Block, parameter: Parameter) -> tuple[Block, ...]:
    """Split a block: its last channels, which are separable, one by one, the others together."""
    shared = block.size - parameter.separable
    one_by_one = (replace(block, first=block.first + k, size=1) for k in range(shared, block.size))
    return (*([replace(block, size=shared)] if shared else []), *one_by_one)
