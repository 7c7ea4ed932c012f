"""Functions of several arms at once, by vector instructions: C in which a number is a vector.

A function without branches, as CasADi's expanded ones are, is the same list of operations for every
arm, so that one instruction does it for LANES of them.
"""

from __future__ import annotations

import math
from pathlib import Path

import casadi as ca

from flexctl.loop import ClosedLoop
from flexctl.plant import cached_library, compiles, find_compiler, processor
from flexctl.simulation.right_hand_side import build, content

LANES = 4  # eight need more registers than AVX2 has and are slower
FLAGS = ("-march=x86-64-v3", "-Wno-psabi")
_NEEDED = {"avx2", "fma", "bmi2"}  # of the processor, by these flags

# Comparisons give masks of bits. fmin and fmax take the other number where one is NaN, as in C.
# The sines are those of the vector library of glibc, exact to 4 units of the last digit.
PRELUDE = f"""#include <math.h>
#include <stdlib.h>
#define LANES {LANES}
typedef double real __attribute__((vector_size(8 * LANES)));
typedef double given __attribute__((vector_size(8 * LANES), aligned(8), may_alias));
typedef long long mask __attribute__((vector_size(8 * LANES)));
typedef double four __attribute__((vector_size(32)));
typedef long long integer;
four _ZGVdN4v_sin(four);
four _ZGVdN4v_cos(four);

static inline real all(double x) {{ return x - (real){{0}}; }}  // of -0 too
static inline real truth(mask m) {{ return (real)(m & (mask)all(1)); }}
static inline real zero_unless(mask m, real x) {{ return (real)(m & (mask)x); }}
static inline real choose(mask m, real x, real y) {{
  return (real)((m & (mask)x) | (~m & (mask)y));
}}
static inline real lanes_fmin(real x, real y) {{
  return choose((mask)(x < y) | (mask)(y != y), x, y);
}}
static inline real lanes_fmax(real x, real y) {{
  return choose((mask)(x > y) | (mask)(y != y), x, y);
}}
static inline real lanes_fabs(real x) {{ return (real)((mask)x & ~(mask)all(-0.0)); }}
static inline real lanes_sign(real x) {{
  return choose((mask)(x == x), truth((mask)(x > 0)) - truth((mask)(x < 0)), x);
}}
#define BY_FOURS(name) static inline real lanes_##name(real x) {{ \\
  union {{ real all; four parts[LANES / 4]; }} u = {{x}}; \\
  for (int i = 0; i < LANES / 4; i++) u.parts[i] = _ZGVdN4v_##name(u.parts[i]); \\
  return u.all; }}
#define ONE_BY_ONE(name) static inline real lanes_##name(real x) {{ \\
  for (int i = 0; i < LANES; i++) x[i] = name(x[i]); \\
  return x; }}
#define PAIR_BY_PAIR(name) static inline real lanes_##name(real x, real y) {{ \\
  for (int i = 0; i < LANES; i++) x[i] = name(x[i], y[i]); \\
  return x; }}
BY_FOURS(sin) BY_FOURS(cos) ONE_BY_ONE(sqrt) ONE_BY_ONE(exp) ONE_BY_ONE(log) ONE_BY_ONE(tan)
ONE_BY_ONE(asin) ONE_BY_ONE(acos) ONE_BY_ONE(atan) ONE_BY_ONE(sinh) ONE_BY_ONE(cosh)
ONE_BY_ONE(tanh) ONE_BY_ONE(floor) ONE_BY_ONE(ceil)
PAIR_BY_PAIR(pow) PAIR_BY_PAIR(atan2) PAIR_BY_PAIR(fmod) PAIR_BY_PAIR(copysign)
"""

_C = {
    ca.OP_ASSIGN: "{}",
    ca.OP_ADD: "{} + {}",
    ca.OP_SUB: "{} - {}",
    ca.OP_MUL: "{} * {}",
    ca.OP_DIV: "{} / {}",
    ca.OP_NEG: "-{}",
    ca.OP_SQ: "{0} * {0}",
    ca.OP_TWICE: "{0} + {0}",
    ca.OP_INV: "1 / {}",
    ca.OP_LT: "truth((mask)({} < {}))",
    ca.OP_LE: "truth((mask)({} <= {}))",
    ca.OP_EQ: "truth((mask)({} == {}))",
    ca.OP_NE: "truth((mask)({} != {}))",
    ca.OP_NOT: "truth((mask)({} == 0))",
    ca.OP_AND: "truth((mask)({} != 0) & (mask)({} != 0))",
    ca.OP_OR: "truth((mask)({} != 0) | (mask)({} != 0))",
    ca.OP_IF_ELSE_ZERO: "zero_unless((mask)({} != 0), {})",
    ca.OP_CONSTPOW: "lanes_pow({}, {})",
} | {
    getattr(ca, f"OP_{name.upper()}"): f"lanes_{name}({{}}{', {}' * (count - 1)})"
    for count, names in (
        (1, "fabs sign sin cos sqrt exp log tan asin acos atan sinh cosh tanh floor ceil"),
        (2, "fmin fmax pow atan2 fmod copysign"),
    )
    for name in names.split()
}


def lane_source(function: ca.Function) -> str | None:
    """C of a function of LANES arms, to be called as CasADi's own C is, with vectors for numbers.

    None if it has operations that are not lane-wise. Its arguments and results must all be given.
    """
    try:
        f = function.expand()
    except RuntimeError:  # an external function, a root finder or another that has no expression
        return None
    lines = []
    for k in range(f.n_instructions()):
        op, to, of = f.instruction_id(k), f.instruction_output(k), f.instruction_input(k)
        if op == ca.OP_CONST:
            lines.append(f"a{to[0]} = all({_literal(f.instruction_constant(k))});")
        elif op == ca.OP_INPUT:
            lines.append(f"a{to[0]} = arg[{of[0]}][{of[1]}];")
        elif op == ca.OP_OUTPUT:
            lines.append(f"res[{to[0]}][{to[1]}] = a{of[0]};")
        elif op in _C:
            lines.append(f"a{to[0]} = {_C[op].format(*(f'a{i}' for i in of))};")
        else:
            return None
    variables = ", ".join(f"a{i}" for i in range(max(f.sz_w(), 1)))
    body = "\n  ".join(lines)
    name = f.name()
    return f"""{PRELUDE}
int {name}(const given **arg, given **res, integer *iw, given *w, int mem) {{
  real {variables};
  (void)iw, (void)w, (void)mem;
  {body}
  return 0;
}}
void {name}_work(integer *arg, integer *res, integer *iw, integer *w) {{
  *arg = {f.n_in()}, *res = {f.n_out()}, *iw = 0, *w = 0;
}}
integer {name}_n_in(void) {{ return {f.n_in()}; }}
"""


def _literal(value: float) -> str:
    return repr(value) if math.isfinite(value) else f'strtod("{value}", NULL)'


def have_lanes() -> bool:
    """Whether processor, compiler and its library of mathematics have vectors of LANES numbers."""
    return processor() >= _NEEDED and compiles(PRELUDE + _TRIAL, FLAGS, find_compiler())


# exported, so that the sines of the vector library must be found
_TRIAL = "void trial(given *x) { *x = lanes_sin(*x) + lanes_cos(*x); }\n"


def lane_library(loop: ClosedLoop, name: str) -> Path | None:
    """Shared library of a function of LANES arms; None if it cannot be had."""
    key = f"run {name} {content(loop, name)}"
    if key in _not_lane_wise:
        return None

    def generate(folder: Path) -> Path:
        text = lane_source(build(loop, name))
        if text is None:
            raise _NotLaneWiseError
        source = folder / "lanes.c"
        source.write_text(text)
        return source

    try:
        return cached_library(f"{LANES} lanes {PRELUDE} {key}", generate, FLAGS)
    except _NotLaneWiseError:
        _not_lane_wise.add(key)
        return None


class _NotLaneWiseError(Exception):
    """A function has operations that are not lane-wise."""


_not_lane_wise: set[str] = set()
