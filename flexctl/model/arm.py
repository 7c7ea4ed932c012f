"""Schema of models/*.toml: an arm in continuous, physical terms (SI units, radians)."""

from typing import Annotated, Any

from annotated_types import MinLen
from pydantic import Field, model_validator

from flexctl.model.design import DESIGN_TABLES
from flexctl.model.link import Link, RigidBody
from flexctl.model.record import (
    BasisChoice,
    Expectations,
    Faults,
    FileRecord,
    Record,
    Unquoted,
    Vector,
)


class Base(Record):
    """Where the arm stands in the base frame: position [m], rotation vector [rad]."""

    position: Vector = (0.0, 0.0, 0.0)
    rotation_vector: Vector = (0.0, 0.0, 0.0)


class Arm(FileRecord):
    """An arm: gravity [m/s^2, base frame], links from the base outward, payload at the tip.

    Examples
    --------
    >>> import flexctl
    >>> arm = flexctl.load_model("theodore-ghosal-rrp")
    >>> [link.joint for link in arm.links]
    ['revolute', 'revolute', 'prismatic']
    """

    gravity: Vector
    base: Base = Base()
    links: Annotated[tuple[Link, ...], MinLen(1)] = Field(alias="link")
    payload: RigidBody = RigidBody()
    truth: BasisChoice | None = None
    expect: Expectations = Field(default_factory=dict)

    @property
    def joints(self) -> tuple[str, ...]:
        """Names of the joints, joint1 nearest the base."""
        return tuple(f"joint{i + 1}" for i in range(len(self.links)))

    @property
    def rotors(self) -> tuple[int, ...]:
        """Indices of the joints that a rotor drives through a spring."""
        return tuple(j for j, link in enumerate(self.links) if link.flexible_joint)

    @property
    def has_friction(self) -> bool:
        """Whether any joint has friction."""
        return any(link.friction for link in self.links)

    @property
    def dry_joints(self) -> tuple[int, ...]:
        """Indices of the joints with dry friction, which may stick."""
        links = enumerate(self.links)
        return tuple(j for j, link in links if link.friction and link.friction.dry)

    @property
    def bristled_joints(self) -> tuple[int, ...]:
        """Indices of the joints whose friction has a state of its own."""
        return self._joints_of_model("lugre")

    @property
    def sticking_joints(self) -> tuple[int, ...]:
        """Indices of the joints that slip and stick by events."""
        return self._joints_of_model("events")

    def _joints_of_model(self, model: str) -> tuple[int, ...]:
        links = enumerate(self.links)
        return tuple(j for j, link in links if link.friction and link.friction.model == model)

    def link_indices(self, word: str) -> list[int]:
        """Return which links the first word of a key means: ``link2``, ``link[2]``, ``links``."""
        if word in ("links", "link*"):
            return list(range(len(self.links)))
        return [i for i, link in enumerate(self.links) if word in (link.name, f"link[{i + 1}]")]

    @property
    def rigid(self) -> "Arm":
        """The same arm with links that do not bend; its joints stay as they are."""
        return self.model_copy(update={"links": tuple(link.rigid for link in self.links)})

    def _facts(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "links": ", ".join(link.name for link in self.links),
            "joints": ", ".join(
                link.joint + (" (flexible)" if link.flexible_joint else "") for link in self.links
            ),
            "payload": f"{self.payload.mass:g} kg",
            "summary": self.summary,
        }

    @model_validator(mode="before")
    @classmethod
    def _name_links(cls, table: object) -> object:
        if not isinstance(table, dict) or not isinstance(table.get("link"), list | tuple):
            return table
        named = [
            {"name": f"link{i + 1}"} | link if isinstance(link, dict) else link
            for i, link in enumerate(table["link"])
        ]
        return {**table, "link": named}

    def _faults(self) -> Faults:
        names = [link.name for link in self.links]
        for i, link in enumerate(self.links):
            if link.name in names[:i] or link.name in _RESERVED:
                yield f"link[{i + 1}].name", "a name that no other link or key has", link.name
            for joint in link.tip_load.reference_pose if link.tip_load else ():
                if joint not in self.joints:
                    key = f"link[{i + 1}].tip_load.reference_pose.{joint}"
                    yield key, f"a joint (one of: {', '.join(self.joints)})", Unquoted(joint)


_RESERVED = {
    *("gravity", "base", "payload", "truth", "link", "links", "stiffness_error"),  # in keys
    *("modes", "elements", *DESIGN_TABLES),  # in keys of what varies
    "tip",  # its lines would have the names of the tip's coordinates
}
