"""Section 4.4 and table 2 of [TG95]: operations of M(q) with modes and with elements."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import product

from examples.papers.claim import Claim, judge
from examples.papers.theodore_ghosal.writings import (
    Cost,
    Kind,
    Writings,
    bare_arm,
    by_element,
    cost,
    expanded,
    in_planes,
    says,
    writings,
)
from flexctl.model.record import BasisChoice
from flexctl.plant.operations import count_operations
from flexctl.plant.plant import assemble_plant

PRINTED: dict[str, dict[Kind, Cost]] = {
    "rr": {"modes": (405, 168), "elements": (156, 80)},
    "rrr": {"modes": (878, 376), "elements": (592, 237)},
    "rp": {"modes": (103, 42), "elements": (88, 33)},
    "rrp": {"modes": (743, 284), "elements": (376, 128)},
}
WITH_PAYLOAD: dict[Kind, Cost] = {"modes": (909, 366), "elements": (178, 98)}  # RR
LI_SANKAR: dict[str, Cost] = {"rr": (44, 49), "rrr": (92, 102)}
BOOK: dict[str, Cost] = {"rr": (3755, 3665), "rrr": (4922, 4851)}
SAME = 0.05  # as near as counts of one expression by two programs are taken to agree


def near(found: Cost, printed: Cost) -> bool:
    """Whether both counts agree to `SAME`."""
    return all(abs(a - b) <= SAME * b for a, b in zip(found, printed, strict=True))


def _figures(**costs: Cost) -> dict[str, float]:
    """Return multiplications and additions under names such as ``modes_mul``."""
    return {
        f"{name}_{what}": float(number)
        for name, pair in costs.items()
        for what, number in zip(("mul", "add"), pair, strict=True)
    }


def _row(name: str, why: str, **more: Cost) -> Claim:
    """Set one row of table 2 beside M(q) multiplied out, and beside its graph."""
    printed, found = PRINTED[name], {kind: writings(name, kind) for kind in PRINTED[name]}
    out = [found[kind].expanded for kind in printed]
    graph = [found[kind].shared for kind in printed]
    holds = all(near(a, b) for a, b in zip(out, printed.values(), strict=True))
    return Claim(
        id=f"table 2, {name.upper()}",
        paper=f"M(q) takes {says(*printed.values())} multiplications/additions with two modes and "
        "two elements per link",
        ours=f"their algorithm multiplied out takes {says(*out)}; the recursion with common "
        f"subexpressions shared {says(*graph)}",
        verdict=judge(holds),
        why=why,
        numbers=_figures(
            modes=out[0], elements=out[1], shared_modes=graph[0], shared_elements=graph[1], **more
        ),
    )


def row_rr() -> Claim:
    """Count the planar arm of two flexible links."""
    pieces, linear = by_element("rr"), writings("rr", "modes").first_order
    return _row(
        "rr",
        "the column of modes is that of expressions multiplied out, to 4 %. That of elements is "
        "not: nearest comes what leaves out products of elastic coordinates, element by element, "
        f"{says(pieces)}. Modes without these products take {says(linear)}",
        pieces=pieces,
        first_order=linear,
    )


def row_rrr() -> Claim:
    """Count the planar arm whose last two links are flexible."""
    single, pieces = writings("rrr", "elements", 1).expanded, by_element("rrr")
    return _row(
        "rrr",
        "multiplied out, modes take as many additions to 1 % and 16 % more multiplications. The "
        f"column of elements is near one element per link, {says(single)}, and near two without "
        f"products of elastic coordinates, element by element, {says(pieces)}",
        single=single,
        pieces=pieces,
    )


@cache
def _layouts(name: str) -> list[Cost]:
    """Count an arm with a sliding link for every plane that each of its two links may bend in."""
    return [expanded(in_planes(name, *planes)) for planes in product("yz", "xy")]


def _layout_words(name: str) -> str:
    found = _layouts(name)
    return f"links that bend in one plane each take {says(min(found))} to {says(max(found))}"


def row_rp() -> Claim:
    """Count the planar arm with a sliding link, and its links bending out of the plane."""
    found = _layouts("rp")
    return _row(
        "rp",
        f"the paper does not say how its arm is laid out: two modes of {_layout_words('rp')}, the "
        "least, near the paper's, where link 1 bends in the plane and link 2 out of it",
        least=min(found),
        most=max(found),
    )


def row_rrp() -> Claim:
    """Count the spatial arm, and its links bending in one plane each."""
    found, linear = _layouts("rrp"), writings("rrp", "modes").first_order
    return _row(
        "rrp",
        f"the arm of section 5 bends in both planes; two modes of {_layout_words('rrp')}. "
        f"Bending in both, modes come nearest without products of elastic coordinates, "
        f"{says(linear)}; elements in no writing that was tried",
        first_order=linear,
        least=min(found),
        most=max(found),
    )


def payload() -> Claim:
    """Add the payload to the arm of two revolute joints."""
    found: dict[Kind, Writings] = {kind: writings("rr", kind) for kind in WITH_PAYLOAD}
    total: dict[Kind, Cost] = {
        kind: (one.expanded[0] + one.payload[0], one.expanded[1] + one.payload[1])
        for kind, one in found.items()
    }
    added = [one.payload for one in found.values()]
    return Claim(
        id="section 4.4, payload",
        paper=f"with a payload RR takes {says(*WITH_PAYLOAD.values())}",
        ours=f"multiplied out {says(*total.values())}: the payload's own matrix takes "
        f"{says(*added)}",
        verdict=judge(all(near(total[kind], WITH_PAYLOAD[kind]) for kind in total)),
        why="to 2 % with modes. The paper adds 504/198 and 22/18: fewer with elements it is, as "
        "few coordinates move the tip, but 22/18 is less than that matrix takes multiplied "
        "out or without products of elastic coordinates "
        f"({says(found['elements'].payload_first_order)}): both columns are not written alike",
        numbers=_figures(
            modes=total["modes"],
            elements=total["elements"],
            added=added[0],
            added_elements=added[1],
        ),
    )


def fewer() -> Claim:
    """Compare modes and elements in every writing."""
    names = ("expanded", "tree", "shared", "lagrange_tree", "lagrange")
    ratio = {
        name: {
            arm: getattr(writings(arm, "elements"), name)[0]
            / getattr(writings(arm, "modes"), name)[0]
            for arm in PRINTED
        }
        for name in names
    }
    spans = {
        name: f"{min(of.values()):.2f} to {max(of.values()):.2f}" for name, of in ratio.items()
    }
    return Claim(
        id="table 2 and section 6, fewer operations",
        paper="M(q) takes fewer operations with elements than with modes",
        ours="multiplications of two elements to two modes, over the four arms: multiplied out "
        f"{spans['expanded']}, every entry written out by itself {spans['tree']} (recursion) and "
        f"{spans['lagrange_tree']} (Lagrange), subexpressions shared {spans['shared']} and "
        f"{spans['lagrange']}",
        verdict=judge(all(value < 1 for of in ratio.values() for value in of.values())),
        why="it is a statement about the writing. Entries written out repeat the sums over modes "
        "at every place where a tip stands: there elements win. Shared, these sums are formed "
        "once and elements lose, as they have twice as many coordinates",
        numbers={f"{name}_{arm}": value for name, of in ratio.items() for arm, value in of.items()},
    )


def tip_sums() -> Claim:
    """Take deflection and slope of the tip as coordinates of what the modes span."""
    kinds: tuple[Kind, ...] = ("modes", "tip")
    modes, tip = (writings("rr", kind) for kind in kinds)
    single = writings("rr", "elements", 1)
    return Claim(
        id="section 4.4, why fewer",
        paper="that is mainly due to the tip's position and slope: a sum over modes, but two "
        "coordinates of an element",
        ours=f"RR with two modes {says(modes.expanded)}; what these modes span, in coordinates "
        f"that are the tip's deflection and slope, {says(tip.expanded)}, as one element "
        f"({says(single.expanded)}); shared {says(modes.shared)} and {says(tip.shared)}; payload "
        f"{says(modes.payload, tip.payload)}",
        verdict=judge(tip.expanded < modes.expanded and tip.payload < modes.payload),
        why="it is, and so it is a matter of coordinates, not of modes or elements: a change of "
        "coordinates leaves the motion as it is and makes modes as sparse at the tip as elements",
        numbers=_figures(
            modes=modes.expanded,
            tip=tip.expanded,
            element=single.expanded,
            shared_modes=modes.shared,
            shared_tip=tip.shared,
        ),
    )


def closed_form() -> Claim:
    """Compare the closed form with the graphs of the two engines."""
    ratio = {
        name: writings(name, "modes").expanded[0] / writings(name, "modes").shared[0]
        for name in PRINTED
    }
    return Claim(
        id="section 6, efficiency",
        paper="computer algebra yields the most computationally efficient form of the equations",
        ours="multiplied out with its numbers put in, M(q) of two modes takes "
        + ", ".join(f"{value:.1f} ({name.upper()})" for name, value in ratio.items())
        + " times the multiplications of the recursion with its numbers put in",
        verdict=judge(max(ratio.values()) <= 1),
        why="expanding repeats what factors share: a rotated inertia multiplied out has every "
        "product of sines, cosines and elastic coordinates",
        numbers=ratio,
    )


def li_sankar() -> Claim:
    """Look whether counts as low as those of Li and Sankar are possible."""
    found = {name: writings(name, "modes").shared for name in LI_SANKAR}
    return Claim(
        id="section 4.4, Li and Sankar",
        paper=f"Li and Sankar's M(q) takes {says(*LI_SANKAR.values())} (RR, RRR), almost an order "
        "less; their formula gives -48 and -48 for one link with one mode, so it is erroneous",
        ours=f"the recursion takes {says(*found.values())} in the plane: counts of that order are "
        "possible, without an error",
        verdict="cannot be checked",
        why="the paper quotes numbers, not their formula",
        numbers=_figures(**found),
    )


def book() -> Claim:
    """Count the inverse dynamics beside Book's."""
    found = {name: _inverse(name) for name in BOOK}
    return Claim(
        id="section 4.4, Book",
        paper=f"Book's inverse dynamics takes {says(*BOOK.values())} (RR, RRR)",
        ours=f"the recursion takes {says(*found.values())} with two modes per link in the plane, "
        "numbers put in and subexpressions shared",
        verdict="cannot be checked",
        why="the paper quotes numbers, not Book's formula, which is for links of any kind in space",
        numbers=_figures(**found),
    )


def _inverse(name: str) -> Cost:
    plant = assemble_plant(bare_arm(name), BasisChoice(order=2), interpreted=True)
    return cost(count_operations(plant.casadi_functions["inverse_dynamics"]))


CLAIMS: tuple[Callable[[], Claim], ...] = (
    book,
    li_sankar,
    row_rr,
    row_rrr,
    row_rp,
    row_rrp,
    fewer,
    tip_sums,
    payload,
    closed_form,
)
