"""Table of controller methods: the name in a design file -> "module:attribute", loaded on demand.

The attribute is a function (plant, design, reference) -> LawParts. A new method is one file with
that function and one line here; an installed package adds one by an entry point of the group
`flexctl.methods`. This table comes first: an installed package cannot change what a name means.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import Any

from flexctl.errors import InputError

GROUP = "flexctl.methods"
METHODS: Mapping[str, str] = {
    "decoupling": "flexctl.control.decoupling:decoupling_law",
    "composite": "flexctl.control.composite:composite_law",
    "joint-pd": "flexctl.control.joint_pd:joint_pd_law",
    "feedforward": "flexctl.control.feedforward:feedforward_law",
    "torque": "flexctl.control.open_loop_torque:torque_law",
    "state-space": "flexctl.control.state_space:state_space_law",
}


def method_names() -> tuple[str, ...]:
    """Names of all methods: of this table, then of installed packages."""
    installed = {point.name for point in entry_points(group=GROUP)}
    return (*METHODS, *sorted(installed - set(METHODS)))


def find_method(name: str) -> str:
    """Return "module:attribute" of a method.

    Raises
    ------
    InputError
        When there is no such method, or two installed packages have one of that name.
    """
    if name in METHODS:
        return METHODS[name]
    targets = {point.value for point in entry_points(group=GROUP, name=name)}
    if len(targets) == 1:
        return targets.pop()
    got = f"{len(targets)}: {', '.join(sorted(targets))}" if targets else "none"
    raise InputError(f"method {name}: expected one entry point of {GROUP}, got {got}")


def load_method(name: str) -> Any:
    """Import the function of a method; raises InputError where it cannot be imported."""
    target = find_method(name)
    module, _, attribute = target.partition(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise InputError(f"method {name}: expected a function at {target}, got: {error}") from error
