"""Eigenvalue loci that are followed, against loci that are proven, in the same run.

The RRP arm of [TG95] on four elements: along its motion (the run and at rest), and over a payload.
"""

from __future__ import annotations

import time
from typing import Any

from flexctl.control import design_controller
from flexctl.loci import EigenvalueLoci, eigenvalue_loci
from flexctl.loop import close_loop
from flexctl.model import load_model


def timed(*loop: Any, **how: Any) -> tuple[float, EigenvalueLoci]:
    """Processor time [s] of loci, and the loci, after a first time that compiles."""
    eigenvalue_loci(*loop, **how | {"points": 2})
    begin = time.process_time()
    loci = eigenvalue_loci(*loop, **how)
    return time.process_time() - begin, loci


def main() -> None:
    """Print times, matrices and ratios."""
    arm = load_model("theodore-ghosal-rrp")
    loop = close_loop(design_controller(arm, "rrp-stiff"), arm, elements=4)
    cases: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
        "along the motion": ((loop,), {}),
        "over payload.mass": ((loop,), {"over": "payload.mass", "between": (0.05, 0.3)}),
    }
    for name, (arguments, how) in cases.items():
        followed, ours = timed(*arguments, **how)
        proven, theirs = timed(*arguments, **how, proven=True)
        print(
            f"  {name:18} followed {followed:5.2f} s, {ours.loci.n_matrices} loops; proven "
            f"{proven:5.2f} s, {theirs.loci.n_matrices} loops: {proven / followed:.1f} times slower"
        )


if __name__ == "__main__":
    main()
