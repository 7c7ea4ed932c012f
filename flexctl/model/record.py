"""What all records of the catalogue share: strict numbers, immutable tables, refusals."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import numpy as np
from annotated_types import Ge, Gt, Lt, MinLen
from pydantic import (
    AllowInfNan,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    Strict,
    model_validator,
)

from flexctl import checks
from flexctl.errors import InputError
from flexctl.records import Summary


def as_array(value: object) -> object:
    """Let a single number stand for an array of one; the type checks the entries of an array."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, int | float) and not isinstance(value, bool):
        return (value,)
    if isinstance(value, list | tuple | range):
        return tuple(value)
    raise RefusalError("", expected="a number or an array of numbers", got=value)


Number = Annotated[float, Strict(), AllowInfNan(False)]
Positive = Annotated[Number, Gt(0)]
NonNegative = Annotated[Number, Ge(0)]
Fraction = Annotated[Number, Ge(0), Lt(1)]
Text = Annotated[str, Strict(), MinLen(1)]
Flag = Annotated[bool, Strict()]
Vector = Annotated[tuple[Number, Number, Number], BeforeValidator(lambda v: exactly(3, v))]
Pair = Annotated[tuple[Number, Number], BeforeValidator(lambda v: exactly(2, v))]
Numbers = Annotated[tuple[Number, ...], MinLen(1), BeforeValidator(as_array)]
Positives = Annotated[tuple[Positive, ...], MinLen(1), BeforeValidator(as_array)]
Solver = Literal["scipy", "slycot"]  # of Riccati equations


def exactly(count: int, value: object) -> object:
    """Refuse an array without `count` entries; the type checks everything else."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple) and len(value) != count:
        raise RefusalError("", expected=f"{count} numbers", got=value)
    return value


def of_python(value: object) -> object:
    """Read a whole number of NumPy as one of Python."""
    return int(value) if isinstance(value, np.integer) else value


def whole(value: object) -> object:
    """Read a number such as 3.0, as a sweep varies it, as a whole one."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


class RefusalError(ValueError):
    """A value that a record refuses: key below the record or "", expected and given value."""

    def __init__(self, key: str, *, expected: str, got: object) -> None:
        prefix = f"{key}: " if key else ""
        super().__init__(f"{prefix}expected {expected}, got {shown(got)}")
        self.key = key
        self.expected = expected
        self.got = got


Faults = Iterator[tuple[str, str, object]]  # key below the record, expected and given value


def refuse_first(faults: Faults) -> None:
    """Raise the first of the faults, if there is one."""
    for key, expected, got in faults:
        raise RefusalError(key, expected=expected, got=got)


class Record(BaseModel):
    """A frozen table of a file: unknown keys, NaN, wrong types and `_faults` are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    def _faults(self) -> Faults:
        """Yield what does not fit together among values that are valid one by one."""
        return iter(())

    @model_validator(mode="after")
    def _check(self) -> Self:
        refuse_first(self._faults())
        return self

    def table(self) -> dict[str, Any]:
        """Return the table as written, under the keys of the file; defaults are left out."""
        return self.model_dump(by_alias=True, exclude_unset=True)


class FileRecord(Summary, Record):
    """A record that is a whole file."""

    name: Text  # catalogue name or stem of the file
    path: Path | None = None  # None: made in memory
    summary: Text
    source: Text  # begins with a key of references.bib, or says whose own it is

    def table(self) -> dict[str, Any]:
        """Return the table of the file, without name and path."""
        return self.model_dump(by_alias=True, exclude_unset=True, exclude={"name", "path"})

    @property
    def label(self) -> str:
        """Name of this file in messages: its path, or its name where it has none."""
        return str(self.path or self.name)


class BasisChoice(Record, Summary):  # its own repr is exact: part of cache keys
    """How finely every elastic line is discretised: modes or elements per link and plane.

    `sliding`: whether a sliding link keeps the modes of its reference pose, or has at every length
    the exact ones, which change with it ([TG95], 4.2): "exact" from a table of proven error,
    "roots" by solving the frequency equation at every evaluation.

    Examples
    --------
    >>> import flexctl
    >>> flexctl.BasisChoice(kind="elements", order=4).described()
    {'kind': 'elements', 'order': 4}
    """

    kind: Literal["modes", "elements", "pinned-modes", "free-modes"] = "modes"
    order: Annotated[int, Strict(), Ge(1), Field(le=200), BeforeValidator(of_python)] = 2
    sliding: Literal["fixed", "exact", "roots"] = "fixed"
    drop_above: Positive | None = None  # rad/s; truth modes above it are left out

    def described(self) -> dict[str, Any]:
        """Kind and order, and of `sliding` and `drop_above` what differs from the default."""
        return {"kind": self.kind, "order": self.order, **self.model_dump(exclude_defaults=True)}

    @property
    def label(self) -> str:
        """Order and kind in short, such as ``4 elements``."""
        return f"{self.order} {self.kind}"

    def _facts(self) -> dict[str, Any]:
        return self.described()

    def _faults(self) -> Faults:
        if self.sliding != "fixed" and self.kind == "elements":
            why = 'with kind "elements", as only modes change with the length'
            yield "sliding", f'"fixed" or no such key {why}', self.sliding
        if self.sliding != "fixed" and self.drop_above is not None:
            yield "drop_above", f'no such key with sliding = "{self.sliding}"', self.drop_above


def pick_basis(
    basis: BasisChoice | None, modes: int | None, elements: int | None
) -> BasisChoice | None:
    """Return the discretisation that is given: a record, or a number of modes or elements.

    None if neither is given.

    Raises
    ------
    InputError
        When more than one is given, `basis` is no record, or a number is not in 1 .. 200.
    """
    if basis is not None:
        checks.kind("basis", basis, BasisChoice, hint="or modes=, elements=")
    numbers = {"modes": modes, "elements": elements}
    orders = {kind: order for kind, order in numbers.items() if order is not None}
    known = ["basis"] * (basis is not None) + list(orders)
    if len(known) > 1:
        got = " and ".join(known)
        raise InputError(f"basis: expected one of basis, modes and elements, got {got}")
    for kind, order in orders.items():
        n = checks.whole(kind, order, least=1, most=200)
        return BasisChoice(kind="modes" if kind == "modes" else "elements", order=n)
    return basis


class Expectation(Record):
    """A published or closed-form value that flexctl must reproduce.

    `key` is the dotted path into the JSON of `flexctl inspect` (a model), of an evaluation (a
    design) or of `flexctl simulate` (a design that gives torques); the name of the table where it
    is not written.
    """

    key: Text
    value: Numbers  # in the unit of what `key` names
    rtol: Positive
    from_: Text = Field(alias="from")
    args: tuple[Text, ...] = ()  # further words of the command line


def keyed(value: object) -> object:
    """Give every [expect.NAME] table that has no `key` its own name as key."""
    if not isinstance(value, dict):
        return value
    return {
        name: {"key": name, **entry} if isinstance(entry, dict) else entry
        for name, entry in value.items()
    }


Expectations = Annotated[dict[str, Expectation], BeforeValidator(keyed)]


def one_of(names: Sequence[str]) -> str:
    """Return ``one of 'a', 'b' or 'c'``."""
    *some, last = [repr(name) for name in names]
    return f"one of {', '.join(some)} or {last}"


def shown(value: object) -> str:
    """Return a value on one short line, as it would be written in a file."""
    if isinstance(value, Unquoted):
        return printable(value)
    try:
        text = printable(json.dumps(value, ensure_ascii=False))
    except (TypeError, ValueError):
        text = printable(str(value))
    return text if len(text) <= 60 else text[:57] + "..."


def printable(text: str) -> str:
    """Return a text with line breaks and control characters written as escapes."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


class Unquoted(str):
    """A text that is printed as it is, not as a quoted string of the file."""

    __slots__ = ()


NOTHING = Unquoted("nothing")
