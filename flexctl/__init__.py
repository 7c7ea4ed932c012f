"""Control design for robot arms with flexible links and joints.

An arm is described once, in physical terms; from it come exact nonlinear functions, a linearised
state space, controllers, and a verdict on every gain set.  The public names below are imported from
their rooms when first used, so that ``import flexctl`` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flexctl.control import Controller, design_controller, wrap_controller
    from flexctl.loci import EigenvalueLoci, eigenvalue_loci
    from flexctl.loop import ClosedLoop, LinearLoop, close_loop, linearise
    from flexctl.model import Arm, BasisChoice, Design, load_design, load_model
    from flexctl.plant import LinearPlant, Plant, assemble_plant
    from flexctl.robustness import (
        Certificate,
        StiffnessMargin,
        TimeScaleMargin,
        certify,
        stiffness_margin,
        time_scale_margin,
    )
    from flexctl.search import (
        ControllerStructure,
        Scatter,
        Stabilisation,
        Sweep,
        Synthesis,
        TradeOff,
        Tuning,
        scatter,
        stabilise,
        sweep,
        synthesise,
        trade_off,
        tune,
    )
    from flexctl.simulation import Trajectory, simulate
    from flexctl.verdict import (
        Comparison,
        Evaluation,
        LoopResponses,
        SensorMargins,
        StabilityMargins,
        compare,
        evaluate,
        evaluate_many,
        frequency_response,
        sensor_margins,
        stability_margins,
    )
    from flexctl.view.explain import explain
    from flexctl.view.save import save
    from flexctl.view.to_json import to_json

__version__ = "0.1.0"

__all__ = [
    "Arm",
    "BasisChoice",
    "Certificate",
    "ClosedLoop",
    "Comparison",
    "Controller",
    "ControllerStructure",
    "Design",
    "EigenvalueLoci",
    "Evaluation",
    "LinearLoop",
    "LinearPlant",
    "LoopResponses",
    "Plant",
    "Scatter",
    "SensorMargins",
    "Stabilisation",
    "StabilityMargins",
    "StiffnessMargin",
    "Sweep",
    "Synthesis",
    "TimeScaleMargin",
    "TradeOff",
    "Trajectory",
    "Tuning",
    "assemble_plant",
    "certify",
    "close_loop",
    "compare",
    "design_controller",
    "eigenvalue_loci",
    "evaluate",
    "evaluate_many",
    "explain",
    "frequency_response",
    "linearise",
    "load_design",
    "load_model",
    "save",
    "scatter",
    "sensor_margins",
    "simulate",
    "stabilise",
    "stability_margins",
    "stiffness_margin",
    "sweep",
    "synthesise",
    "time_scale_margin",
    "to_json",
    "trade_off",
    "tune",
    "wrap_controller",
]

_NAMES = {
    "control": ("Controller", "design_controller", "wrap_controller"),
    "loci": ("EigenvalueLoci", "eigenvalue_loci"),
    "loop": ("ClosedLoop", "LinearLoop", "close_loop", "linearise"),
    "model": ("Arm", "BasisChoice", "Design", "load_design", "load_model"),
    "plant": ("LinearPlant", "Plant", "assemble_plant"),
    "robustness": (
        "Certificate",
        "StiffnessMargin",
        "TimeScaleMargin",
        "certify",
        "stiffness_margin",
        "time_scale_margin",
    ),
    "search": (
        "ControllerStructure",
        "Scatter",
        "Stabilisation",
        "Sweep",
        "Synthesis",
        "TradeOff",
        "Tuning",
        "scatter",
        "stabilise",
        "sweep",
        "synthesise",
        "trade_off",
        "tune",
    ),
    "simulation": ("Trajectory", "simulate"),
    "verdict": (
        "Comparison",
        "Evaluation",
        "LoopResponses",
        "SensorMargins",
        "StabilityMargins",
        "compare",
        "evaluate",
        "evaluate_many",
        "frequency_response",
        "sensor_margins",
        "stability_margins",
    ),
    "view.explain": ("explain",),
    "view.save": ("save",),
    "view.to_json": ("to_json",),
}
_ROOMS = {name: f"flexctl.{room}" for room, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> object:
    """Import a public name from its room; AttributeError if there is no such name."""
    if name not in _ROOMS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_ROOMS[name]), name)


def __dir__() -> list[str]:
    """List the public names beside those that are already imported."""
    return sorted({*globals(), *__all__})
