"""Sentences of `flexctl inspect`: what the figures about an arm assume and leave out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from flexctl.model import TWIST, Link
from flexctl.plant import LOAD_TERMS, LoadShares, Plant

_UNITS = {"M": "kg", "J": "kg m^2", "D": "kg m"}
_ROUND_OFF = 1e-9
_NOTHING = 1e-12


def inspection_sentences(plant: Plant, answer: Mapping[str, Any], shares: LoadShares) -> list[str]:
    """Say what the figures of an inspection (its JSON) assume of links, loads and gravity."""
    return [
        *_assumptions(plant),
        *_load_sentences(plant, answer),
        *_rest_sentences(answer["at_rest"], shares),
    ]


def _assumptions(plant: Plant) -> list[str]:
    links = [body.link for body in plant.bodies if body.planes]
    short = [link.name for link in links if not link.foreshortening]
    loaded = (
        "link_frequencies: every link clamped at its root, alone, with a free tip"
        if plant.basis.kind == "elements"
        else "link_frequencies: every link clamped at its root, alone, with its shapes' tip load"
    )
    sentences = [
        *_line_sentences(links),
        "frequencies: undamped, at rest, without gravity, links straight at the joints of the pose",
        loaded,
    ]
    following = [body.link.name for body in plant.bodies if body.mixes]
    if following:
        sentences.append(
            f"{', '.join(following)}: clamped modes with the load tip_load, exact at every length "
            "and changing with it"
        )
    if short:
        sentences.append(f"foreshortening is left out of {', '.join(short)}")
    return sentences


def _line_sentences(links: Sequence[Link]) -> list[str]:
    """Return what is assumed of the sections of flexible links, and what varies along them."""
    named = {
        "shear": [link.name for link in links if link.shear_stiffness],
        "rotary inertia of the sections": [link.name for link in links if link.rotary_inertia],
    }
    own = [f"{what} in {', '.join(of)}" for what, of in named.items() if of]
    curved = [link.name for link in links if link.varies]
    carrying = [link.name for link in links if link.masses]
    twisting = [link.name for link in links if TWIST in link.rigidities]
    return [
        f"Euler-Bernoulli beams with {' and '.join(own)}"
        if own
        else "Euler-Bernoulli beams: no shear, no rotary inertia of the sections",
        f"torsion in {', '.join(twisting)}" if twisting else "no torsion",
        *([f"{', '.join(curved)}: modes and elements of the non-uniform beam"] if curved else []),
        *([f"{', '.join(carrying)}: point masses on the beam are part of it"] if carrying else []),
    ]


def _load_sentences(plant: Plant, answer: Mapping[str, Any]) -> list[str]:
    """Say by link what its shapes assume, what they leave out, and what is otherwise here."""
    if plant.basis.kind == "elements":
        return []
    return [
        _sentence(plant, name, pose, answer["tip_load"][name], answer["tip_load_here"][name])
        for name, pose in answer["tip_load_pose"].items()
    ]


def _sentence(
    plant: Plant,
    name: str,
    pose: Mapping[str, float] | None,
    assumed: Mapping[str, Mapping[str, float]],
    here: Mapping[str, Mapping[str, float]],
) -> str:
    beyond = _written(here)
    if pose is None:
        there = f"; what lies beyond it in this pose has {beyond}" if beyond else ""
        return f"{name}: clamped-free shapes, no tip_load{there}"
    include = next(b.link.tip_load for b in plant.bodies if b.link.name == name)
    left = [term for term in LOAD_TERMS if include and term not in include.include]
    at = ", ".join(f"{joint} = {value:.4g}" for joint, value in pose.items())
    words = f"{name}: clamped shapes with the tip load {_written(assumed) or '0'}"
    words += f", taken at {at}" if at else ""
    words += f"; {', '.join(left)} left out" if left else ""
    return words if _same(assumed, here) else f"{words}; in this pose it is {beyond or '0'}"


def _written(planes: Mapping[str, Mapping[str, float]]) -> str:
    """Write loads by term, of all planes together where they are alike; zeros are left out."""
    parts = []
    for term in LOAD_TERMS:
        values = {d: load[term] for d, load in planes.items() if term == "J" or d != TWIST}
        if not values:
            continue
        most = max(map(abs, values.values()))
        if most <= _NOTHING:
            continue
        alike = max(values.values()) - min(values.values()) <= _ROUND_OFF * most
        by_plane = {f" in {d}": x for d, x in values.items()}
        shown = {"": next(iter(values.values()))} if alike else by_plane
        words = " and ".join(f"{x:.4g}{where}" for where, x in shown.items())
        parts.append(f"{term} = {words} {_UNITS[term]}")
    return ", ".join(parts)


def _same(
    first: Mapping[str, Mapping[str, float]], second: Mapping[str, Mapping[str, float]]
) -> bool:
    """Whether loads are the same but for round-off, each term against its largest."""
    return all(
        math.isclose(first[d][term], second[d][term], rel_tol=_ROUND_OFF, abs_tol=_NOTHING)
        for d in first
        for term in LOAD_TERMS
    )


def _rest_sentences(rest: Mapping[str, Any], shares: LoadShares) -> list[str]:
    """Say what the figures about the equilibrium assume, and what they neglect."""
    if not any(rest["gravity"]):
        return []
    about = "under gravity: undamped, about the sagged arm with the joints of the pose held"
    return [
        *([about] if rest["sag"] is not None else []),
        *(f"in this pose {sentence}" for sentence in shares.missing),
    ]
