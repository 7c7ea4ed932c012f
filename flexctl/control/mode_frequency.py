"""Natural frequencies of named modes of an arm whose motors are held, at a pose."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from flexctl.beam import natural_modes
from flexctl.checks import Array
from flexctl.errors import InputError
from flexctl.model import nearest
from flexctl.plant import Plant, line_modes


def require_line_mode(plant: Plant, name: str, key: str) -> None:
    """Refuse what is no mode of a line of the plant; `key` begins the message."""
    if name not in (known := _of_lines(plant)):
        expected = f"a mode of a line of {plant.arm.name} ({nearest(name, known)})"
        raise InputError(f"{key}: expected {expected}, got {name}")


def require_followed_mode(plant: Plant, name: str, key: str, free: int | None) -> None:
    """Refuse what is no mode of the plant while all motors but that of joint `free` are held."""
    if name in (known := moving_modes(plant, free)):
        return
    if name in plant.rotors:
        held = "all drives" if free is None else f"all drives but that of {plant.joints[free]}"
        which, got = f"with {held} held ({', '.join(known) or 'none'})", f"{name}, which is held"
    else:
        which, got = f"({nearest(name, known)})", name
    expected = f"a number, or a mode of {plant.arm.name} {which}"
    raise InputError(f"{key}: expected {expected}, got {got}")


def moving_modes(plant: Plant, free: int | None) -> list[str]:
    """Modes of the lines, and the rotor of joint `free`, that of a flexible joint: see below."""
    drive = None if free is None else plant.coordinates[plant.drives[free]]
    return [*(rotor for rotor in plant.rotors if rotor == drive), *_of_lines(plant)]


def _of_lines(plant: Plant) -> list[str]:
    """Own modes of all lines, such as link2.y.1."""
    return [
        f"{body.link.name}.{direction}.{k + 1}"
        for body in plant.bodies
        for direction in body.planes
        for k in range(len(body.names(direction)))
    ]


@dataclass(frozen=True, kw_only=True)
class Participation:
    """Natural frequencies of an arm, and how much named modes take part in each.

    Attributes
    ----------
    names
        Modes (k,) as in `moving_modes`.
    natural
        Frequencies (n,) [rad/s], ascending.
    shares
        Participation (k, n) [-]: of the amplitude y_i of a rotor or of a line's own mode in a mode
        y with y'My = 1 it is |y_i (My)_i|; 0 in rigid motions.
    """

    names: tuple[str, ...]
    natural: Array
    shares: Array

    @property
    def frequencies(self) -> dict[str, float]:
        """Frequency [rad/s] of the mode in which each name participates most."""
        most = self.natural[self.shares.argmax(axis=1)] if self.names else self.natural
        return dict(zip(self.names, most.tolist(), strict=True))

    def largest_at(self, frequency: float, but: str) -> str:
        """Of all names but one, that with the largest part in the mode nearest to a frequency."""
        shares = self.shares[:, np.abs(self.natural - frequency).argmin()].tolist()
        parts = dict(zip(self.names, shares, strict=True))
        return max(sorted(parts.keys() - {but}), key=parts.__getitem__, default="another mode")


def participation(plant: Plant, joints: Array, free: int | None) -> Participation:
    """Natural frequencies straight, without gravity, at joint variables (m,), and who takes part.

    All motors are held (rotors of flexible joints, else joints) but that of joint `free`.
    """
    q = plant.straight(joints)
    T, names = line_modes(plant, joints)
    held = [drive for j, drive in enumerate(plant.drives) if j != free]
    moving = [row for row in range(plant.n) if row not in held]
    if not (known := moving_modes(plant, free)):
        return Participation(names=(), natural=np.zeros(0), shares=np.zeros((0, 0)))
    M, K = (
        (T.T @ part @ T)[np.ix_(moving, moving)]
        for part in (plant.mass_matrix(q), plant.elastic_stiffness(q))
    )
    squares, modes = natural_modes((K + K.T) / 2, (M + M.T) / 2)
    shares = np.abs(modes * (M @ modes)) * (squares > 0)
    return Participation(
        names=tuple(known),
        natural=np.sqrt(np.maximum(squares, 0.0)),
        shares=shares[[moving.index(names.index(name)) for name in known]],
    )
