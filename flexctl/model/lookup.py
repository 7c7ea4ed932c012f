"""Find arms and designs by name or path, and list the catalogue."""

import difflib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

from flexctl.errors import InputError
from flexctl.model.arm import Arm
from flexctl.model.design import Design
from flexctl.model.files import read_toml
from flexctl.model.one_per_joint import has_list_of_one, list_of_one_faults
from flexctl.model.refusals import build_file, nearest, refuse
from flexctl.model.samples import reference_samples
from flexctl.records import plain

Kind = Literal["models", "designs"]
_KINDS: dict[type, Kind] = {Arm: "models", Design: "designs"}
F = TypeVar("F", bound=Arm | Design)
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
    return _load(Arm, name_or_path)


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
    return _load(Design, name_or_path)


def list_models() -> tuple[Entry, ...]:
    """Return an entry for every arm of the catalogue, by name."""
    return tuple(_entry(Arm, name, path) for name, path in _files("models").items())


def list_designs() -> tuple[Entry, ...]:
    """Return an entry for every design of the catalogue, by name."""
    return tuple(_entry(Design, name, path) for name, path in _files("designs").items())


def _load(record: type[F], name_or_path: F | str | os.PathLike[str]) -> F:
    if isinstance(name_or_path, record):
        return name_or_path
    path = find(_KINDS[record], name_or_path)
    table = read_toml(path)
    file = build_file(record, table, path.stem, path)
    if isinstance(file, Design) and has_list_of_one(table):
        for key, expected, got in list_of_one_faults(table, _joints(file)):
            raise refuse(file.label, key, expected=expected, got=got)
    return file


def _joints(design: Design) -> int:
    """Return the number of joints that the reference of a design moves."""
    if design.reference_file is not None:
        return len(reference_samples(design).joint)
    return len(design.reference.from_ or ())


def _entry(record: type[F], name: str, path: Path) -> Entry:
    try:
        file = _load(record, path)
    except InputError as error:
        return Entry(name=name, path=path, error=str(error))
    own = {"model": file.model, "method": file.method} if isinstance(file, Design) else {}
    return Entry(name=name, path=path, summary=file.summary, source=file.source, **own)


def find(kind: Kind, name_or_path: object) -> Path:
    """Return the path of a name, or the path itself: it has a separator or ends in .toml."""
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
        near = difflib.get_close_matches(word, [path.name for path in Path().glob("*.toml")], n=1)
        hint = f"nearest file here: {near[0]}" if near else nearest(word, files)
        expected = f"a {noun} of the catalogue ({hint}) or a path ending in .toml"
        raise InputError(f"{noun}: expected {expected}, got {word!r}")
    return files[word]


def folders(kind: Kind) -> tuple[Path, ...]:
    """Return where the catalogue lies: in the installed package, then in the checkout."""
    checkout = (_PACKAGE.parent / "pyproject.toml").is_file()  # else it is a site folder, not ours
    places = (_PACKAGE, _PACKAGE.parent) if checkout else (_PACKAGE,)
    return tuple(place / kind for place in places if (place / kind).is_dir())


def _files(kind: Kind) -> Mapping[str, Path]:
    """Return the files by name; the first folder that has a name wins."""
    paths = [path for folder in reversed(folders(kind)) for path in folder.glob("*.toml")]
    return dict(sorted({path.stem: path for path in paths}.items()))


def model_text(arm: Arm, comment: str = "") -> str:
    """Write an arm as the text of a model file, without the figures that its own file expects.

    `comment` stands above it.
    """
    import tomli_w  # what only reads files need not load it

    table = {key: value for key, value in arm.table().items() if key != "expect"}
    return "".join(f"# {line}\n" for line in comment.splitlines()) + tomli_w.dumps(plain(table))
