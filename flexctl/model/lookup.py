"""Find arms and designs by name or path, and list the catalogue."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from flexctl.errors import InputError
from flexctl.model.arm import Arm
from flexctl.model.design import Design
from flexctl.model.files import read_toml
from flexctl.model.refusals import build_file, nearest

Kind = Literal["models", "designs"]
_PACKAGE = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One file of the catalogue; if it is invalid, `error` says why and the rest is empty."""

    name: str
    path: Path
    summary: str = ""
    source: str = ""
    model: str | None = None  # of a design
    method: str | None = None  # of a design
    error: str | None = None


def load_model(name_or_path: Arm | str | os.PathLike[str]) -> Arm:
    """Load an arm by its name in the catalogue, or by the path of a TOML file.

    Parameters
    ----------
    name_or_path
        Name of the catalogue, or a path: a `Path`, or a text that has a separator or ends in .toml.
        An `Arm` is returned unchanged.

    Raises
    ------
    InputError
        If there is no such model or file, or its content is refused.

    Examples
    --------
    >>> import flexctl
    >>> flexctl.load_model("theodore-ghosal-rrp").joints
    ('joint1', 'joint2', 'joint3')
    """
    if isinstance(name_or_path, Arm):
        return name_or_path
    path = find("models", name_or_path)
    return build_file(Arm, read_toml(path), path.stem, path)


def load_design(name_or_path: Design | str | os.PathLike[str]) -> Design:
    """Load a design by its name in the catalogue, or by the path of a TOML file.

    Parameters
    ----------
    name_or_path
        Name of the catalogue, or a path: a `Path`, or a text that has a separator or ends in .toml.
        A `Design` is returned unchanged.

    Raises
    ------
    InputError
        If there is no such design or file, or its content is refused.

    Examples
    --------
    >>> import flexctl
    >>> flexctl.load_design("hub-pd").gains.Gp
    (20.0,)
    """
    if isinstance(name_or_path, Design):
        return name_or_path
    path = find("designs", name_or_path)
    return build_file(Design, read_toml(path), path.stem, path)


def list_models() -> tuple[Entry, ...]:
    """Return an entry for every arm of the catalogue, by name."""
    return tuple(_model_entry(name, path) for name, path in _files("models").items())


def list_designs() -> tuple[Entry, ...]:
    """Return an entry for every design of the catalogue, by name."""
    return tuple(_design_entry(name, path) for name, path in _files("designs").items())


def find(kind: Kind, name_or_path: str | os.PathLike[str]) -> Path:
    """Return the path of a name, or the path itself: it has a separator or ends in .toml.

    Raises
    ------
    InputError
        If it is no name or path, or the catalogue has no such name; the message gives the nearest.
    """
    noun = kind.removesuffix("s")
    if not isinstance(name_or_path, str | os.PathLike):
        record = {"models": "an Arm", "designs": "a Design"}[kind]
        got = type(name_or_path).__name__
        raise InputError(f"{noun}: expected {record}, a name or a path, got {got}")
    word = os.fspath(name_or_path)
    separators = {os.sep, os.altsep or os.sep, "/"}
    if isinstance(name_or_path, Path) or word.endswith(".toml") or separators & set(word):
        return Path(word)
    files = _files(kind)
    if word not in files:
        expected = f"a {noun} of the catalogue ({nearest(word, files)}) or a path ending in .toml"
        raise InputError(f"{noun}: expected {expected}, got {word!r}")
    return files[word]


def folders(kind: Kind) -> tuple[Path, ...]:
    """Return where the catalogue lies: in the installed package, then in the checkout."""
    checkout = _PACKAGE.parent
    places = [_PACKAGE / kind]
    if (checkout / "pyproject.toml").is_file():  # else the parent is a site folder, not ours
        places.append(checkout / kind)
    return tuple(folder for folder in places if folder.is_dir())


def _files(kind: Kind) -> Mapping[str, Path]:
    """Return the files by name; the first folder that has a name wins."""
    paths = [path for folder in reversed(folders(kind)) for path in folder.glob("*.toml")]
    return dict(sorted({path.stem: path for path in paths}.items()))


def _model_entry(name: str, path: Path) -> Entry:
    try:
        arm = load_model(path)
    except InputError as error:
        return Entry(name=name, path=path, error=str(error))
    return Entry(name=name, path=path, summary=arm.summary, source=arm.source)


def _design_entry(name: str, path: Path) -> Entry:
    try:
        design = load_design(path)
    except InputError as error:
        return Entry(name=name, path=path, error=str(error))
    return Entry(
        name=name,
        path=path,
        summary=design.summary,
        source=design.source,
        model=design.model,
        method=design.method,
    )
