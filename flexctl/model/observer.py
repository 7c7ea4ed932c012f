"""What a design measures, and the noise for which the Kalman filter of an observer is designed."""

from typing import Annotated, Literal, get_args

from annotated_types import MinLen
from pydantic import BeforeValidator

from flexctl.model.record import (
    NonNegative,
    Numbers,
    Positive,
    Positives,
    Record,
    RefusalError,
    Solver,
)

STATE = "state"
Instrument = Literal["encoder", "tachometer", "joint_encoder", "strain_gauge"]
INSTRUMENTS: tuple[str, ...] = get_args(Instrument)

_WITHOUT = {
    "feedforward": "measures nothing",
    "torque": "measures nothing",
    "state-space": "has its own (state_space.measures)",
    "joint-pd": "takes no more of it than encoders and tachometers give, and needs no observer",
}
"""Methods that need no observer, and why."""


def _known(value: object) -> object:
    """Refuse what is neither "state" nor a list of instruments, every one known and once."""
    if value == STATE:
        return value
    names = f'"{STATE}" or some of {", ".join(INSTRUMENTS)}'
    if not isinstance(value, list | tuple) or not value:
        raise RefusalError("", expected=names, got=value)
    for name in value:
        if name not in INSTRUMENTS:
            raise RefusalError("", expected=names, got=name)
    if len(set(value)) != len(value):
        raise RefusalError("", expected="every instrument once", got=value)
    return value


Measures = Annotated[
    Literal["state"] | Annotated[tuple[Instrument, ...], MinLen(1)], BeforeValidator(_known)
]


class Noise(Record):
    """White noise by its amplitude density, the square root of its power spectral density.

    One number for all joints or one per joint. `encoder` and `joint_encoder` [rad s^1/2, m s^1/2],
    `tachometer` [rad/s s^1/2, m/s s^1/2]; `strain_gauge` of the curvature that one gauge reads
    [s^1/2/m]. Process noise: `torque` at the actuators [N m s^1/2, N s^1/2], and `tip`, a force in
    any direction [N s^1/2], which covers model errors beyond the actuators, such as those of the
    payload. Only ratios matter to the filter.
    """

    encoder: Positives = (1e-4,)
    tachometer: Positives = (1e-2,)
    joint_encoder: Positives = (1e-4,)
    strain_gauge: Positive = 1e-3
    torque: Positives = (1e-1,)
    tip: NonNegative = 1e-1


class ObserverChoice(Record):
    """The Kalman filter that replaces a measured state.

    `start_error` [rad or m] is the error of the estimated joint positions at the start, which links
    and rotors share.
    """

    noise: Noise = Noise()
    start_error: Numbers | None = None
    solver: Solver = "scipy"


def check_observer(
    method: str,
    instruments: tuple[str, ...],
    observer: ObserverChoice | None,
    *,
    sample_time: float,
    gauges: tuple[float, ...] | None,
) -> None:
    """Refuse instruments that the method cannot use, and noise of instruments that are absent.

    Raises
    ------
    RefusalError
        With the key below the design.
    """
    if not instruments:
        if observer is not None:
            expected = 'no such table, as loop.measures is "state"'
            raise RefusalError("observer", expected=expected, got=observer.table())
        return
    if method in _WITHOUT:
        expected = f'"{STATE}", as method {method} {_WITHOUT[method]}'
        raise RefusalError("loop.measures", expected=expected, got=instruments)
    if sample_time:
        expected = (
            "0, as there is an observer (sampled, its states would be summed by Euler's rule)"
        )
        raise RefusalError("loop.sample_time", expected=expected, got=sample_time)
    if gauges is not None and "strain_gauge" not in instruments:
        expected = "no such key, as loop.measures does not name strain_gauge"
        raise RefusalError("loop.strain_gauges", expected=expected, got=gauges)
    noise = observer.noise.table() if observer else {}
    for name in INSTRUMENTS:
        if name in noise and name not in instruments:
            expected = "no such key, as loop.measures does not name it"
            raise RefusalError(f"observer.noise.{name}", expected=expected, got=noise[name])
