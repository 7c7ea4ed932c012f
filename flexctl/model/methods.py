"""Table of controller methods: the name in a design file -> "module:attribute", loaded on demand.

The attribute is a function (plant, design, reference) -> LawParts. A new method is one file with
that function and one line here; an installed package adds one by an entry point of the group
`flexctl.methods`. This table comes first: an installed package cannot change what a name means.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from importlib.metadata import entry_points
from operator import attrgetter
from typing import Any

from flexctl.errors import InputError
from flexctl.model.record import shown

GROUP = "flexctl.methods"
METHODS: Mapping[str, str] = {
    "decoupling": "flexctl.control.decoupling:decoupling_law",
    "composite": "flexctl.control.composite:composite_law",
    "joint-pd": "flexctl.control.joint_pd:joint_pd_law",
    "pid": "flexctl.control.pid:pid_law",
    "cascade": "flexctl.control.cascade:cascade_law",
    "positive-position-feedback": "flexctl.control.position_feedback:position_feedback_law",
    "feedforward": "flexctl.control.feedforward:feedforward_law",
    "torque": "flexctl.control.open_loop_torque:torque_law",
    "state-space": "flexctl.control.state_space:state_space_law",
    "computed-torque": "flexctl.control.computed_torque:computed_torque_law",
    "lqg": "flexctl.control.lqg:lqg_law",
    "prescribed-motion": "flexctl.control.prescribed_motion:prescribed_law",
}
PRESCRIBED = "prescribed-motion"
"""Method of a motion that the joints follow exactly, whatever torques that takes."""


class MissingOptionError(KeyError):
    """A key of the table [options] that a method reads and the design file does not have."""


class Options(dict[str, Any]):
    """The table [options] of a design file, read by the method of an installed package."""

    def __missing__(self, key: str) -> Any:
        raise MissingOptionError(key)


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
    """Import the function of a method.

    Raises
    ------
    InputError
        When it cannot be imported, whatever its module raises, or is no function.
    """
    target = find_method(name)
    module, _, attribute = target.partition("[")[0].strip().partition(":")
    expected = f"method {name}: expected a function at {target}"
    try:
        function = attrgetter(attribute)(importlib.import_module(module))
    except Exception as error:  # the module is the user's own: it may raise anything
        raise InputError(f"{expected}, got {in_one_line(error)}") from error
    if not callable(function):
        raise InputError(f"{expected}, got {shown(function)}")
    return function


def in_one_line(error: Exception) -> str:
    """Return type and message of an error that a user's own code raised, on one line."""
    return " ".join(f"{type(error).__name__}: {error}".split()).removesuffix(":")
