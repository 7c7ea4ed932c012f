"""What the lemma on overestimated stiffness depends on: the mesh and the hub, on a single link.

Theodore & Ghosal let the stiffness be overestimated by alpha* = 1/lambda_max(H). Links that follow
freely leave of the inertia I of link and payload only what the first of N elements cannot follow,
0.005315 m l^2 / N^3 with m the link's mass, beside the hub's J:

    1 + lambda_max = (J + I) / (J + 0.005315 m l^2 / N^3),

so that alpha* tends to J/I, and to zero where the hub has no inertia. It is no margin either way:
without damping any overestimate makes every mode grow, at rates that tend to theirs with alpha*.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import flexctl
from examples.papers.theodore_ghosal.stiffness_growth import StiffnessGrowth, stiffness_growth
from flexctl.model.arm import Arm
from flexctl.model.record import BasisChoice
from flexctl.model.settings import apply_settings
from flexctl.plant.linearisation import linearise
from flexctl.plant.plant import assemble_plant
from flexctl.robustness.stiffness.lemma import LemmaPath, lemma_along

HUBS = (0.0, 1e-3, 1e-2, 0.1, 1.0, 10.0)  # kg m^2; the catalogue's has 0.1
ELEMENTS = (1, 2, 3, 4, 6, 8, 12)
GP, GV = 100.0, 20.0  # 1/s^2, 1/s


@cache
def single_link(hub: float) -> Arm:
    """Return the single-link arm with this inertia of its hub [kg m^2]."""
    return apply_settings(
        flexctl.load_model("single-link-hub"), [f"link1.hub.inertia=[0.0, 0.0, {hub}]"]
    )


@cache
def lemma(hub: float, elements: int) -> LemmaPath:
    """Return the lemma of the arm in so many elements, at one pose: all are alike."""
    basis = BasisChoice(kind="elements", order=elements)
    return lemma_along(assemble_plant(single_link(hub), basis, interpreted=True), np.zeros((1, 1)))


def growth(hub: float, elements: int) -> StiffnessGrowth:
    """Return how fast its modes grow per unit of the overestimate."""
    basis = BasisChoice(kind="elements", order=elements)
    plant = assemble_plant(single_link(hub), basis, interpreted=True)
    return stiffness_growth(linearise(plant), plant.drives, Gp=GP, Gv=GV)


def limit(hub: float) -> float:
    """alpha* of a beam that bends freely: J/I, I of link and payload about the joint."""
    arm = single_link(hub)
    (link,) = arm.links
    inertia = link.mass_per_length * link.length**3 / 3 + arm.payload.mass * link.length**2
    return hub / inertia


def table() -> NDArray[np.float64]:
    """lambda_max(H) by hub (rows) and number of elements (columns)."""
    return np.array([[lemma(hub, n).lambda_max[0] for n in ELEMENTS] for hub in HUBS])


def main() -> float:
    """Print both tables; return alpha* with the catalogue's hub in 12 elements beside J/I [-]."""
    print("lambda_max(H); elements", *ELEMENTS, sep="\t")
    for hub, row in zip(HUBS, table(), strict=True):
        print(f"J = {hub:g}", *(f"{x:.4g}" for x in row), sep="\t")
    print("alpha* tends to", *(f"{limit(hub):.4g}" for hub in HUBS))
    found = growth(0.1, 4)
    print(f"first modes grow at {found.rate[:2]} 1/s per unit alpha; with the arm's damping the")
    print(f"first is lost at alpha = {found.first_margin:.4f}, not at {limit(0.1):.4f}")
    return float(lemma(0.1, 12).alpha_star[0]) / limit(0.1)


def draw(folder: Path) -> None:
    """Draw lambda_max(H) over the mesh, by hub, into a folder."""
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(layout="constrained")
    for hub, row in zip(HUBS, table(), strict=True):
        axis.loglog(ELEMENTS, row, "o-", label=f"J = {hub:g} kg m$^2$")
    axis.set_xticks(ELEMENTS, [str(n) for n in ELEMENTS])
    axis.minorticks_off()
    axis.set_xlabel("elements")
    axis.set_ylabel(r"$\lambda_{max}(H)$ [-]")
    axis.set_title("TG section 4.3: single link, hubs of inertia J")
    axis.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    figure.savefig(folder / "theodore-ghosal-lemma.png", dpi=150)
    plt.close(figure)


if __name__ == "__main__":
    target = Path("build/papers/theodore-ghosal")
    target.mkdir(parents=True, exist_ok=True)
    draw(target)
    print(f"figure in {target}; alpha* is {main():.6f} times its limit J/I")
