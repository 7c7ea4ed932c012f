"""Arms and discretisations from the options of a command."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from math import inf, isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flexctl.errors import FlexctlWarning, InputError
from flexctl.loop import default_truth, finest_basis
from flexctl.model import (
    Arm,
    BasisChoice,
    Design,
    apply_settings,
    build,
    load_design,
    odd_delays,
    odd_motion,
    odd_numbers,
    with_options,
)
from flexctl.view.options import ArmOptions, LoopOptions
from flexctl.view.provenance import read_model

if TYPE_CHECKING:
    from flexctl.search import Variation


def load_arm(model: str, options: ArmOptions) -> Arm:
    """Load a model, changed as the options say in design and truth alike; warn of odd numbers."""
    arm = apply_settings(read_model(model), options.settings, option="--set")
    arm = with_options(arm, foreshortening=options.foreshortening, damping=options.damping)
    _warn(*odd_numbers(arm))
    return arm


def load_gain_set(word: str, arm: Arm) -> Design:
    """Load a design for an arm; warn of a motion in what look like degrees, and of long delays."""
    design = load_design(word)
    _warn(*odd_motion(design, arm), *odd_delays(design))
    return design


def _warn(*lines: str) -> None:
    for line in lines:
        warnings.warn(line, FlexctlWarning, stacklevel=3)


def truth_model(arm: Arm, options: LoopOptions) -> Arm | None:
    """Return the arm of --truth-model, with the options of both plants; None where none is given.

    InputError where it has not as many links as the arm.
    """
    if not options.truth_model:
        return None
    own = read_model(options.truth_model)
    if len(own.links) != len(arm.links):
        raise InputError(
            f"--truth-model {options.truth_model}: expected {len(arm.links)} links as {arm.name} "
            f"has, got {len(own.links)}"
        )
    return with_options(own, foreshortening=options.foreshortening, damping=options.damping)


def true_arm(arm: Arm, options: LoopOptions) -> Arm:
    """Return the arm as it is: of its own file if there is one, with the truth's own changes."""
    own = truth_model(arm, options)
    return apply_settings(own or arm, options.truth_set, option="--truth-set")


def truth_settings(options: LoopOptions) -> list[str]:
    """Return what was changed of the true arm, in order: as settings, and its file if it has one.

    A file of its own is not changed by --set.
    """
    own = [f"--truth-model={Path(options.truth_model).name}"] if options.truth_model else None
    of_all: dict[str, object] = {}
    if options.foreshortening is not None:
        of_all["foreshortening"] = str(options.foreshortening).lower()
    if options.damping is not None:
        of_all["damping_ratio"] = options.damping
    changes = [f"links.{key}={value}" for key, value in of_all.items()]
    return [*(own or options.settings), *changes, *options.truth_set]


def read_specs(option: str, texts: Sequence[str]) -> dict[str, str | Variation]:
    """Read how numbers vary: KEY=SPEC, or a CSV file of samples. Raises InputError."""
    from flexctl.search import read_table  # other commands search nothing

    specs: dict[str, str | Variation] = {}
    for text in texts:
        key, equals, spec = (part.strip() for part in text.partition("="))
        if not equals and key.lower().endswith(".csv"):
            read: dict[str, Any] = read_table(key)
        elif key and spec:
            read = {key: spec}
        else:
            raise InputError(f"{option}: expected KEY=SPEC or a CSV file, got {text!r}")
        if twice := sorted(specs.keys() & read.keys()):
            raise InputError(f"{option}: expected each key once, got {twice[0]} twice")
        specs |= read
    return specs


def design_basis(options: ArmOptions) -> BasisChoice | None:
    """Return the discretisation that -m or -e asks for; None where neither does."""
    basis = _choice("--", options.modes, options.elements)
    if basis is None or options.sliding is None:
        return basis
    return build(BasisChoice, {**basis.table(), "sliding": options.sliding}, "--sliding")


def truth_basis(arm: Arm, design: BasisChoice, options: LoopOptions) -> BasisChoice:
    """Choose the truth plant: that of the options, the model file, or finer than the design."""
    chosen = _choice("--truth-", options.truth_modes, options.truth_elements)
    basis = chosen or default_truth(arm, design)
    if options.truth_drop_above is None:
        return basis
    table = {**basis.table(), "drop_above": options.truth_drop_above}
    return build(BasisChoice, table, "--truth-drop-above")


def judged_on(options: LoopOptions, arm: Arm, *designs: Design) -> dict[str, Any]:
    """Choose true arm and discretisations, under the names that margins and comparisons take."""
    basis, as_it_is = design_basis(options), true_arm(arm, options)
    truth = truth_basis(as_it_is, finest_basis(designs, basis), options)
    return {"true_arm": as_it_is, "truth_basis": truth, "design_basis": basis}


def read_pose(texts: Sequence[str]) -> dict[str, float]:
    """Read ``joint1=0.5,joint3=0.7``; InputError where a part is not NAME=NUMBER, or a name twice.

    Of several texts all are read.
    """
    pose: dict[str, float] = {}
    for part in filter(str.strip, ",".join(texts).split(",")):
        name, equals, value = (word.strip() for word in part.partition("="))
        if not (name and equals):
            raise InputError(f"--pose: expected NAME=VALUE, got {part!r}")
        if name in pose:
            raise InputError(f"--pose: expected each name once, got {name} twice")
        pose[name] = read_number("--pose", value)
    return pose


def warn_of_pose(arm: Arm, pose: Mapping[str, float]) -> None:
    """Warn of joint variables of `--pose` that lie beyond the limits of their joints."""
    for name, link in zip(arm.joints, arm.links, strict=True):
        low, high = link.limits.position or (-inf, inf)
        if name in pose and not low <= pose[name] <= high:
            unit = "m" if link.joint == "prismatic" else "rad"
            _warn(
                f"--pose: {name} = {pose[name]:g} {unit} lies beyond the limits of {name}, "
                f"{low:g} to {high:g} {unit} ({arm.label}: {link.name}.limits.position)"
            )


def read_numbers(option: str, text: str) -> list[float]:
    """Read numbers with commas between; InputError where one is none or not finite."""
    return [read_number(option, word) for word in text.split(",") if word.strip()]


def read_number(option: str, word: str) -> float:
    """Read one finite number, else raise InputError."""
    try:
        value = float(word)
    except ValueError:
        value = float("nan")
    if not isfinite(value):
        raise InputError(f"{option}: expected a finite number, got {word.strip()!r}")
    return value


def _choice(prefix: str, modes: int | None, elements: int | None) -> BasisChoice | None:
    for kind, order in (("modes", modes), ("elements", elements)):
        if order is not None:
            return build(BasisChoice, {"kind": kind, "order": order}, f"{prefix}{kind}")
    return None
