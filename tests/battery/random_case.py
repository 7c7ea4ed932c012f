"""Random arms with random designs, as the two TOML files that a user would write: one pair a seed.

What is drawn keeps an arm near what is built: links of 0.3 to 1 m whose first frequency lies
between 15 and 50 rad/s, joints as heavy as motors are, gains below these frequencies. Some can not
hold their own weight, some are sampled too slowly, some nothing damps: that is what is looked for.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

EARTH = 9.81
_LQG = 8  # of so many seeds the last has LQG in place of the method that was drawn
METHODS, METHOD_SHARES = ("decoupling", "composite", "joint-pd"), (0.45, 0.2, 0.35)
TRUTHS = (("elements", 1), ("elements", 2), ("modes", 2), ("modes", 3), ("pinned-modes", 2))
TRUTH_SHARES = (0.3, 0.25, 0.25, 0.1, 0.1)
INSTRUMENTS = ("encoder", "tachometer", "joint_encoder", "strain_gauge")
CANNOT_HOLD, HOLDS = (0.5, 0.9), (1.8, 4.0)  # torque limits over the weight with all stretched out


@dataclass(frozen=True, kw_only=True)
class Case:
    """Tables of an arm and of a design for it."""

    seed: int
    arm: dict
    design: dict

    def write(self, folder: Path) -> tuple[Path, Path]:
        """Write both files into a folder and return their paths."""
        folder.mkdir(parents=True, exist_ok=True)
        paths = folder / "arm.toml", folder / "design.toml"
        for path, table in zip(paths, (self.arm, self.design), strict=True):
            path.write_text(toml(table))
        return paths


def random_case(seed: int) -> Case:
    """Draw the arm and the design of a seed; the same seed gives the same files."""
    draw = Draw(np.random.default_rng([2024, seed]))
    arm, design = draw.arm(), draw.design()
    if seed % _LQG == _LQG - 1:
        design = draw.as_lqg(design)
    return Case(seed=seed, arm=arm, design=design)


class Draw:
    """Random numbers of one case, and what both files must agree on."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.m = int(rng.choice([1, 2, 3], p=[0.4, 0.4, 0.2]))
        self.spatial = self.m > 1 and self.chance(0.4)
        self.slides = self.m > 1 and self.chance(0.25)  # the last link
        self.weight = self.gravity()
        self.damped = self.chance(0.85)
        self.lengths = rng.uniform(0.3, 1.0, self.m)
        self.masses = rng.uniform(0.3, 2.0, self.m) * self.lengths
        self.payload = float(rng.uniform(0.1, 1.0)) if self.chance(0.85) else 0.0
        self.bends = rng.random(self.m) < 0.85
        self.bends[-1] |= not self.bends.any()
        self.sprung = rng.random(self.m) < 0.3
        self.final = np.array([self.pose(j) for j in range(self.m)])

    def chance(self, share: float) -> bool:
        """Return whether a draw falls into a share of all."""
        return bool(self.rng.random() < share)

    def between(self, low: float, high: float) -> float:
        """Draw evenly between two numbers."""
        return float(self.rng.uniform(low, high))

    def gravity(self) -> list[float]:
        """Draw none, in the plane of a planar arm, or in any direction."""
        kind, direction = self.rng.random(), self.rng.normal(size=3)
        if kind < 0.3:
            return [0.0, 0.0, 0.0]
        if kind < 0.7:
            return [0.0, -EARTH, 0.0]
        return (EARTH * direction / np.linalg.norm(direction)).tolist()

    def pose(self, j: int) -> float:
        """Draw where joint j ends."""
        if self.sliding(j):
            return self.between(0.5, 0.8) * float(self.lengths[j])
        return self.between(-1.6, 1.6)

    def sliding(self, j: int) -> bool:
        """Return whether link j slides."""
        return self.slides and j == self.m - 1

    def beyond(self, j: int) -> tuple[float, float, float]:
        """Mass, its moment and second moment about the root of link j, all stretched out."""
        mass = moment = second = begin = 0.0
        for k in range(j, self.m):
            m, L = self.masses[k], self.lengths[k]
            mass, moment = mass + m, moment + m * (begin + L / 2)
            second, begin = second + m * (begin**2 + begin * L + L**2 / 3), begin + L
        p = self.payload
        return float(mass + p), float(moment + p * begin), float(second + p * begin**2)

    @cached_property
    def inertia(self) -> list[float]:
        """What joint j moves, stretched out [kg m^2], of a sliding one [kg], its motor in it."""
        return [1.3 * self.beyond(j)[0 if self.sliding(j) else 2] for j in range(self.m)]

    @cached_property
    def holding(self) -> list[float]:
        """What joint j would have to hold at most [N m or N]."""
        return [EARTH * self.beyond(j)[0 if self.sliding(j) else 1] for j in range(self.m)]

    def arm(self) -> dict:
        """Draw the model file."""
        links = [self.link(j) for j in range(self.m)]
        if self.chance(0.5):
            least, most = HOLDS if self.chance(0.7) else CANNOT_HOLD
            for j, link in enumerate(links):
                most_asked = max(self.holding[j], 4.0 * self.inertia[j])
                link.setdefault("limits", {})["torque"] = most_asked * self.between(least, most)
        table = {"summary": "a random arm", "source": "flexctl's", "gravity": self.weight}
        table["link"] = links
        if self.payload:
            J = self.payload * self.between(0.0005, 0.005)
            table["payload"] = {"mass": self.payload, "inertia": [J, 1.2 * J, 1.3 * J]}
        kind, order = TRUTHS[self.rng.choice(len(TRUTHS), p=TRUTH_SHARES)]
        if kind == "pinned-modes" and self.slides:
            kind = "modes"
        return table | {"truth": {"kind": kind, "order": order}}

    def link(self, j: int) -> dict:
        """Draw link j with its joint."""
        slides, L = self.sliding(j), float(self.lengths[j])
        link = {"joint": "prismatic" if slides else "revolute"}
        link["mass_per_length"] = float(self.masses[j]) / L
        link["total_length" if slides else "length"] = L
        link["dh"] = {"alpha": self.twist(j)} if slides else {"a": L, "alpha": self.twist(j)}
        if self.bends[j]:
            link |= self.elastic(j)
        own = 0.3 * self.inertia[j] / 1.3
        if self.sprung[j] and not slides:
            link["flexible_joint"] = self.spring(j)
            own *= 0.1
        link["joint_inertia"] = own
        J = own * self.between(0.01, 0.03) if not slides else 0.01 * float(self.masses[j])
        link["hub"] = {"mass": self.between(0.0, 0.5), "inertia": [J, 1.2 * J, 1.5 * J]}
        if slides:
            link["limits"] = {"position": [0.1 * L, L]}
        return link

    def twist(self, j: int) -> float:
        """Draw the angle between the axes of joints j and j + 1."""
        if self.slides and j == self.m - 2:
            return float(np.pi / 2)  # the beam then slides across the axis before it
        return self.between(-1.6, 1.6) if self.spatial and j < self.m - 1 else 0.0

    def elastic(self, j: int) -> dict:
        """Draw stiffness and damping: EI from a frequency of the line with what it carries."""
        L, carried = float(self.lengths[j]), self.beyond(j)[0] - float(self.masses[j])
        effective = carried + 0.24 * float(self.masses[j])
        EI = self.between(15, 50) ** 2 * effective * L**3 / 3
        planes = "xy" if self.sliding(j) else "yz"
        drawn = planes if self.spatial or self.chance(0.1) else planes[:1]
        if self.slides and j < self.m - 1 and not self.spatial:
            drawn = "z" if j == self.m - 2 else "y"  # in the plane, after the twist
        link = {"EI": {plane: EI * self.between(0.7, 1.4) for plane in drawn}}
        link["damping_ratio"] = self.between(0.003, 0.03) if self.damped else 0.0
        link["foreshortening"] = self.chance(0.7)
        if self.chance(0.4):
            link["tip_load"] = {"include": ["M", "J"]}
        return link

    def spring(self, j: int) -> dict:
        """Draw the flexible joint j: its spring from a frequency, its rotor a share of the load."""
        gear, inertia = float(self.rng.choice([1.0, 50.0, 100.0])), self.inertia[j]
        k, J = self.between(20, 80) ** 2 * inertia, inertia * self.between(0.15, 0.6)
        joint = {"rotor_inertia": J / gear**2, "gear": gear, "stiffness": k}
        if self.damped:
            joint["damping"] = float(2 * self.between(0.0, 0.02) * np.sqrt(k * J))
        if self.chance(0.3):
            joint["carried"] = True
        return joint

    def design(self) -> dict:
        """Draw the design file."""
        method = str(self.rng.choice(METHODS, p=METHOD_SHARES))
        table = {"summary": "a random design", "source": "flexctl's", "model": "arm"}
        table |= {"method": method, "basis": self.basis(), "reference": self.reference()}
        wn, ratio = self.between(2.5, 8.0), self.between(0.5, 1.2)
        Gp, Gv = np.full(self.m, wn**2), np.full(self.m, 2 * ratio * wn)
        if method == "joint-pd":
            Gp, Gv = Gp * self.inertia, Gv * self.inertia
        table["gains"] = {"Gp": Gp.tolist(), "Gv": Gv.tolist()}
        second = method == "decoupling" and self.chance(0.5)
        if method != "composite" and self.chance(0.3):
            share = 0.05 if second else self.between(0.1, 0.5)
            table["gains"]["Gi"] = (share * Gp * Gv / np.maximum(1.0, Gp / wn**2)).tolist()
        if second:
            table["second_loop"] = self.second_loop()
        if method == "composite":
            table |= self.composite()
        table["loop"] = self.loop(method)
        return table

    def as_lqg(self, design: dict) -> dict:
        """Put LQG in place of a design's law: half with integral action, some with a schedule."""
        kept = ("summary", "source", "model", "basis", "reference")
        table = {key: design[key] for key in kept} | {"method": "lqg"}
        size = 10 ** self.between(0, 2)
        weights = {"joint_error": 10 * size, "joint_rate": size, "strain_energy": 30.0}
        if self.chance(0.5):
            weights["joint_integral"] = size * 10 ** self.between(0, 2)
        weights |= {"kinetic_energy": 30.0, "effort": 10 ** self.between(-2, 0)}
        table["second_loop"] = {"weights": weights}
        if self.chance(0.3):
            table["second_loop"]["schedule"] = 5
        return table | {"loop": self.loop("lqg")}

    def basis(self) -> dict:
        """Draw what the controller knows: few modes, at times elements."""
        kind = "elements" if self.chance(0.15) else "modes"
        order = 2 if self.chance(0.3) else 1
        return {"kind": kind, "order": order}

    def reference(self) -> dict:
        """Draw a motion that ends at the final pose."""
        way = self.rng.uniform(-0.6, 0.6, self.m)
        if self.slides:
            way[-1] *= 0.2 * self.lengths[-1]
        kind = str(
            self.rng.choice(["quintic", "cycloid", "bang-bang", "setpoint"], p=(0.4, 0.3, 0.2, 0.1))
        )
        reference = {"kind": kind, "from": (self.final - way).tolist(), "to": self.final.tolist()}
        if kind != "setpoint":
            reference["duration"] = self.between(0.6, 1.5)
        return reference

    def second_loop(self) -> dict:
        """Draw weights of the second loop and how it fades in."""
        size = 10 ** self.between(0, 2)
        weights = {"joint_error": 10 * size, "joint_rate": size, "strain_energy": 30.0}
        weights |= {"kinetic_energy": 30.0, "effort": 10 ** self.between(-2, 0)}
        table = {"weights": weights}
        return table | ({"switch": {"blend": 0.1}} if self.chance(0.3) else {})

    def composite(self) -> dict:
        """Draw the fast loop, and which angle the slow one measures."""
        table: dict = {}
        if self.chance(0.7):
            effort = 10 ** self.between(-2.5, 0)
            weights = {"strain_energy": 1.0, "kinetic_energy": 1.0, "effort": effort}
            table["fast_loop"] = {"weights": weights}
        if self.sprung.any() and self.chance(0.5):
            table["slow_loop"] = {"angle": "rotor"}
        return table

    def loop(self, method: str) -> dict:
        """Draw how the loop is closed: continuous, sampled and late, or by instruments."""
        kind = self.rng.random()
        if kind < 0.25:
            T = self.between(1e-3, 8e-3)
            late = float(self.rng.choice([0.0, 0.4, 1.0, 1.7]))
            return {"sample_time": T, "delay": late * T}
        if kind < 0.5 and method != "joint-pd":
            count = int(self.rng.integers(2, 5))
            return {"measures": sorted(set(INSTRUMENTS[:2]) | set(INSTRUMENTS[2:count]))}
        return {"settle_within": 1e-3}


def toml(table: dict) -> str:
    """Write a table as TOML: what holds tables as tables of their own, the rest in line."""
    plain = [f"{key} = {_value(value)}" for key, value in table.items() if not _is_table(value)]
    parts = ["\n".join(plain)]
    for key, value in table.items():
        for inner, mark in _tables(value):
            lines = [f"{k} = {_value(v)}" for k, v in inner.items()]
            parts.append("\n".join([mark[0] + key + mark[1], *lines]))
    return "\n\n".join(parts) + "\n"


def _is_table(value: object) -> bool:
    return isinstance(value, dict) or (isinstance(value, list) and isinstance(value[0], dict))


def _tables(value: object) -> list:
    if isinstance(value, dict):
        return [(value, ("[", "]"))]
    return [(inner, ("[[", "]]")) for inner in value] if _is_table(value) else []


def _value(value: object) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{k} = {_value(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else repr(value)
