"""Controllers of a given structure in sentences."""

from __future__ import annotations

from flexctl.search import ControllerStructure, Stabilisation, Synthesis

_KINDS = {"hinf": "H-infinity norm", "h2": "H2 norm", "abscissa": "spectral abscissa"}


def structure_words(structure: ControllerStructure) -> str:
    """Say of what size a controller is and which numbers of it are free."""
    m, p = (size - structure.order for size in structure.offset.shape)
    free = ", ".join(structure.names)
    return f"{_sized(structure.order)} controller of {m} x {p} channels; free: {free}."


def stabilisation_words(found: Stabilisation) -> str:
    """Say how fast a stabilised loop decays, and whether that is proven."""
    return f"{_sized(found.order)} controller: {_decays(found.spectral_abscissa, found.certified)}"


def synthesis_words(found: Synthesis) -> str:
    """Say what was minimised, how small it is and how sure that is."""
    order = found.controller.nstates
    ending = {
        "stationary": "No small change of the free numbers makes it smaller (to first order).",
        "stalled": "No descent was found from there, but that is no proof of a minimum.",
        "limit": "The search ended at its limit of evaluations.",
        "stopped": "The search was stopped.",
        "unbounded": "It falls as far as the gains grow: set bounds to them.",
    }[found.status]
    unit = " 1/s" if found.kind == "abscissa" else ""
    return (
        f"{_sized(order)} controller: {_KINDS[found.kind]} {found.norm:.4g}{unit}. {ending} "
        + _decays(found.spectral_abscissa, found.certified)
    )


def _sized(order: int) -> str:
    return f"Order {order}" if order else "Static"


def _decays(abscissa: float, certified: bool) -> str:
    proof = "proven" if certified else "not proven"
    return f"Spectral abscissa {abscissa:.4g} 1/s; stability {proof} in interval arithmetic."
