"""Slips of the pen: every small change of a source file that a test ought to notice.

A slip replaces one node of the syntax tree: a sign, a comparison, min for max, a number, an index,
a unit, a dropped term, a refusal that is not raised, the order of two entries. Nothing is written
to disk; `Slip.apply` changes a tree in memory.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

ARITHMETIC = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult}
ARITHMETIC |= {ast.Pow: ast.Mult, ast.FloorDiv: ast.Div, ast.Mod: ast.Mult}
COMPARISONS = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
_PAIRS = [
    ("min", "max"), ("argmin", "argmax"), ("minimum", "maximum"), ("fmin", "fmax"),
    ("any", "all"), ("ceil", "floor"), ("sin", "cos"), ("real", "imag"), ("zeros", "ones"),
    ("Gt", "Ge"), ("Lt", "Le"), ("Positive", "NonNegative"), ("lower", "upper"), ("low", "high"),
    ("start", "final"), ("alpha_lower", "alpha_upper"), ("tip_error_max", "tip_error_rms"),
    ("gain_up_db", "gain_down_db"), ("up", "down"), ("left", "right"), ("first", "last"),
    ("hstack", "vstack"), ("path_t", "path_abscissa"), ("above", "below"),
]  # fmt: skip
SWAPS = {a: b for pair in _PAIRS for a, b in (pair, pair[::-1])}
ABSOLUTE = {"abs", "absolute", "fabs"}
UNITS = {
    "mm": "m",
    "deg": "rad",
    "dB": "",
    "ms": "s",
    "Hz": "rad/s",
    "1/s": "s",
    "%": "",
    "s": "ms",
}
_UNIT = re.compile(r"(?<![\w/'])(mm|deg|dB|ms|Hz|1/s|s)(?![\w/'(])|%")
_KEY = re.compile(r"[a-z_][\w.-]*")
_WORDS = {"label", "meaning", "name", "missing"}  # text for people: wording is free
_SYMBOLS = {"sym", "Function"}  # their names are for people too
_UNMARKED = ("dataclass", "field", "cached_property", "classmethod", "property")


@dataclass(frozen=True, kw_only=True, eq=False)
class Slip:
    """One slip: `node` of a tree becomes `new`; `label` names it whatever lines move."""

    node: ast.AST
    new: ast.AST
    line: int
    label: str

    def apply(self, tree: ast.Module) -> ast.Module:
        """Put the slip into the tree it was found in, in place."""
        for parent in ast.walk(tree):
            for field, value in ast.iter_fields(parent):
                if value is self.node:
                    setattr(parent, field, self.new)
                elif isinstance(value, list):
                    value[:] = [self.new if entry is self.node else entry for entry in value]
        return ast.fix_missing_locations(tree)


def find_slips(tree: ast.Module) -> list[Slip]:
    """All slips of a module in the order of its lines; alike ones are numbered."""
    found: list[tuple[str, ast.AST, ast.AST]] = []
    for place, node, parent in _visited(tree):
        found += [(place, node, new) for new in _replacements(node, parent)]
    found.sort(key=lambda entry: entry[1].lineno)
    seen, slips = Counter(), []
    for place, node, new in found:
        label = f"{place}: {_short(node)} -> {_short(new)}"
        seen[label] += 1
        number = f" #{seen[label]}" if seen[label] > 1 else ""
        slips.append(Slip(node=node, new=new, line=node.lineno, label=label + number))
    return slips


def _short(node: ast.AST) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 90 else text[:87] + "..."


def _visited(tree: ast.Module) -> Iterator[tuple[str, ast.AST, ast.AST]]:
    """(place, node, parent) of everything that runs: no annotations, decorators, docstrings."""
    late = any(isinstance(n, ast.ImportFrom) and n.module == "__future__" for n in tree.body)

    def visit(node: ast.AST, parent: ast.AST, place: str) -> Iterator[tuple[str, ast.AST, ast.AST]]:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            place = f"{place}.{node.name}".lstrip(".")
        if hasattr(node, "lineno"):
            yield place or "module", node, parent
        for field, value in ast.iter_fields(node):
            if field in ("decorator_list", "returns", "format_spec", "bases", "type_params"):
                continue
            if field == "annotation" and (late or isinstance(node, ast.arg)):
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST) and not _silent(child):
                    yield from visit(child, node, place)

    yield from visit(tree, tree, "")


def _silent(node: ast.AST) -> bool:
    """Whether nothing of this runs, or nothing that tests should pin: imports, docstrings."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return True
    if isinstance(node, ast.keyword) and node.arg == "strict":  # zip of what has one length
        return True
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id in ("__all__", "__slots__")
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return node.func.id in _UNMARKED
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
        return node.value.id in ("Literal", "Callable", "Mapping", "Sequence")
    return isinstance(node, ast.Import | ast.ImportFrom | ast.Assert)


def _replacements(node: ast.AST, parent: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.BinOp():
            yield from _of_binary(node)
        case ast.Compare():
            yield from _of_comparison(node)
        case ast.BoolOp(op=op, values=values):
            yield ast.BoolOp(op=ast.Or() if isinstance(op, ast.And) else ast.And(), values=values)
        case ast.UnaryOp(op=ast.Not()) if isinstance(parent, ast.If | ast.While | ast.IfExp):
            return  # the parent's own slip says the same
        case ast.UnaryOp(op=ast.USub() | ast.Not(), operand=operand):
            yield operand
        case ast.IfExp(test=test, body=body, orelse=orelse):
            yield ast.IfExp(test=test, body=orelse, orelse=body)
        case ast.If(test=test) | ast.While(test=test) if not isinstance(test, ast.Compare):
            yield _with(node, test=_negated(test))
        case ast.Constant():
            yield from _of_constant(node, parent)
        case ast.Call():
            yield from _of_call(node)
        case ast.Name(id=name, ctx=ast.Load()) if name in SWAPS:
            yield ast.Name(id=SWAPS[name], ctx=ast.Load())
        case ast.Attribute(value=value, attr=name, ctx=ast.Load()) if name in SWAPS:
            yield ast.Attribute(value=value, attr=SWAPS[name], ctx=ast.Load())
        case ast.Tuple(elts=parts, ctx=ast.Load()) | ast.List(elts=parts, ctx=ast.Load()):
            yield from _of_display(node, parts, parent)
        case ast.AugAssign(op=op) if type(op) in ARITHMETIC:
            yield ast.Pass()
            yield _with(node, op=ARITHMETIC[type(op)]())
        case ast.AugAssign() | ast.Raise():
            yield ast.Pass()
        case ast.Expr(value=ast.Call()):
            yield ast.Pass()
        case ast.Break() | ast.Continue():
            yield ast.Continue() if isinstance(node, ast.Break) else ast.Break()
        case ast.comprehension(ifs=[_, *_]):
            yield _with(node, ifs=[])


def _with(node: ast.AST, **changes: object) -> ast.AST:
    fields = dict(ast.iter_fields(node)) | changes
    return ast.copy_location(type(node)(**fields), node)


def _negated(test: ast.expr) -> ast.expr:
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return test.operand
    return ast.UnaryOp(op=ast.Not(), operand=test)


def _of_binary(node: ast.BinOp) -> Iterator[ast.AST]:
    if isinstance(node.left, ast.Constant | ast.JoinedStr) and not _is_number(node.left):
        return
    if isinstance(node.right, ast.Constant) and node.right.value is None:
        return  # a type
    if type(node.op) in ARITHMETIC:
        yield _with(node, op=ARITHMETIC[type(node.op)]())
    if isinstance(node.op, ast.Add | ast.Sub):
        yield node.left
        yield node.right
    if isinstance(node.op, ast.BitOr | ast.BitAnd):
        yield _with(node, op=ast.BitAnd() if isinstance(node.op, ast.BitOr) else ast.BitOr())


def _of_comparison(node: ast.Compare) -> Iterator[ast.AST]:
    for k, op in enumerate(node.ops):
        for other in COMPARISONS[type(op)]:
            yield _with(node, ops=[*node.ops[:k], other(), *node.ops[k + 1 :]])


def _of_constant(node: ast.Constant, parent: ast.AST) -> Iterator[ast.AST]:
    value = node.value
    if isinstance(value, bool):
        yield ast.Constant(value=not value)
    elif isinstance(value, int):
        yield ast.Constant(value=value + 1)
        if value > 0:
            yield ast.Constant(value=value - 1)
    elif isinstance(value, float):
        yield ast.Constant(value=value + 1 if abs(value) < 100 else 2 * value)
    elif isinstance(value, str):
        words = isinstance(parent, ast.keyword) and parent.arg in _WORDS
        symbol = isinstance(parent, ast.Call) and getattr(parent.func, "attr", "") in _SYMBOLS
        if not words and not symbol:
            yield from _of_text(value)


def _of_text(text: str) -> Iterator[ast.AST]:
    """A wrong unit, or another key where the text is one."""
    unit = _UNIT.search(text)
    if unit:
        wrong = UNITS[unit[0]]
        yield ast.Constant(value=text[: unit.start()] + wrong + text[unit.end() :])
    elif text in SWAPS:
        yield ast.Constant(value=SWAPS[text])
    elif _KEY.fullmatch(text):
        yield ast.Constant(value=text + "_")


def _of_call(node: ast.Call) -> Iterator[ast.AST]:
    name = getattr(node.func, "id", getattr(node.func, "attr", ""))
    if name in ABSOLUTE and len(node.args) == 1:
        yield node.args[0]
    if name in ("min", "max") and len(node.args) == 2:
        yield from node.args


def _of_display(
    node: ast.Tuple | ast.List, parts: list[ast.expr], parent: ast.AST
) -> Iterator[ast.AST]:
    """Neighbours swapped; or one entry missing where entries are lists themselves."""
    unpacked = isinstance(parent, ast.Subscript | ast.Assign | ast.For | ast.AnnAssign)
    unpacked = unpacked or isinstance(parent, ast.ExceptHandler)
    if unpacked and isinstance(node, ast.Tuple):
        return
    for k in range(len(parts) - 1):
        if ast.dump(parts[k]) != ast.dump(parts[k + 1]):
            yield _with(node, elts=[*parts[:k], parts[k + 1], parts[k], *parts[k + 2 :]])
    for k, part in enumerate(parts):
        if isinstance(part, ast.Starred) and len(parts) > 1:
            yield _with(node, elts=[*parts[:k], *parts[k + 1 :]])


def _is_number(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float)
