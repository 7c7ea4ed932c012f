"""One serialiser for all records: plain numbers under the keys of the command line's contract."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from flexctl.control import Controller
from flexctl.errors import InputError
from flexctl.loci import EigenvalueLoci
from flexctl.loop import ClosedLoop, LinearLoop
from flexctl.model import Arm, BasisChoice, Design
from flexctl.plant import Inspection, LinearPlant, Operations, Plant
from flexctl.robustness import Certificate, StiffnessMargin, TimeScaleMargin
from flexctl.search import (
    ControllerStructure,
    Scatter,
    Stabilisation,
    Sweep,
    Synthesis,
    TradeOff,
    Tuning,
)
from flexctl.simulation import Trajectory
from flexctl.verdict import Comparison, Evaluation, LoopResponses, SensorMargins, StabilityMargins
from flexctl.view.json.evaluation import (
    comparison_json,
    evaluation_json,
    sensor_margins_json,
    stability_margins_json,
)
from flexctl.view.json.inspection import inspection_json
from flexctl.view.json.loci import loci_json
from flexctl.view.json.loop import (
    controller_json,
    file_json,
    linear_loop_json,
    linear_plant_json,
    loop_json,
    plant_json,
    trajectory_json,
)
from flexctl.view.json.margins import certificate_json, margin_json, time_scale_json
from flexctl.view.json.responses import responses_json
from flexctl.view.json.scatter import scatter_json
from flexctl.view.json.sweep import sweep_json
from flexctl.view.json.synthesis import stabilisation_json, structure_json, synthesis_json
from flexctl.view.json.tuning import trade_off_json, tuning_json

Written = TypeVar("Written")


def to_json(record: object) -> dict[str, Any]:
    """Write a record as nested dictionaries and lists of plain numbers.

    What is not known and what is infinite becomes None.  The keys are those of the command line.

    Parameters
    ----------
    record
        Any record of `flexctl`. Of a `Trajectory` 11 samples are written; an `Arm` and a `Design`
        give the keys of their files; a `Plant`, a `Controller` and a `ClosedLoop` hold functions,
        of which names, times and gains are written; linear models give poles and matrices.

    Raises
    ------
    InputError
        When it is no record of these kinds.

    Examples
    --------
    >>> import flexctl
    >>> controller = flexctl.design_controller("single-link-hub", "hub-pd")
    >>> loop = flexctl.close_loop(controller, "single-link-hub", modes=2)
    >>> flexctl.to_json(flexctl.evaluate(loop))["stability"]["stable"]
    True
    """
    return writer_of(record, _WRITERS, "to_json")(record)


def writer_of(
    record: object, writers: Mapping[type, Callable[[Any], Written]], caller: str
) -> Callable[[Any], Written]:
    """Return the function for the kind of a record; an InputError by `caller` lists the kinds."""
    writer = writers.get(type(record))
    if writer is None:
        kinds = ", ".join(kind.__name__ for kind in writers)
        raise InputError(f"{caller}: expected one of {kinds}, got {type(record).__name__}")
    return writer


def _operations_json(record: Operations) -> dict[str, int]:
    return {"mul": record.mul, "add": record.add, "other": record.other}


_WRITERS: dict[type, Callable[[Any], dict[str, Any]]] = {
    Arm: file_json,
    BasisChoice: BasisChoice.described,
    Certificate: certificate_json,
    ClosedLoop: loop_json,
    Comparison: comparison_json,
    Controller: controller_json,
    ControllerStructure: structure_json,
    Design: file_json,
    EigenvalueLoci: loci_json,
    Evaluation: evaluation_json,
    Inspection: inspection_json,
    LinearLoop: linear_loop_json,
    LinearPlant: linear_plant_json,
    LoopResponses: responses_json,
    Operations: _operations_json,
    Plant: plant_json,
    SensorMargins: sensor_margins_json,
    StabilityMargins: stability_margins_json,
    StiffnessMargin: margin_json,
    Scatter: scatter_json,
    Stabilisation: stabilisation_json,
    Sweep: sweep_json,
    Synthesis: synthesis_json,
    TimeScaleMargin: time_scale_json,
    TradeOff: trade_off_json,
    Trajectory: trajectory_json,
    Tuning: tuning_json,
}
