"""Schema of the law in designs/*.toml: gains, second and fast loop, observer, state space."""

from typing import Annotated, Any, Literal, get_args

from annotated_types import Ge, MinLen
from pydantic import BeforeValidator, Field, Strict

from flexctl.model.record import (
    NOTHING,
    Faults,
    Flag,
    NonNegative,
    Number,
    Numbers,
    Positive,
    Positives,
    Record,
    RefusalError,
    Solver,
    Text,
    Unquoted,
    as_array,
    whole,
)

NonNegatives = Annotated[tuple[NonNegative, ...], MinLen(1), BeforeValidator(as_array)]
SlowAngle = Literal["link", "rotor"]
STATE = "state"
Instrument = Literal["encoder", "tachometer", "joint_encoder", "strain_gauge"]
INSTRUMENTS: tuple[str, ...] = get_args(Instrument)
Matrix = tuple[tuple[Number, ...], ...]
Poses = Annotated[int, Strict(), Ge(0), Field(le=50), BeforeValidator(whole)]  # along the path


class Gains(Record):
    """Gains of the joint loop, one for all joints or one per joint.

    Decoupling: e'' + Gv e' + Gp e + Gi (integral of e) = 0, so Gp [1/s^2], Gv [1/s],
    Gi [1/s^3].  Joint-pd, pid, positive-position-feedback: torque or force per joint error, its
    rate and its integral; pid derives the error up to the frequency `derivative_filter` [rad/s].
    """

    Gp: Positives
    Gv: NonNegatives  # 0 of joint-pd alone: back-EMF or friction may be the only damper
    Gi: NonNegatives | None = None
    derivative_filter: Positives | None = None

    def _faults(self) -> Faults:
        if self.Gi and any(self.Gi) and not all(self.Gi):
            yield "Gi", "all above 0, or none", self.Gi


class Cascade(Record):
    """Position loop around a velocity loop, as drives have them; one number or one per joint.

    `position_gain` [1/s] is what drives call K_v, `velocity_gain` [N m s/rad or N s/m] and
    `integral_time` [s] (none: no integral) are those of the velocity loop. `velocity_feedforward`
    is the share of the desired rate, `torque_feedforward` the weight of the arm at the desired
    joints, or the torque of the rigid arm for the desired motion.
    """

    position_gain: Positives
    velocity_gain: Positives
    integral_time: Positives | None = None
    velocity_feedforward: Annotated[NonNegative, Field(le=1)] = 1.0
    torque_feedforward: Literal["none", "gravity", "rigid"] = "gravity"


class PositionFeedback(Record):
    """A filter of positive position feedback, from the deflection in a mode to a joint's torque.

    The tip deflection xi [m] of the `mode` of a line, such as link1.y.1, less that of its sag at
    the end, gives the torque `gain` eta [N m/m or N/m] of the `joint`: eta'' + 2 zeta w eta' + w^2
    eta = w^2 xi, with w the `frequency` [rad/s] and zeta the `damping_ratio`.
    """

    mode: Text
    joint: Text
    frequency: Positive
    damping_ratio: Positive = 0.5
    gain: Number


def _hard_switch(value: object) -> object:
    """Read "end" as no blend: the second loop takes over at the end of the gross motion."""
    if isinstance(value, dict):
        return value
    if value is None or value == "end":  # None: a record that is rebuilt
        return None
    raise RefusalError("", expected='"end" or { blend = seconds }', got=value)


class Weights(Record):
    """Weights of the second loop's cost, in terms that mean the same in every basis.

    `joint_integral` above 0 adds integral action: the integrals of the errors are states that are
    weighted and fed back too (lqg only).
    """

    joint_error: NonNegative = 0.0
    joint_rate: NonNegative = 0.0
    joint_integral: NonNegative = 0.0
    strain_energy: NonNegative = 0.0
    kinetic_energy: NonNegative = 0.0
    effort: Positive

    def _faults(self) -> Faults:
        motions = self.joint_error, self.joint_rate, self.joint_integral
        if not any((*motions, self.strain_energy, self.kinetic_energy)):
            yield "joint_error", "one weight beside effort above 0", 0


class Blend(Record):
    """Fade the second loop in over `blend` [s] from the end of the gross motion."""

    blend: Positive


class SecondLoop(Record):
    """State feedback after the gross motion: with `weights`, a `decay` or both, or a given `gain`.

    The gain (m, 2n) is G in u = -G [e; q_f; e'; q_f'], u being accelerations of the m driven
    coordinates after decoupling and torques after composite control. `decay` [1/s]: no pole of the
    design model is right of -decay. `switch` is None where the loop starts at once at the end.
    `schedule` is the number of poses along the path at which weights and decay are turned into
    gains, with which the loop acts from the start; 0: at its end only, and from there on.
    """

    weights: Weights | None = None
    decay: Positive | None = None
    gain: Matrix | None = None
    switch: Annotated[Blend | None, BeforeValidator(_hard_switch)] = None
    schedule: Poses = 0
    solver: Solver = "scipy"

    @property
    def integrates(self) -> bool:
        """Whether integrals of the joint errors are weighted, and fed back."""
        return self.weights is not None and self.weights.joint_integral > 0

    def _faults(self) -> Faults:
        designed = self.weights is not None or self.decay is not None
        if self.gain is not None:
            yield from self._faults_of_gain()
        elif not designed:
            yield "weights", "a value (or decay or gain in its place)", NOTHING
        if self.schedule == 1:
            yield "schedule", "0, or at least 2 poses", 1
        if self.schedule and self.switch:
            expected = "no such key beside schedule, with which the loop acts from the start"
            yield "switch", expected, self.switch.table()

    def _faults_of_gain(self) -> Faults:
        if self.weights:
            yield "gain", "no such key beside weights", Unquoted("one")
        if self.decay is not None:
            yield "gain", "no such key beside decay", Unquoted("one")
        if self.schedule:
            yield "schedule", "no such key, as the gain is given and not designed", self.schedule


class SlowLoop(Record):
    """Which angle of a flexible joint the slow law measures: its link's or its rotor's."""

    angle: SlowAngle = "rotor"


class FastWeights(Record):
    """Weights of the fast loop's cost, in terms that mean the same in every basis."""

    strain_energy: NonNegative = 0.0
    kinetic_energy: NonNegative = 0.0
    effort: Positive

    def _faults(self) -> Faults:
        if not (self.strain_energy or self.kinetic_energy):
            yield "strain_energy", "this or kinetic_energy above 0", 0


class FastLoop(Record):
    """Feedback of the fast positions, always on: with `weights`, or with given `Kp` and `Kv`.

    tau_f = -Kp (z - z_qs) - Kv z'; z_qs = 0 where `quasi_steady` is false. Gains (m rows) are
    for the fast positions that `columns` names. `scaled` gains multiply positions k_c z and rates
    in fast time, k_c being the least stiffness: Kp k_c and Kv sqrt(k_c) are physical. `modes` says
    how modal coordinates are normalised: by their deflection at the tip being 1, or by their full
    "mass" (line and tip load) being the line's; absent: int psi^2 dxi = 1, as everywhere.
    `schedule` is the number of poses along the path at which weights are turned into gains; 0: at
    its end only.
    """

    weights: FastWeights | None = None
    Kp: Annotated[tuple[Numbers, ...], MinLen(1)] | None = None
    Kv: Annotated[tuple[Numbers, ...], MinLen(1)] | None = None
    columns: Annotated[tuple[Text, ...], MinLen(1)] | None = None
    scaled: Flag = False
    modes: Literal["tip", "mass"] | None = None
    quasi_steady: Flag = True
    schedule: Poses = 0

    def _faults(self) -> Faults:
        for key in ("Kp", "Kv", "columns"):
            value = getattr(self, key)
            if self.weights and value is not None:
                yield key, "no such key beside weights", value
            if not self.weights and value is None:
                yield key, "a value, as there are no weights", NOTHING
        yield from self._faults_of_weights() if self.weights else self._faults_of_gains()

    def _faults_of_weights(self) -> Faults:
        for key in ("scaled", "modes"):
            if value := getattr(self, key):
                yield key, "no such key beside weights", value
        if self.schedule == 1:
            yield "schedule", "0, or at least 2 poses", 1

    def _faults_of_gains(self) -> Faults:
        columns = self.columns or ()
        if len(set(columns)) != len(columns):
            yield "columns", "every fast position once", columns
        for key, rows in (("Kp", self.Kp or ()), ("Kv", self.Kv or ())):
            lengths = [len(row) for row in rows]
            if set(lengths) != {len(columns)}:
                expected = f"{len(columns)} numbers in every row, one per entry of columns"
                yield key, expected, Unquoted("rows of " + ", ".join(map(str, lengths)))
        if self.schedule:
            yield "schedule", "no such key, as gains are given and not designed", self.schedule


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
    """The Kalman filter that replaces a measured state, or an observer of given `gain`.

    The gain (2n, p), of p readings, takes the place of that which follows from the `noise`.
    `start_error` [rad or m] is the error of the estimated joint positions at the start, which links
    and rotors share.
    """

    noise: Noise = Noise()
    gain: Matrix | None = None
    start_error: Numbers | None = None
    solver: Solver = "scipy"


def _in_memory(value: object) -> object:
    """Accept a CasADi function only: a file holds data, never code."""
    if value is not None and not hasattr(value, "n_in"):
        expected = "no such key (a CasADi function lives in memory only, see wrap_controller)"
        raise RefusalError("", expected=expected, got=value)
    return value


class FrictionCompensation(Record):
    """Feed forward `fraction` [-] of the friction that the arm's file gives the desired motion.

    `smoothing_velocity` [rad/s or m/s] of the joints is in place of that of the friction: torques
    that turn round more slowly excite vibrations less.
    """

    fraction: NonNegative = 1.0
    smoothing_velocity: Positive | None = None


class StateSpace(Record):
    """A law z' = A z + B e, tau = C z + D e, or z+ = A z + B e if sampled; or a function.

    `e` are the entries of `measures` in their order: errors, reference minus measurement, of named
    signals, and with the prefix ``measured_`` or ``desired_`` these themselves. tau are torques in
    the order of the joints [N m, N; A, V of motors], added to those of `feedforward`. The matrices
    stand in `file` or here; without states A, B and C are left out. `function`, in memory only, is
    (t, z, q_d, v_d, a_d, y) -> (tau, z'), z+ if sampled, y being measurements in place of errors.
    `sample_time` [s] is 0 for a continuous law.
    """

    file: Text | None = None
    A: Matrix | None = None
    B: Matrix | None = None
    C: Matrix | None = None
    D: Matrix | None = None
    function: Annotated[Any, BeforeValidator(_in_memory)] = Field(default=None, repr=False)
    measures: Annotated[tuple[Text, ...], MinLen(1)]
    sample_time: NonNegative = 0.0
    feedforward: Literal["gravity"] | None = None

    def _faults(self) -> Faults:
        other = "file" if self.file is not None else "function" if self.function else None
        for key in ("A", "B", "C", "D"):
            if other and (value := getattr(self, key)) is not None:
                yield key, f"no such key beside {other}", value
        if self.file is not None and self.function is not None:
            yield "file", "no such key beside function", self.file
        if not other and self.D is None:
            yield "file", "a value (or matrices A, B, C, D)", NOTHING
        if len(set(self.measures)) != len(self.measures):
            yield "measures", "every signal once", self.measures
