"""Units of every number that ``--over`` takes."""

from collections.abc import Iterator, Mapping
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import pytest
from pydantic import BaseModel

from flexctl.model import units
from flexctl.model.arm import Arm
from flexctl.model.design import Design
from flexctl.model.link import Link
from flexctl.model.lookup import load_design, load_model

ROOTS = ("gains", "second_loop", "slow_loop", "fast_loop", "observer", "loop", "reference")
ROOTS += ("cascade", "position_feedback", "filters", "friction_compensation", "instruments")
BY_KIND = {"instruments.noise", "instruments.resolution"}  # of an instrument, tested apart
# matrices of several units, which only factors change
WITHOUT = {"fast_loop.Kp", "fast_loop.Kv", "second_loop.gain", "observer.gain"}
ON_A_LINE = "masses"  # a list of tables, which no key reaches into


def numbers(annotation: Any) -> Iterator[str]:
    """Keys below an annotation under which a file has a number: "" is the value itself."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if annotation is float:
        yield ""
    elif origin is Annotated:
        yield from numbers(arguments[0])
    elif origin in (Union, UnionType, tuple):
        yield from dict.fromkeys(key for one in arguments for key in numbers(one))
    elif isinstance(origin, type) and issubclass(origin, Mapping):
        yield from numbers(arguments[1])
    elif (
        origin is not Literal and isinstance(annotation, type) and issubclass(annotation, BaseModel)
    ):
        for name, field in annotation.model_fields.items():
            for below in numbers(field.annotation):
                yield f"{field.alias or name}.{below}".rstrip(".")


def keys(record: type[BaseModel]) -> list[str]:
    return list(dict.fromkeys(numbers(record)))


LINK = [key for key in keys(Link) if not key.startswith(ON_A_LINE)]
ARM = [key for key in keys(Arm) if not key.startswith(("link", "expect"))]
DESIGN = [key for key in keys(Design) if key.startswith(ROOTS) and key not in WITHOUT]


@pytest.fixture(scope="module")
def files():
    """An arm with a sliding joint and a design for it."""
    return load_model("theodore-ghosal-rrp"), load_design("rrp-stiff")


def test_the_keys_are_found():
    assert {"EI", "dh.a", "hub.mass", "flexible_joint.stiffness", "torsion.GJ"} <= set(LINK)
    assert {"gravity", "payload.mass", "truth.drop_above"} <= set(ARM)
    assert {"gains.Gp", "observer.noise.tip", "second_loop.weights.effort"} <= set(DESIGN)


@pytest.mark.parametrize(
    "key", [*(f"link3.{key}" for key in LINK), *ARM, *sorted({*DESIGN} - BY_KIND)]
)
def test_every_number_of_the_files_has_a_unit(files, key):
    assert units.unit_of(key, *files)


@pytest.mark.parametrize("table", ["_LINK", "_ARM", "_DESIGN", "_TORQUE_GAINS"])
def test_every_entry_of_the_table_is_a_key_of_the_files(table):
    known = LINK if table == "_LINK" else [*ARM, *DESIGN]
    assert set(getattr(units, table)) <= set(known)


@pytest.mark.parametrize(
    ("key", "unit"),
    [
        ("payload.mass", "kg"),
        ("link2.EI", "N m^2"),
        ("link2.EI.y", "N m^2"),
        ("links.EI.y", "N m^2"),
        ("link[2].hub.inertia", "kg m^2"),
        ("link2.joint_inertia", "kg m^2"),
        ("link3.joint_inertia", "kg"),
        ("links.joint_inertia", "kg m^2 or kg"),
        ("link3.tip_load.reference_pose.joint2", "rad"),
        ("gains.Gp", "1/s^2"),
        ("loop.sample_time", "s"),
        ("observer.start_error", "rad or m"),
        ("reference.duration", "s"),
        ("reference.to", "rad or m"),
        ("payload.colour", ""),
    ],
)
def test_units_are_those_of_the_joints_concerned(files, key, unit):
    assert units.unit_of(key, *files) == unit


def test_readings_have_the_unit_of_their_instrument():
    files = load_model("vertical-2r"), load_design("vertical-2r-encoders")
    kinds = [one.kind for one in files[1].instruments]
    first = f"instruments[{kinds.index('encoder') + 1}]"

    assert units.unit_of(f"{first}.resolution", *files) == "rad"
    assert units.unit_of(f"{first}.noise", *files) == "rad s^1/2"
    assert set(kinds) > {"encoder"} or units.unit_of("instruments.noise", *files) == "rad s^1/2"


@pytest.mark.parametrize(("key", "unit"), [("gains.Gp", "N m/rad"), ("gains.Gv", "N m s/rad")])
def test_gains_of_joint_pd_are_torques(key, unit):
    assert units.unit_of(key, load_model("vertical-2r"), load_design("vertical-2r-pd")) == unit
