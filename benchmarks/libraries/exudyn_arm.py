"""A planar arm in Exudyn: floating frames with shapes of each link.

Every link is an `ObjectFFRFreducedOrder` whose frame is clamped to its root.  Its nodes are
Gauss-Lobatto points with their weights as masses, so that the inertia integrals are exact for the
shapes used; four nodes without mass around the tip carry its slope to the next joint.  This
formulation bends linearly and has no foreshortening: it corresponds to `foreshortening = false`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import exudyn as exu
import numpy as np
import scipy.sparse
from exudyn import itemInterface as items  # noqa: N813
from exudyn.FEM import FEMinterface, ObjectFFRFreducedOrderInterface
from numpy.polynomial import Legendre, Polynomial

from flexctl.model import Arm, Link

Array = np.ndarray
ROOTS = (1.875104068711961, 4.694091132974175, 7.854757438237613, 10.995540734875467)
REACH = 0.05  # of the nodes around the tip, in lengths: only their directions matter


def modes_of(count: int) -> Callable[[Array], tuple[Array, Array, Array]]:
    """Clamped-free modes: shapes(xi) -> value, slope and curvature, each (count, points)."""

    def shapes(xi: Array) -> tuple[Array, Array, Array]:
        b = np.array(ROOTS[:count])[:, None]
        ratio = (np.cosh(b) + np.cos(b)) / (np.sinh(b) + np.sin(b))
        ch, sh, co, si = np.cosh(b * xi), np.sinh(b * xi), np.cos(b * xi), np.sin(b * xi)
        value = ch - co - ratio * (sh - si)
        slope = b * (sh + si - ratio * (ch - co))
        return value, slope, b**2 * (ch + co - ratio * (sh + si))

    return shapes


def polynomials_of(count: int) -> Callable[[Array], tuple[Array, Array, Array]]:
    """xi^2 times Legendre polynomials: fewer are needed where loads at the tip bend the link."""

    def shapes(xi: Array) -> tuple[Array, Array, Array]:
        legendre = (Legendre.basis(k, [0, 1]).convert(kind=Polynomial) for k in range(count))
        basis = [Polynomial([0, 0, 1]) * f for f in legendre]
        return tuple(np.array([(f.deriv(k) if k else f)(xi) for f in basis]) for k in range(3))

    return shapes


SHAPES = {"modes": modes_of, "polynomials": polynomials_of}


def lobatto(count: int) -> tuple[Array, Array]:
    """Gauss-Lobatto points and weights on [0, 1]."""
    legendre = np.polynomial.Legendre.basis(count - 1)
    x = np.concatenate([[-1.0], legendre.deriv().roots().real, [1.0]])
    return (x + 1) / 2, 1 / (count * (count - 1) * legendre(x) ** 2)


@dataclass(frozen=True, kw_only=True)
class ExudynArm:
    """An assembled system.

    Attributes
    ----------
    system
        Exudyn's main system.
    frames, modes
        Sensors of every link's frame rotation and of its modal coordinates.
    slopes
        Slope of every link's tip per unit of its modal coordinates, (links, modes) [1/m].
    loads
        Torques of every joint: on its link, and back on the link before.
    tip
        Sensor of the arm's tip.
    """

    system: exu.MainSystem
    frames: list
    modes: list
    slopes: Array
    loads: list
    tip: object

    def run(self, torques: Array, time: float) -> tuple[Array, Array, Array]:
        """Return times, joint angles (times, links) and tip (times, 2) of a run.

        `torques` (steps + 1, links) act at the ends of the steps.
        """
        steps = len(torques) - 1
        table, rate = torques.tolist(), steps / time

        def set_torques(mbs: exu.MainSystem, t: float) -> bool:
            for loads, value in zip(self.loads, table[round(t * rate)], strict=True):
                for load, sign in zip(loads, (1.0, -1.0), strict=True):
                    mbs.SetLoadParameter(load, "loadVector", [0.0, 0.0, sign * value])
            return True

        self.system.SetPreStepUserFunction(set_torques)
        self.system.SolveDynamic(settings(steps, time))
        frames = [self.system.GetSensorStoredData(s) for s in self.frames]
        modes = [self.system.GetSensorStoredData(s)[:, 1:] for s in self.modes]
        angles = np.array([f[:, -1] for f in frames]).T
        ends = [a + m @ s for a, m, s in zip(angles.T, modes, self.slopes, strict=True)]
        angles[:, 1:] -= np.array(ends[:-1]).T
        tip = self.system.GetSensorStoredData(self.tip)[:, 1:3]
        return frames[0][:, 0], angles, tip


def settings(steps: int, time: float) -> exu.SimulationSettings:
    """Generalised-alpha with little numerical damping; a hundred samples of the solution."""
    s = exu.SimulationSettings()
    s.timeIntegration.numberOfSteps = steps
    s.timeIntegration.endTime = time
    s.timeIntegration.generalizedAlpha.spectralRadius = 0.9
    s.timeIntegration.newton.useModifiedNewton = True
    s.solution.file.write = False
    s.solution.sensors.writePeriod = time / 100
    s.timeIntegration.verboseMode = 0
    s.linearSolver.solverType = exu.LinearSolverType.EXUdense
    return s


def exudyn_arm(arm: Arm, order: int = 2, kind: str = "modes") -> ExudynArm:
    """Build a planar arm of flexible revolute links in its straight pose.

    `order` shapes per link of a `kind` in `SHAPES`.
    """
    mbs = exu.SystemContainer().AddSystem()
    ground = mbs.AddObject(items.ObjectGround())
    before = mbs.AddMarker(items.MarkerBodyRigid(bodyNumber=ground))
    frames, coordinates, slopes, loads, start = [], [], [], [], 0.0
    for link in arm.links:
        fem, slope = _modal_link(link, SHAPES[kind](order))
        parts = ObjectFFRFreducedOrderInterface(
            fem, rigidBodyNodeType="NodeType.RotationRotationVector"
        ).AddObjectFFRFreducedOrder(mbs, positionRef=[start, 0, 0])
        root = mbs.AddMarker(items.MarkerNodeRigid(nodeNumber=parts["nRigidBody"]))
        mbs.AddObject(
            items.GenericJoint(markerNumbers=[before, root], constrainedAxes=[1, 1, 1, 1, 1, 0])
        )
        loads.append([mbs.AddLoad(_torque(marker)) for marker in (root, before)])
        count = len(fem.nodes["Position"])
        before = mbs.AddMarker(
            items.MarkerSuperElementRigid(
                bodyNumber=parts["oFFRFreducedOrder"],
                meshNodeNumbers=list(range(count - 4, count)),
                weightingFactors=[0.25] * 4,
            )
        )
        frames.append(_sensor(mbs, parts["nRigidBody"], exu.OutputVariableType.Rotation))
        coordinates.append(_sensor(mbs, parts["nGenericODE2"], exu.OutputVariableType.Coordinates))
        slopes.append(slope)
        start += link.length
    tip = mbs.AddSensor(
        items.SensorMarker(
            markerNumber=before,
            outputVariableType=exu.OutputVariableType.Position,
            storeInternal=True,
            writeToFile=False,
        )
    )
    mbs.Assemble()
    return ExudynArm(
        system=mbs,
        frames=frames,
        modes=coordinates,
        slopes=np.array(slopes),
        loads=loads,
        tip=tip,
    )


def _torque(marker: object) -> object:
    return items.LoadTorqueVector(markerNumber=marker, loadVector=[0.0, 0.0, 0.0])


def _sensor(mbs: exu.MainSystem, node: int, kind: object) -> object:
    return mbs.AddSensor(
        items.SensorNode(
            nodeNumber=node, outputVariableType=kind, storeInternal=True, writeToFile=False
        )
    )


def _modal_link(link: Link, shapes: Callable) -> tuple[FEMinterface, Array]:
    """Nodes, masses, shapes and stiffness of a link; slope of its tip per unit of each shape."""
    length = link.length
    xi, weights = lobatto(24)
    line = np.outer(xi * length, [1, 0, 0])
    around = REACH * length * np.array([[0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1]])
    positions = np.vstack([line, np.array([length, 0, 0]) + around])
    masses = np.concatenate([link.mass_per_length * length * weights, np.zeros(4)])
    value, slope, curvature = shapes(np.append(xi, np.ones(4)))
    slope, bent = slope[:, -1] / length, curvature[:, :-4]
    basis = np.zeros((len(positions), 3, len(value)))
    basis[:, 1] = value.T
    basis[-4:, 0] = -np.outer(around[:, 1], slope)
    Phi = basis.reshape(-1, len(value))
    inverse = np.linalg.pinv(Phi)
    K = link.EI["y"] / length**3 * (bent * weights) @ bent.T
    fem = FEMinterface()
    fem.nodes = {"Position": positions}
    fem.massMatrix = scipy.sparse.csr_matrix(scipy.sparse.diags(np.repeat(masses, 3)))
    fem.stiffnessMatrix = scipy.sparse.csr_matrix(inverse.T @ K @ inverse)
    fem.modeBasis = {"matrix": Phi, "type": "NormalModes"}
    return fem, slope
