"""How wrong may the stiffness be? The lemma beside the exact margin, on Theodore & Ghosal's arm.

The lemma bounds the overestimate by alpha* = 1/lambda_max(H), whatever gains and damping are. The
closed loop is lost far earlier: at once without damping, and else where flutter begins.
"""

from __future__ import annotations

from collections.abc import Iterator

import flexctl
from flexctl.errors import DesignError
from flexctl.model import Arm, BasisChoice, Design, with_options
from flexctl.robustness import ORDERS, StiffnessMargin, stiffness_margin

DAMPING = (0.0, 0.005, 0.01, 0.02)
MODES, ELEMENTS = BasisChoice(order=2), BasisChoice(kind="elements", order=4)


def arm(damping: float) -> Arm:
    """Return the arm of the catalogue with this damping ratio of all links."""
    model = flexctl.load_model("theodore-ghosal-rrp")
    return with_options(model, foreshortening=None, damping=damping)


def designs() -> dict[str, Design]:
    """Return the gain sets: joint gains alone, and with the LQR second loop."""
    gentle = flexctl.load_design("rrp-gentle")
    return {
        "Gp = 400, Gv = 40": flexctl.load_design("rrp-stiff-decoupling"),
        "Gp = 100, Gv = 20": gentle.model_copy(update={"second_loop": None}),
        "second loop": gentle,
    }


def margin(damping: float, design: Design, truth: BasisChoice) -> StiffnessMargin | None:
    """Return the margin at the final pose; None where the loop is unstable without an error."""
    try:
        return stiffness_margin(arm(damping), design, truth_basis=truth, n_path=0)
    except DesignError:
        return None


def table() -> Iterator[tuple[float, str, float, float | None, float | None]]:
    """Damping, gains, alpha*, and the exact limits on 2 modes and on 4 elements."""
    for damping in DAMPING:
        for name, design in designs().items():
            found = [margin(damping, design, truth) for truth in (MODES, ELEMENTS)]
            stars = [one.lemma.alpha_star for one in found if one]
            yield damping, name, stars[0], *(one and one.exact.alpha_upper for one in found)


def realistic(name: str) -> StiffnessMargin:
    """Close a gain set made on 1 to 4 modes or elements around 6 elements per line."""
    truth = BasisChoice(kind="elements", order=6)
    return stiffness_margin(arm(0.01), designs()[name], truth_basis=truth, n_path=0, orders=ORDERS)


def percent(value: float | None) -> str:
    """Write a limit in percent; a loop that is unstable without an error has none."""
    return "unstable" if value is None else f"{100 * value:.3g} %"


def main() -> float:
    """Print both tables; return by how much the lemma overstates the margin of the stiff gains."""
    ratio = 0.0
    print("damping\tgains\tlemma\texact, 2 modes\texact, 4 elements")
    for damping, name, star, modes, elements in table():
        print(f"{damping:g}", name, *map(percent, (star, modes, elements)), sep="\t")
        if damping == 0.01 and modes and not ratio:
            ratio = star / modes
    for name in designs():
        print(f"{name}, made on ... and closed around 6 elements")
        for made in realistic(name).orders:
            ends = (made.interval.alpha_lower, made.interval.alpha_upper) if made.interval else ()
            print(
                f"{made.basis.order} {made.basis.kind}",
                percent(made.alpha_star),
                sep="\t",
                end="\t",
            )
            print(*map(percent, ends) if ends else ("unstable without an error",), sep=" to ")
    return ratio


if __name__ == "__main__":
    print(f"the lemma allows {main():.3g} times the overestimate that is tolerated")
