"""A witness of an arm's mechanics that knows only where the arm's material points are.

It shares nothing with the package but the arm's record: it writes down the positions of all
material points as analytic functions of q, takes their velocities along q + i h v (complex step:
exact to round-off, no difference is formed) and sums over the points.
"""

from math import factorial

import numpy as np

from tests.plant.textbook import Elements, Modes, panels, running_square

STEP = 1e-30  # of complex differentiation; no difference is formed, so it may be tiny


def series_rotation(phi):
    """Exponential of the cross product with phi, by its power series: analytic in phi."""
    x, y, z = phi
    S = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    total, power = np.eye(3, dtype=complex), np.eye(3, dtype=complex)
    for k in range(1, 26):  # angles below 2 rad: the first term left out is below 1e-18
        power = power @ S
        total = total + power / factorial(k)
    return total


def turn(axis, angle):
    """Rotation by an angle about coordinate axis 0 or 2, analytic in the angle."""
    c, s = np.cos(angle), np.sin(angle)
    if axis == 0:
        return np.array([[1, 0, 0], [0, c, -s], [0, s, c]])
    return np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])


class Witness:
    """Material points of an arm: `points(q)` and what follows from their motion alone."""

    def __init__(self, arm, kind="modes", order=2):
        self.arm = arm
        self.planes = [{d: Elements(1) for d in link.rigidities} for link in arm.links]
        made = [
            {d: self._shapes(kind, order, j, d) for d in own} for j, own in enumerate(self.planes)
        ]
        self.planes = made

    def _shapes(self, kind, order, j, direction):
        return Elements(order) if kind == "elements" else Modes(order, self.assumed(j, direction))

    def assumed(self, j, direction):
        """The load (M, J, D) that the file lets the shapes of link j assume."""
        choice = self.arm.links[j].tip_load
        if choice is None:
            return 0.0, 0.0, 0.0
        pose = [choice.reference_pose.get(name, 0.0) for name in self.arm.joints]
        load = self.load(j, direction, pose)
        return tuple(x * (term in choice.include) for x, term in zip(load, "MJD", strict=True))

    def load(self, j, direction, joints):
        """All that lies beyond the tip of link j's straight line, by mass and length of the line.

        M_L, J_L about the bending axis through the tip, M_DL along the line.
        """
        n = sum(len(d) for own in self.coordinates(np.zeros(999)) for d in own.values())
        q = np.concatenate([joints, np.zeros(n)])
        parts, link = list(self.walk(q)), self.arm.links[j]
        R, tip = (x.real for x in parts[j][2])
        axis, across = (2 if link.joint == "prismatic" else 0), "xyz".index(direction)
        mass = inertia = moment = 0.0
        points = [points for _, _, _, points, _ in parts[j + 1 :]]
        solids = self.points(q)[2][j + 1 :]
        for _, principal, turned, _ in solids:
            normal = R[:, 3 - axis - across] @ turned.real
            inertia += normal**2 @ np.array(principal)
        for m, r in [*points, *((np.array([m]), c[None]) for m, _, _, c in solids)]:
            local = (r.real - tip) @ R
            mass, moment = mass + m.sum(), moment + m @ local[:, axis]
            inertia += m @ (local[:, axis] ** 2 + local[:, across] ** 2)
        length = link.dh.d + joints[j] if axis == 2 else link.length
        own = link.mass_per_length * length
        return mass / own, inertia / (own * length**2), moment / (own * length)

    def coordinates(self, q):
        """Elastic coordinates by link and direction."""
        start, found = len(self.arm.links), []
        for planes in self.planes:
            found.append({})
            for direction, shapes in planes.items():
                n = len(shapes(0, np.zeros(1), 0))
                found[-1][direction] = np.asarray(q)[start : start + n]
                start += n
        return found

    def walk(self, q):
        """Yield (link index, line's root frame, line's end frame, points, solids), base outward.

        Frames are (R, p) in the base frame; points (masses, positions (g, 3)); solids
        (mass, principal inertias, R, position of the centre of mass).
        """
        q = np.asarray(q, dtype=complex)
        R = series_rotation(np.array(self.arm.base.rotation_vector))
        p = np.array(self.arm.base.position, dtype=complex)
        for j, (link, d) in enumerate(zip(self.arm.links, self.coordinates(q), strict=True)):
            dh, sliding = link.dh, link.joint == "prismatic"
            theta, z = (dh.theta, dh.d + q[j]) if sliding else (dh.theta + q[j], dh.d)
            joint = R @ turn(2, theta), p + R @ np.array([0, 0, z])
            hub = (link.hub.mass, link.hub.inertia, joint[0], joint[1] + joint[0] @ link.hub.com)
            root = (joint[0], p) if sliding else (joint[0] @ turn(0, dh.alpha), joint[1])
            if not sliding and not link.EI and dh.a == 0 and dh.d != 0:
                points = self._on_axis(link, joint[0], p)
            else:
                points = self._line_points(j, d, z, root)
            end = self._end(j, d, z, root)
            yield j, root, end, points, [hub]
            R, p = self._beyond(j, end)

    def tip(self, q):
        """Frame (R, p) of the last tip; it carries the payload."""
        return self._beyond(len(self.arm.links) - 1, list(self.walk(q))[-1][2])

    def _beyond(self, j, end):
        """Frame of the next joint: a sliding link's offset and twist follow its line's end."""
        (R, p), dh = end, self.arm.links[j].dh
        if self.arm.links[j].joint == "revolute":
            return R, p
        return R @ turn(0, dh.alpha), p + R @ np.array([dh.a, 0, 0])

    def points(self, q):
        """All masses with positions, and all solids with frames; the payload last."""
        parts = list(self.walk(q))
        masses = np.concatenate([points[0] for _, _, _, points, _ in parts])
        positions = np.vstack([points[1] for _, _, _, points, _ in parts])
        R, p = self._beyond(parts[-1][0], parts[-1][2])
        load = self.arm.payload
        payload = (load.mass, load.inertia, R, p + R @ np.array(load.com))
        return masses, positions, [*(hub for *_, (hub,) in parts), payload]

    def kinetic(self, q, v):
        """Sum of 1/2 m |r'|^2 over all points; of a solid also its turning."""
        velocity, weights = self._velocities(q, v)
        spin = np.array([link.joint_inertia for link in self.arm.links])
        return weights @ velocity**2 / 2 + spin @ np.asarray(v)[: len(spin)] ** 2 / 2

    def mass_matrix(self, q):
        """Sum of m J' J with J the velocities for unit rates; of a solid also of its turning."""
        columns = [self._velocities(q, e) for e in np.eye(len(q))]
        J, weights = np.array([c[0] for c in columns]), columns[0][1]
        spin = [link.joint_inertia for link in self.arm.links]
        return (J * weights) @ J.T + np.diag(np.pad(spin, (0, len(q) - len(spin))))

    def _velocities(self, q, v):
        """All velocity components and angular velocities in one row, and their inertias."""
        masses, positions, solids = self.points(np.asarray(q) + 1j * STEP * np.asarray(v))
        rows, weights = [positions.imag.ravel() / STEP], [np.repeat(masses, 3)]
        for m, inertia, R, c in solids:
            W = R.real.T @ R.imag / STEP  # the cross product with omega, in the solid's axes
            rows += [c.imag / STEP, np.array([W[2, 1], W[0, 2], W[1, 0]])]
            weights += [np.full(3, m), np.array(inertia)]
        return np.concatenate(rows), np.concatenate(weights)

    def weight_energy(self, q):
        """- sum of m g.r, complex for a complex q."""
        g = np.array(self.arm.gravity)
        masses, positions, solids = self.points(q)
        return -(masses @ positions @ g) - sum(m * (c @ g) for m, _I, _R, c in solids)

    def strain(self, q):
        """Sum of 1/2 EI int v''^2 dx over all lines, complex for a complex q."""
        q, total = np.asarray(q, dtype=complex), 0.0
        for j, d in enumerate(self.coordinates(q)):
            link = self.arm.links[j]
            length = link.dh.d + q[j] if link.joint == "prismatic" else link.length
            for direction, shapes in self.planes[j].items():
                delta = d[direction] * length**shapes.power
                for panel, xi, w in panels(shapes):
                    bent = delta @ shapes(panel, xi, 2) / length**2
                    total += link.EI[direction] * length * (bent**2 @ w) / 2
        return total

    def gradient(self, energy, q):
        """Derivative of `weight_energy` or `strain` by q."""
        eye = np.eye(len(q))
        return np.array([energy(q + 1j * STEP * e).imag / STEP for e in eye])

    def _on_axis(self, link, R, p):
        x, w = np.polynomial.legendre.leggauss(3)
        z = np.copysign(link.length, link.dh.d) * (x + 1) / 2
        masses = link.mass_per_length * link.length * w / 2
        return masses, p + np.outer(z, R[:, 2])

    def _line_points(self, j, d, length, root):
        """Points fixed in the material: s = x for a link that turns, x + (L - l) if it slides."""
        link, (R, p) = self.arm.links[j], root
        axis = 2 if link.joint == "prismatic" else 0
        if axis == 0:
            length = link.length
        masses, positions = [], []
        for panel, xi, w in panels(*self.planes[j].values()):
            s = xi * np.real(length) + (link.length - np.real(length))  # label of the material
            x = s - (link.length - length)
            local = self._deflected(j, d, x, panel, length)
            masses.append(link.mass_per_length * np.real(length) * w)
            positions.append(p + local @ R.T)
        if axis == 2:
            t, w = np.polynomial.legendre.leggauss(4)
            hidden = link.length - np.real(length)
            s = hidden * (t + 1) / 2
            masses.append(link.mass_per_length * hidden * w / 2)
            positions.append(p + np.outer(s - (link.length - length), R[:, 2]))
        return np.concatenate(masses), np.vstack(positions)

    def _deflected(self, j, d, x, panel, length):
        """Position (g, 3) in the root frame of points at x [m] of one panel."""
        link = self.arm.links[j]
        axis = 2 if link.joint == "prismatic" else 0
        local = np.zeros((len(x), 3), dtype=complex)
        local[:, axis] = x
        for direction, shapes in self.planes[j].items():
            delta, xi = d[direction] * length**shapes.power, x / length
            local[:, "xyz".index(direction)] = delta @ shapes(panel, xi, 0)
            if link.foreshortening:
                square = running_square(shapes, delta, xi, panel)
                local[:, axis] -= square / (2 * length)
        return local

    def _end(self, j, d, z, root):
        link, (R, p) = self.arm.links[j], root
        if not self.planes[j]:
            far = [0, 0, z] if link.joint == "prismatic" else [link.dh.a, 0, 0]
            return R, p + R @ np.array(far)
        axis = np.eye(3)[2 if link.joint == "prismatic" else 0]
        length = z if link.joint == "prismatic" else complex(link.length)
        last = len(next(iter(self.planes[j].values())).breaks) - 2
        end = self._deflected(j, d, np.array([length]), last, length)[0]
        phi = np.zeros(3, dtype=complex)
        for direction, shapes in self.planes[j].items():
            delta = d[direction] * length**shapes.power
            slope = delta @ shapes(last, np.ones(1), 1)[:, 0] / length
            phi += slope * np.cross(axis, np.eye(3)["xyz".index(direction)])
        return R @ series_rotation(phi), p + R @ end
