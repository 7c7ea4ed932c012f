"""Table 1 of Mohan & Saha evaluated, beside operations counted in our own code, 1 to 64 links.

The paper's formulas hold for n spatial links with revolute joints that bend in two planes with m
modes each (m-hat = 1 + 2m coordinates).  Ours are counted in the generated code of such an arm and
of its planar counterpart, with the Canadarm's three links over and over.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import casadi as ca
import numpy as np

from flexctl.model.arm import Arm
from flexctl.model.record import BasisChoice
from flexctl.plant.operations import count_operations
from flexctl.plant.plant import Plant, assemble_plant

LENGTH, MASS, RIGIDITY = 7.0, 85.0, 1e5  # m, kg, N m^2: link 2 of Table 2
LINKS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
PRINTED = {  # "n* = 8"
    "Mohan & Saha": (9874, 7699),
    "Jain & Rodriguez": (10568, 8344),
    "Cyril": (13990, 12683),
}


class Cost(NamedTuple):
    """Multiplications and additions."""

    mul: float
    add: float

    @property
    def total(self) -> float:
        """Both together."""
        return self.mul + self.add


def mohan_saha(n: int, m: int) -> Cost:
    """Return what Table 1 says of the recursive forward dynamics that the paper proposes."""
    k = 1 + 2 * m
    last = (2 * m**2 + 13 * m + 27) * k
    mul = k**3 / 6 + (2 * m + 7.5) * k**2 + (2 * m**2 + 15 * m + 100 / 3) * k
    add = k**3 / 6 + k**2 / 2 + (6 * m**2 + 27 * m + 82 / 3) * k
    return Cost(
        (2 * m**2 + 180 * m + 299 + mul) * n - (124 * m + 229 + last),
        (6 * m**2 + 122 * m + 220 + add) * n - (94 * m + 192 + last),
    )


def jain_rodriguez(n: int, m: int, *, few: bool | None = None) -> Cost:
    """Return what Table 1 says of [JainRodriguez92]: the row for few modes, or that for many.

    The paper prints the condition between the rows as one on n.  It is one on m: the rows cost the
    same near m = 7 or 8 at any n.
    """
    if m <= 7 if few is None else few:
        return Cost(
            (5 * m**3 / 6 + 27 * m**2 / 2 + 893 * m / 3 + 281) * n,
            (5 * m**3 / 6 + 23 * m**2 / 2 + 677 * m / 3 + 256) * n,
        )
    return Cost((13 * m**2 + 298 * m + 673) * n, (14 * m**2 + 225 * m + 537) * n)


def cyril(n: int, m: int, *, as_printed: bool = False) -> Cost:
    """Return what Table 1 says of Cyril's algorithm, with the misprint of A_3c mended or not."""
    k = 1 + 2 * m
    cubic = k**3 / 6 + k**2 * (1 - m / 2) + k * (m**2 / 2 - 2 * m) - m**3 / 6 + m**2
    both = -3 * k**2 / 2 - 3 * m**2 / 2
    linear = m**3 / 6 + 53 * m**2 / 6 + 5 * k**2
    mul = (
        cubic,
        both + k * (3 * m + 16.5) - 7.5 * m + 12,
        linear - k * (10 * m + 109 / 6) + 233 * m / 3 + 246,
        -123,
    )
    own = -251 * m / 6 if as_printed else 251 * m / 3
    add = (
        cubic,
        both + k * (3 * m + 13) - 8.5 * m + 9,
        linear - k * (10 * m + 85 / 6) + own + 228,
        -102,
    )
    return Cost(float(np.polyval(mul, n)), float(np.polyval(add, n)))


def chain(n: int, *, spatial: bool) -> Arm:
    """Make an arm of n equal flexible links; no payload, no gravity, no foreshortening.

    Spatial links have neither parallel nor intersecting axes, so that no zeros save anything.
    """
    directions = ("y", "z") if spatial else ("y",)
    link = {
        "joint": "revolute",
        "dh": {"a": LENGTH, "alpha": 1.0, "d": 0.3} if spatial else {"a": LENGTH},
        "length": LENGTH,
        "mass_per_length": MASS / LENGTH,
        "EI": dict.fromkeys(directions, RIGIDITY),
        "foreshortening": False,
    }
    words = {"name": "chain", "summary": "links of the Canadarm", "source": "MS, Table 2"}
    return Arm.model_validate(words | {"gravity": [0, 0, 0], "link": n * [link]})


@cache
def plant_of(n: int, m: int, *, spatial: bool) -> Plant:
    """Discretise the chain by m modes per plane."""
    basis = BasisChoice(kind="modes", order=m)
    return assemble_plant(chain(n, spatial=spatial), basis, engine="recursion", interpreted=True)


@cache
def counted(n: int, m: int, part: str, *, spatial: bool) -> Cost:
    """Count the generated code of the recursive engine.

    `part` is "recursion", the forward dynamics by articulated inertias, or "terms", the composite
    mass matrix and all other forces together, which Cholesky's method needs before it begins.
    """
    plant = plant_of(n, m, spatial=spatial)
    functions = plant.casadi_functions
    if part == "recursion":
        function = functions["forward_dynamics"]
    else:
        q, v = ca.SX.sym("q", plant.n), ca.SX.sym("v", plant.n)
        forces = functions["inverse_dynamics"](q, v, ca.SX.zeros(plant.n))
        results = [functions["mass_matrix"](q), forces]
        function = ca.Function("terms", [q, v], results, {"cse": True})
    found = count_operations(function)
    return Cost(found.mul, found.add)


def cholesky(size: int) -> Cost:
    """Return what factor and both substitutions of a full matrix take; a division is a product."""
    factor, solves = (size**3 - size) // 6, size * (size - 1)
    return Cost(factor + size * (size - 1) // 2 + solves + 2 * size, factor + solves)


def polynomial(n: int, m: int, part: str, *, spatial: bool) -> Cost:
    """Return `counted`, from four links on by its polynomial in n.

    Links beyond the second cost the same each (recursion), or one more pair of blocks with every
    link before (terms): a test compares with the code itself.
    """
    if n <= 3:
        return counted(n, m, part, spatial=spatial)
    known = (3, 4) if part == "recursion" else (3, 4, 5)
    values = np.array([counted(k, m, part, spatial=spatial) for k in known])
    fits = np.polynomial.polynomial.polyfit(known, values, len(known) - 1)
    found = np.atleast_1d(np.polynomial.polynomial.polyval(float(n), fits))
    return Cost(*(float(round(x)) for x in found))


def ours(n: int, m: int, method: str, *, spatial: bool) -> Cost:
    """Return what our own forward dynamics take: "recursion" or "Cholesky"."""
    if method == "recursion":
        return polynomial(n, m, "recursion", spatial=spatial)
    terms = polynomial(n, m, "terms", spatial=spatial)
    solve = cholesky(n * (1 + m * (2 if spatial else 1)))
    return Cost(terms.mul + solve.mul, terms.add + solve.add)


def methods(m: int) -> dict[str, Callable[[int], Cost]]:
    """Return every algorithm's cost over the number of links, by what it is called."""
    return {
        "Mohan & Saha": lambda n: mohan_saha(n, m),
        "Jain & Rodriguez, few modes": lambda n: jain_rodriguez(n, m, few=True),
        "Jain & Rodriguez, many modes": lambda n: jain_rodriguez(n, m, few=False),
        "Cyril": lambda n: cyril(n, m),
        "spatial, recursion": lambda n: ours(n, m, "recursion", spatial=True),
        "spatial, Cholesky": lambda n: ours(n, m, "Cholesky", spatial=True),
        "planar, recursion": lambda n: ours(n, m, "recursion", spatial=False),
        "planar, Cholesky": lambda n: ours(n, m, "Cholesky", spatial=False),
    }


def crossover(new: Callable[[int], Cost], old: Callable[[int], Cost]) -> int | None:
    """Return the first number of links from which on `new` needs fewer operations, up to 64."""
    cheaper = [new(n).total < old(n).total for n in range(1, 65)]
    return None if not cheaper[-1] else 65 - [*cheaper[::-1], False].index(False)


def main(m: int = 2) -> dict[str, dict[str, int | None]]:
    """Return from how many links on each recursion beats its rivals."""
    cost = methods(m)
    rivals = ("Jain & Rodriguez, few modes", "Jain & Rodriguez, many modes", "Cyril")
    found = {
        "Mohan & Saha": {rival: crossover(cost["Mohan & Saha"], cost[rival]) for rival in rivals}
    }
    for kind in ("spatial", "planar"):
        own = cost[f"{kind}, recursion"]
        found[kind] = {"Cholesky": crossover(own, cost[f"{kind}, Cholesky"])}
    return found


def draw(folder: Path, m: int = 2) -> None:
    """Draw operations over the number of links into a folder."""
    import matplotlib.pyplot as plt

    cost = methods(m)
    colours = {"Mohan & Saha": "C0", "Jain & Rodriguez": "C2", "Cyril": "C1"}
    colours |= {"spatial": "C3", "planar": "C4"}
    figure, axes = plt.subplots(1, 2, figsize=(11, 5), sharey=True, layout="constrained")
    for name, of in cost.items():
        family = name.split(",")[0]
        own = family in {"spatial", "planar"}
        dashed = name.endswith(("many modes", "Cholesky"))
        axes[int(own)].loglog(
            LINKS,
            [of(n).total for n in LINKS],
            "--" if dashed else "-",
            c=colours[family],
            label=name,
        )
    axes[1].loglog(
        LINKS, [cost["Mohan & Saha"](n).total for n in LINKS], "C0:", label="(Mohan & Saha)"
    )
    axes[0].plot(8, sum(PRINTED["Mohan & Saha"]), "ko", mfc="none", label='printed at "n* = 8"')
    for printed in list(PRINTED.values())[1:]:
        axes[0].plot(8, sum(printed), "ko", mfc="none")
    axes[0].set_title(f"Table 1 of the paper, m = {m} modes in each of two planes")
    axes[1].set_title(f"counted in our generated code, m = {m}")
    for axis in axes:
        axis.set_xlabel("number of links n")
        axis.set_xticks([1, 2, 4, 8, 16, 32, 64], ["1", "2", "4", "8", "16", "32", "64"])
        axis.minorticks_off()
        axis.grid(alpha=0.3)
        axis.legend(fontsize="small")
    axes[0].set_ylabel("multiplications + additions")
    figure.savefig(folder / "mohan-saha-complexity.png", dpi=150)
    plt.close(figure)


def table(m: int = 2) -> str:
    """Write multiplications + additions over the number of links, as rows of Markdown."""
    cost = methods(m)
    shown = ("Mohan & Saha", *(name for name in cost if name.startswith(("spatial", "planar"))))
    rows = []
    for n in (1, 2, 3, 8, 64):
        figures = (f"{cost[name](n).mul:.0f} + {cost[name](n).add:.0f}" for name in shown)
        rows.append(f"| {n} | " + " | ".join(figures) + " |")
    return "\n".join(rows)


if __name__ == "__main__":
    target = Path("build/papers/mohan-saha")
    target.mkdir(parents=True, exist_ok=True)
    draw(target)
    print(f"links: Mohan & Saha, recursion and Cholesky in space, in the plane\n{table()}")
    print(f"figure in {target}; fewer operations from this number of links on:")
    for name, rivals in main().items():
        print(f"  {name}: " + ", ".join(f"{n} against {rival}" for rival, n in rivals.items()))
