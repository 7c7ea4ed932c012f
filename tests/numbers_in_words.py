"""Find every number of a sentence in the record it was made from, in its unit."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence

SIZE = {
    "mm": ("m", 1e-3), "m": ("m", 1.0), "ms": ("s", 1e-3), "s": ("s", 1.0), "%": ("", 1e-2),
    "dB": ("dB", 1.0), "deg": ("deg", 1.0), "1/s": ("1/s", 1.0), "rad/s": ("rad/s", 1.0),
    "Hz": ("Hz", 1.0), "N m": ("N m", 1.0), "N": ("N", 1.0), "rad": ("rad", 1.0),
    "mrad": ("rad", 1e-3), "kHz": ("Hz", 1e3), "J": ("J", 1.0), "times": ("", 1.0), "": ("", 1.0),
}  # fmt: skip
_UNITS = "|".join(re.escape(unit) for unit in sorted(SIZE, key=len, reverse=True) if unit)
_NUMBER = re.compile(
    r"(?<![\w.])(?P<sign>[+-]{0,2})(?P<digits>\d+(?:\.\d+)?)(?:e(?P<power>[+-]?\d+))?"
    rf"(?:\s?(?P<unit>(?:{_UNITS})(?![\w/]))|(?![\w]))"
)


def numbers(text: str) -> Iterator[tuple[float, float, str, str]]:
    """(value in SI units, half of the last digit printed, dimension, as printed) of a text.

    Numbers that are part of a name (joint2, link1) are none. Signs are dropped: values are compared
    by size, as in +-5.
    """
    for found in _NUMBER.finditer(text):
        dimension, size = SIZE[found["unit"] or ""]
        digits = found["digits"]
        power = int(found["power"] or 0) - len(digits.partition(".")[2])
        whole = digits.rstrip("0") if "." not in digits and len(digits) > 3 else digits
        power += len(digits) - len(whole)
        value = float(digits) * 10.0 ** int(found["power"] or 0)
        yield value * size, 0.5001 * 10.0**power * size, dimension, found[0]


def leaves(record: object, path: str = "") -> Iterator[tuple[str, float]]:
    """(path, value) of every number of nested mappings and sequences; none that is infinite."""
    if isinstance(record, Mapping):
        for key, value in record.items():
            yield from leaves(value, f"{path}.{key}" if path else str(key))
    elif isinstance(record, Sequence) and not isinstance(record, str):
        for k, value in enumerate(record):
            yield from leaves(value, f"{path}.{k}")
    elif isinstance(record, int | float) and not isinstance(record, bool) and math.isfinite(record):
        yield path, float(record)


def sources(text: str, record: Mapping[str, object], dimensions: Mapping[str, str]) -> list[str]:
    """Where in the record each number of a text stands, in the order of the text.

    `dimensions`: unit in SI by the last word of a path that says it; a path without one is a plain
    number. A number that stands nowhere, or in several places, is an error.
    """
    known = [(path, value, _dimension(path, dimensions)) for path, value in leaves(record)]
    found = []
    for number in numbers(text):
        near, printed = _places(number, known), number[3]
        assert len(near) == 1, f"{printed!r} of {text!r}: expected one place, got {near}"
        found += near
    return found


def unfounded(text: str, record: Mapping[str, object], dimensions: Mapping[str, str]) -> list[str]:
    """Numbers of a text, as printed, that stand nowhere in a record in which some may be alike."""
    known = [(path, value, _dimension(path, dimensions)) for path, value in leaves(record)]
    return [number[3] for number in numbers(text) if not _places(number, known)]


def _places(number, known):
    value, half, dimension, _ = number
    return [
        path
        for path, expected, unit in known
        if unit == dimension and abs(abs(expected) - value) <= half + 1e-12 * value
    ]


def _dimension(path: str, dimensions: Mapping[str, str]) -> str:
    for word in reversed(path.split(".")):
        if word in dimensions:
            return dimensions[word]
    return ""
