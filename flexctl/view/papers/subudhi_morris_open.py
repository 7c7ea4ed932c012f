"""Claims of [SM02] that nothing here can decide, and what it would take."""

from __future__ import annotations

import numpy as np

from flexctl.view.papers.claim import Claim
from flexctl.view.papers.subudhi_morris_arm import bang_bang


def _unchecked(id: str, paper: str, ours: str, why: str) -> Claim:
    return Claim(id=id, paper=paper, ours=ours, verdict="cannot be checked", why=why)


def experiments() -> Claim:
    """Leave a statement about other arms open."""
    return _unchecked(
        "introduction",
        "experiments show flexible joints in most manipulators, and both kinds of flexibility are "
        "needed in the model for good tracking",
        "-",
        "a statement about measurements that are not in the paper",
    )


def small_angles() -> Claim:
    """Leave a statement about another paper open."""
    return _unchecked(
        "section 2.5",
        "the model of Yang and Donath assumes small rotations, which no practical arm keeps to",
        "-",
        "their paper is not at hand",
    )


def verified() -> Claim:
    """Say what a simulation can show."""
    account = bang_bang(100.0, 0.0).energy
    imbalance = float(np.abs(account.residual).max() / account.scale)
    return Claim(
        id="conclusion, verification",
        paper="the model equations have been verified using bang-bang torque inputs",
        ours=f"our energy account closes to {imbalance:.0e} of the energy that moved",
        verdict="cannot be checked",
        why="a simulation of a model alone verifies nothing; it takes measurements or a second "
        "derivation",
        numbers={"imbalance": imbalance},
    )


def more_complete() -> Claim:
    """Leave a comparison with other papers open."""
    return _unchecked(
        "conclusion, generality",
        "more general than Yang and Donath's model, more complete than Lin and Gogate's",
        "-",
        "their papers are not at hand",
    )


def simpler() -> Claim:
    """Leave a judgement open."""
    return _unchecked(
        "conclusion, simplicity",
        "separating two time scales makes the control design simpler",
        "-",
        "a judgement, no number; see `flexctl count` for the operations of a law",
    )
