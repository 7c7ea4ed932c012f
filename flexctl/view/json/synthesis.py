"""Controllers of a given structure as plain numbers."""

from __future__ import annotations

from typing import Any

from flexctl.records import plain
from flexctl.search import ControllerStructure, Stabilisation, Synthesis


def structure_json(structure: ControllerStructure) -> dict[str, Any]:
    """Write which entries are free, with names and bounds; infinite bounds are None."""
    bounds = zip(structure.lower, structure.upper, strict=True)
    return plain(
        {
            "order": structure.order,
            "names": list(structure.names),
            "bounds": dict(zip(structure.names, bounds, strict=True)),
            "offset": structure.offset,
            "directions": structure.directions,
        }
    )


def stabilisation_json(found: Stabilisation) -> dict[str, Any]:
    """Write a stabilising controller with its matrices."""
    return plain(
        {
            "K": found.K,
            "order": found.order,
            "controller": {"A": found.Ak, "B": found.Bk, "C": found.Ck, "D": found.Dk},
            "spectral_abscissa": found.spectral_abscissa,
            "certified": found.certified,
            "eigenvalues": {"re": found.eigenvalues.real, "im": found.eigenvalues.imag},
            "sample_time": found.sample_time,
            "evaluations": found.evaluations,
            "starts": found.starts,
        }
    )


def synthesis_json(found: Synthesis) -> dict[str, Any]:
    """Write a synthesis with the matrices of its controller."""
    system = found.controller
    return plain(
        {
            "kind": found.kind,
            "norm": found.norm,
            "spectral_abscissa": found.spectral_abscissa,
            "certified": found.certified,
            "parameters": found.parameters,
            "controller": {
                **{name: getattr(system, name) for name in "ABCD"},
                "inputs": list(system.input_labels),
                "outputs": list(system.output_labels),
                "sample_time": found.sample_time,
            },
            "eigenvalues": {"re": found.eigenvalues.real, "im": found.eigenvalues.imag},
            "stationarity": found.stationarity,
            "radius": found.radius,
            "status": found.status,
            "evaluations": found.evaluations,
            "starts": found.starts,
            "history": [list(one) for one in found.history],
        }
    )
