"""Natural frequency of a named mode of an arm whose motors are held, at a pose."""

from __future__ import annotations

import numpy as np
import scipy.linalg

from flexctl.checks import Array
from flexctl.errors import InputError
from flexctl.model import nearest
from flexctl.plant import Plant, line_modes

_RIGID = 1e-9  # of the largest squared frequency: motions without strain


def require_mode(plant: Plant, name: str, key: str) -> None:
    """Refuse what is no mode of the plant, of a rotor or of a line; `key` begins the message."""
    lines = [
        f"{body.link.name}.{direction}.{k + 1}"
        for body in plant.bodies
        for direction in body.planes
        for k in range(len(body.names(direction)))
    ]
    if name not in (known := (*plant.rotors, *lines)):
        expected = f"a number, or a mode of {plant.arm.name} ({nearest(name, known)})"
        raise InputError(f"{key}: expected {expected}, got {name}")


def mode_frequency(plant: Plant, joints: Array, name: str, free: int | None) -> float:
    """Frequency [rad/s] of the mode in which `name` participates most, straight, without gravity.

    At joint variables (m,) all motors are held (rotors of flexible joints, else joints) but that of
    joint `free`. Participation of the amplitude y_i of a rotor or of a line's own mode in a mode y
    with y'My = 1 is |y_i (My)_i|. Rigid motions do not count.
    """
    q = plant.straight(joints)
    T, names = line_modes(plant, joints)
    held = [drive for j, drive in enumerate(plant.drives) if j != free]
    moving = [row for row in range(plant.n) if row not in held]
    M, K = (
        (T.T @ part @ T)[np.ix_(moving, moving)]
        for part in (plant.mass_matrix(q), plant.elastic_stiffness(q))
    )
    squares, modes = scipy.linalg.eigh((K + K.T) / 2, (M + M.T) / 2)
    row = moving.index(names.index(name))
    share = np.abs(modes[row] * (M @ modes)[row]) * (squares > _RIGID * squares[-1])
    return float(np.sqrt(squares[share.argmax()]))
