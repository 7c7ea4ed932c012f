"""``flexctl margin``: how wrong the stiffness of a design's model may be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from flexctl.catalogue import Arm, load_design
from flexctl.errors import InputError
from flexctl.loop.margin import ORDERS, find_margin
from flexctl.loop.margin_json import margin_json
from flexctl.loop.remedies import margin_bias
from flexctl.loop.structured_errors import check_errors
from flexctl.view.margin_words import verdict
from flexctl.view.options import Asked
from flexctl.view.output import Result, check_targets, progress
from flexctl.view.request import (
    design_basis,
    load_arm,
    read_number,
    read_pose,
    truth_arm,
    truth_basis,
)

if TYPE_CHECKING:
    from rich.console import RenderableType


def measure_margin(
    asked: Asked,
    model: str,
    word: str,
    *,
    pose: str = "",
    path: int = 21,
    errors: Sequence[str] = (),
    structured: bool = True,
    orders: bool = False,
    unknown_damping: bool = False,
) -> Result:
    """Find what `flexctl margin` prints."""
    check_targets(asked)
    sizes = read_errors(errors, structured=structured)
    arm, design = load_arm(model, asked), load_design(word)
    basis, as_it_is = design_basis(asked), truth_arm(arm, asked)
    joints = read_joints(pose, arm)
    with progress() as say:
        found = find_margin(
            arm,
            design,
            truth_arm=as_it_is,
            truth_basis=truth_basis(as_it_is, basis or design.basis, asked),
            design_basis=basis,
            pose=joints or None,
            n_path=path,
            errors=sizes,
            orders=ORDERS if orders else (),
            unknown_damping=unknown_damping,
            progress=say,
        )
    bias = margin_bias(found)
    where = "at the pose asked for" if joints else "at the final pose"
    where += " under the second loop" if found.second_loop else ""
    answer = margin_json(found)
    answer["truth"]["settings"] = [*asked.settings, *asked.truth_set]
    answer["errors"] = sizes or None
    answer["remedies"] = {"bias": asdict(bias) if bias else None}
    answer["verdict"] = verdict(found, where, bias)

    def table() -> RenderableType:
        from flexctl.view.margin_table import margin_table

        return margin_table(found, answer, where)

    def figure() -> Any:
        from flexctl.view.figures import plot_margin

        return plot_margin(found, where)

    return Result(answer=answer, table=table, figure=figure)


def read_joints(text: str, arm: Arm) -> dict[str, float]:
    """Read joint variables by name; a pose at rest has no others.

    Raises
    ------
    InputError
        When a part is not NAME=NUMBER, or the name no joint's.
    """
    found = read_pose(text)
    for name in found:
        if name not in arm.joints:
            wanted = f"joint variables of {arm.name} ({', '.join(arm.joints)})"
            raise InputError(f"--pose: wanted {wanted}, came {name!r}")
    return found


def read_errors(words: Sequence[str], *, structured: bool) -> dict[str, float]:
    """Read ``modes`` or ``payload=0.5``, each once; nothing where no bounds are asked for.

    Raises
    ------
    InputError
        When an error is not known, comes twice, or sizes and --no-structured come together.
    """
    if not structured:
        if words:
            raise InputError(f"--errors: wanted none with --no-structured, came {words[0]!r}")
        return {}
    sizes: dict[str, float] = {}
    for word in words or ("modes",):
        kind, equals, size = (part.strip() for part in word.partition("="))
        if kind in sizes:
            raise InputError(f"--errors: wanted every kind once, came {kind!r} again")
        sizes[kind] = read_number("--errors", size) if equals else 1.0
    check_errors(sizes)
    return sizes
