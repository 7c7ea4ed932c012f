"""Schema of the motor of a joint in models/*.toml: what a command of a controller does there."""

from typing import Literal

from flexctl.model.record import NOTHING, Faults, NonNegative, Positive, Record

Command = Literal["torque", "current", "voltage"]


class Motor(Record):
    """A direct-current motor, or a drive that behaves like one, behind a gear.

    A controller commands its current or its voltage, and all gains are per volt or ampere; without
    a `command` the torque or force at the joint, as without a motor. With the ratio G of the gear
    (`gear` [-, rad/m if the joint slides] of a rigid joint; a flexible joint has its own), the rate
    w of the driven coordinate and the current i

        torque = G k_t i,  R i = u - k_e G w of a voltage u, or i = u of a current.

    `torque_constant` k_t [N m/A]; of a voltage `resistance` R [ohm] and `back_emf` k_e [V s/rad].
    The amplifier gives at most `current_limit` [A] and `voltage_limit` [V].
    """

    torque_constant: Positive
    command: Command = "torque"
    resistance: Positive | None = None
    back_emf: NonNegative | None = None
    current_limit: Positive | None = None
    voltage_limit: Positive | None = None
    gear: Positive | None = None

    def _faults(self) -> Faults:
        if self.command == "voltage":
            for key in ("resistance", "back_emf"):
                if getattr(self, key) is None:
                    yield key, "a number, as the command is a voltage", NOTHING
        elif self.voltage_limit is not None:
            expected = f"no such key, as the command is a {self.command}"
            yield "voltage_limit", expected, self.voltage_limit
