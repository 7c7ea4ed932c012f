"""One serialiser for all records: plain numbers under the keys of the command line's contract."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

from flexctl.plant import Inspection, Operations
from flexctl.robustness import StiffnessMargin, TimeScaleMargin
from flexctl.simulation import Trajectory
from flexctl.verdict import Comparison, Evaluation
from flexctl.view.json.evaluation import comparison_json, evaluation_json
from flexctl.view.json.inspection import inspection_json
from flexctl.view.json.stiffness_margin import margin_json
from flexctl.view.json.time_scale_margin import time_scale_json
from flexctl.view.json.trajectory import trajectory_json


@singledispatch
def to_json(record: object) -> dict[str, Any]:
    """Write a record as nested dictionaries and lists of plain numbers.

    What is not known and what is infinite becomes None.  The keys are those of the command line.

    Parameters
    ----------
    record
        An `Evaluation`, a `Comparison`, a `Trajectory` (11 samples of it), an inspection, counted
        operations, a stiffness margin or a time-scale margin.

    Raises
    ------
    TypeError
        When the record is of another kind.

    Examples
    --------
    >>> import flexctl
    >>> controller = flexctl.design_controller("single-link-hub", "hub-pd")
    >>> loop = flexctl.close_loop(controller, "single-link-hub", modes=2)
    >>> flexctl.to_json(flexctl.evaluate(loop))["stability"]["stable"]
    True
    """
    raise TypeError(f"to_json: expected a result of flexctl, got {type(record).__name__}")


to_json.register(Evaluation, evaluation_json)
to_json.register(Comparison, comparison_json)
to_json.register(Trajectory, trajectory_json)
to_json.register(Inspection, inspection_json)
to_json.register(StiffnessMargin, margin_json)
to_json.register(TimeScaleMargin, time_scale_json)


@to_json.register
def _(record: Operations) -> dict[str, int]:
    return {"mul": record.mul, "add": record.add, "other": record.other}
