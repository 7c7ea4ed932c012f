"""Designs to make controllers of."""

from flexctl.model.design import Design
from flexctl.model.lookup import list_designs, load_design

WEIGHTS = {"joint_error": 300.0, "joint_rate": 0.3, "strain_energy": 1.0, "kinetic_energy": 1.0}
WEIGHTS |= {"effort": 1e-4}


def make_design(start, end, method="decoupling", **tables):
    """Design from `start` to `end` (m,); keys `basis`, `gains`, `loop`, ... replace defaults.

    Of a spin-up `end` holds the rates, of method torque the torques; an open loop has no gains.
    """
    kind = tables.pop("kind", "bang-bang" if method == "torque" else "cycloid")
    ends = "torque" if method == "torque" else "rate" if kind == "spin-up" else "to"
    reference = {"kind": kind, "from": list(start)}
    reference[ends] = list(end)
    if kind != "setpoint":
        reference["duration"] = tables.pop("duration", 0.5)
    table = {"name": "trial", "summary": "made for a test", "source": "own", "model": "arm"}
    table |= {"method": method, "reference": reference}
    table |= {} if method in ("feedforward", "torque") else {"gains": {"Gp": [100.0], "Gv": [20.0]}}
    return Design.model_validate(table | tables)


def designs_with_a_loop():
    """Names of the catalogue's designs that have a loop, except gains given for modes.

    Those that spill over differ from others in their numbers alone.
    """
    for entry in list_designs():
        if entry.name.endswith("-spillover"):
            continue
        design = load_design(entry.name)
        given = design.fast_loop and design.fast_loop.columns
        if not (design.open_loop or design.reference.torque or given):
            yield entry.name
