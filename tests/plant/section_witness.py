"""The witness of material points for links that vary, carry masses, shear, turn and twist.

It reads what varies from the table of the file by itself, moves every mass and every section as a
rigid body, and takes from the package the shapes alone, whose frequencies tests/beam judges.
"""

from itertools import pairwise

import numpy as np

from flexctl.beam.bases import basis_shapes
from flexctl.beam.line import FREE_TIP
from flexctl.body.body import link_section
from tests.plant.witness import Witness, series_rotation


class Given:
    """Shapes of the package in the witness's terms: rows at points of one panel, complex xi.

    Every state is summed over the same points: values there are kept.
    """

    def __init__(self, shapes):
        self.shapes, self.power, self.breaks = shapes, shapes.power, shapes.breaks
        self.kept = {}

    def __call__(self, _panel, xi, derivative):
        xi = np.ascontiguousarray(np.real(xi))
        return self._keep((derivative, xi.tobytes()), lambda: self.shapes.evaluate(xi, derivative))

    def rotation(self, xi):
        xi = np.ascontiguousarray(xi)
        return self._keep(("rotation", xi.tobytes()), lambda: self.shapes.rotation(xi))

    def _keep(self, key, evaluate):
        if key not in self.kept:
            self.kept[key] = evaluate()
        return self.kept[key]


def along(entry, xi):
    """A quantity of the file at xi: a number, or power-law pieces between its points."""
    if not isinstance(entry, dict):
        return np.full(len(xi), float(entry))
    p, x, value = entry.get("power", 1), entry["x"], np.array(entry["value"], dtype=float)
    found = np.zeros(len(xi))
    for a, b, left, right in zip(x, x[1:], value, value[1:], strict=False):
        inside = (xi > a) & (xi < b)
        share = (xi[inside] - a) / (b - a)
        found[inside] = ((1 - share) * left ** (1 / p) + share * right ** (1 / p)) ** p
    return found


def unit_rule(count):
    """Points and weights of Gauss's rule on [0, 1]."""
    x, w = np.polynomial.legendre.leggauss(count)
    return (x + 1) / 2, w / 2


def rule(breaks, count):
    """Points and weights of Gauss's rule on every panel."""
    t, w = unit_rule(count)
    width = np.diff(breaks)[:, None]
    return (np.array(breaks)[:-1, None] + width * t).ravel(), (width * w).ravel()


class SectionWitness(Witness):
    """Material points of an arm of revolute links whose lines have a course."""

    def __init__(self, arm, kind="modes", order=2):
        self.tables = arm.table()["link"]
        self.count = 10 if kind == "elements" else 45
        super().__init__(arm, kind, order)

    def _shapes(self, kind, order, j, direction):
        section = link_section(self.arm.links[j], direction)
        return Given(basis_shapes(kind, order, direction, FREE_TIP, section))

    def grid(self, j):
        """All breaks of a link's line, and its points between them."""
        table, breaks = self.tables[j], {0.0, 1.0}
        varying = [table.get("mass_per_length")]
        for key in ("EI", "rotary_inertia", "shear_stiffness", "torsion"):
            varying += table.get(key, {}).values()
        for entry in varying:
            breaks |= set(entry["x"]) if isinstance(entry, dict) else set()
        for shapes in self.planes[j].values():
            breaks |= set(shapes.breaks)
        cuts = np.array(sorted(breaks))
        return rule(cuts[np.append(True, np.diff(cuts) > 1e-9)], self.count)

    def _on_axis(self, link, R, p):
        j = self.arm.links.index(link)
        xi, w = self.grid(j)
        masses = along(self.tables[j]["mass_per_length"], xi) * link.length * w
        return masses, p + np.outer(np.copysign(link.length, link.dh.d) * xi, R[:, 2])

    def rotation(self, j, d, xi):
        """Rotation vectors (g, 3) of the sections at xi."""
        phi, length = np.zeros((len(xi), 3), dtype=complex), self.arm.links[j].length
        for direction, shapes in self.planes[j].items():
            delta = d[direction] * length**shapes.power
            turn = delta @ shapes.rotation(xi) / length
            axis = [1, 0, 0]
            if direction != "twist":
                axis = np.cross([1, 0, 0], np.eye(3)["xyz".index(direction)])
            phi += np.outer(turn, axis)
        return phi

    def _end(self, j, d, z, root):
        if not self.planes[j]:
            return super()._end(j, d, z, root)
        (R, p), length = root, self.arm.links[j].length
        end = self._deflected(j, d, np.array([complex(length)]), None, length)[0]
        return R @ series_rotation(self.rotation(j, d, np.ones(1))[0]), p + R @ end

    def _deflected(self, j, d, x, _panel, length):
        xi = np.real(x) / length
        local = np.zeros((len(xi), 3), dtype=complex)
        local[:, 0] = x
        breaks = np.unique(np.concatenate([s.breaks for s in self.planes[j].values()] or [[0, 1]]))
        for direction, shapes in self.planes[j].items():
            if direction == "twist":
                continue
            delta = d[direction] * length**shapes.power
            local[:, "xyz".index(direction)] = delta @ shapes(None, xi, 0)
            if self.arm.links[j].foreshortening:
                square = self.running_square(shapes, delta, breaks, xi)
                local[:, 0] -= square / (2 * length)
        return local

    def running_square(self, shapes, delta, breaks, xi):
        """int_0^xi (sum psi_i' delta_i)^2 for points xi (g,), panel by panel."""
        t, w = unit_rule(self.count)
        total = np.zeros(len(xi), dtype=complex)
        for left, right in pairwise(breaks):
            width = np.clip(xi, left, right) - left
            inner = np.minimum(left + np.outer(width, t), right)  # at the right end: inside
            slopes = (delta @ shapes(None, inner.ravel(), 1)).reshape(inner.shape)
            total += width * (slopes**2 @ w)
        return total

    def _line_points(self, j, d, length, root):
        (R, p), (xi, w), length = root, self.grid(j), self.arm.links[j].length
        carried = self.tables[j].get("masses", ())
        places = np.concatenate([xi, [mass["x"] for mass in carried]])
        own = along(self.tables[j].get("mass_per_length", 0.0), xi) * length * w
        masses = np.concatenate([own, [mass["mass"] for mass in carried]])
        return masses, p + self._deflected(j, d, places * (1 + 0j) * length, None, length) @ R.T

    def points(self, q):
        """All masses, and all solids: also the sections and the masses on lines, by turning."""
        masses, positions, solids = super().points(q)
        d = self.coordinates(np.asarray(q, dtype=complex))
        for j, (R, _), *_ in self.walk(q):
            solids += self._sections(j, d[j], R)
        return masses, positions, solids

    def _sections(self, j, d, R):
        table, (xi, w) = self.tables[j], self.grid(j)
        by = {key: along(e, xi) for key, e in table.get("rotary_inertia", {}).items()}
        y, z = by.get("y", np.zeros(len(xi))), by.get("z", np.zeros(len(xi)))
        polar = table.get("torsion", {}).get("polar_inertia")
        x = y + z if polar is None else along(polar, xi)
        inertias = np.array([x, z, y]) * w * self.arm.links[j].length
        carried = table.get("masses", ())
        inertias = [*inertias.T, *(mass.get("inertia", (0, 0, 0)) for mass in carried)]
        phi = self.rotation(j, d, np.concatenate([xi, [mass["x"] for mass in carried]]))
        return [
            (0.0, tuple(inertia), R @ series_rotation(turn), np.zeros(3, dtype=complex))
            for inertia, turn in zip(inertias, phi, strict=True)
            if np.any(inertia)
        ]

    def strain(self, q):
        """Sum of 1/2 int EI phi_x^2 + kGA (w_x - phi)^2, and GJ of the twist, over all lines."""
        q, total = np.asarray(q, dtype=complex), 0.0
        for j, d in enumerate(self.coordinates(q)):
            (xi, w), length, table = self.grid(j), self.arm.links[j].length, self.tables[j]
            for direction, shapes in self.planes[j].items():
                delta, own = d[direction] * length**shapes.power, shapes.shapes
                bent = delta @ own.bending(xi) / length**2
                twists = direction == "twist"
                rigidity = table["torsion"]["GJ"] if twists else table["EI"][direction]
                total += (along(rigidity, xi) * bent**2) @ w * length / 2
                if entry := table.get("shear_stiffness", {}).get(direction):
                    sheared = delta @ (own.slope(xi) - own.rotation(xi)) / length
                    total += (along(entry, xi) * sheared**2) @ w * length / 2
        return total
