"""Control design for robot arms with flexible links and joints.

An arm is described once, in physical terms; from it come exact nonlinear functions, a linearised
state space, controllers, and a verdict on every gain set.  The public names below are imported from
their rooms when first used, so that ``import flexctl`` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flexctl.control import design_controller, wrap_controller
    from flexctl.model import load_design, load_model
    from flexctl.plant import Plant, assemble_plant
    from flexctl.robustness import stiffness_margin
    from flexctl.simulation import simulate
    from flexctl.verdict import compare, evaluate

__version__ = "0.1.0"

__all__ = [
    "Plant",
    "assemble_plant",
    "compare",
    "design_controller",
    "evaluate",
    "load_design",
    "load_model",
    "simulate",
    "stiffness_margin",
    "wrap_controller",
]

_ROOMS = {
    "Plant": "flexctl.plant",
    "assemble_plant": "flexctl.plant",
    "compare": "flexctl.verdict",
    "design_controller": "flexctl.control",
    "evaluate": "flexctl.verdict",
    "stiffness_margin": "flexctl.robustness",
    "load_design": "flexctl.model",
    "load_model": "flexctl.model",
    "simulate": "flexctl.simulation",
    "wrap_controller": "flexctl.control",
}


def __getattr__(name: str) -> object:
    """Import a public name from its room; AttributeError if there is no such name."""
    if name not in _ROOMS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_ROOMS[name]), name)


def __dir__() -> list[str]:
    """List the public names beside those that are already imported."""
    return sorted({*globals(), *__all__})
