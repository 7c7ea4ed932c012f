"""Time of a compiled function of a plant in a loop of C, free of what a call from Python costs."""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from pathlib import Path

import casadi as ca
import numpy as np

from flexctl.plant import find_compiler

LOOP = Path(__file__).with_name("loop.c")


def seconds_per_call(function: ca.Function, count: int = 20_000, level: str = "-O3") -> float:
    """Least mean processor time [s] of five batches of calls of a function of (q, v, x)."""
    if function.n_out() > 1:  # all results are wanted, so none may be left out
        inputs = function.sx_in()
        results = ca.vertcat(*[ca.vec(result) for result in function(*inputs)])
        function = ca.Function(function.name(), inputs, [results])
    rng = np.random.default_rng(1)
    sizes = [function.numel_in(i) if i < function.n_in() else 1 for i in range(3)]
    inputs = [rng.normal(size=n) * s for n, s in zip(sizes, (0.01, 0.1, 1.0), strict=True)]
    sizes[1] = max(sizes[1], sizes[0])  # the loop moves v beside q, also where v is not an input
    inputs[1] = np.resize(inputs[1], sizes[1])
    arrays = [*inputs, np.zeros(max(function.numel_out(0), sizes[0]))]
    pointers = [x.ctypes.data_as(ctypes.POINTER(ctypes.c_double)) for x in arrays]
    with tempfile.TemporaryDirectory() as folder:
        generator = ca.CodeGenerator("functions.c", {"with_header": False})
        generator.add(function)
        generator.generate(f"{folder}/")
        library = Path(folder) / "loop.so"
        sources = [str(Path(folder) / "functions.c"), str(LOOP)]
        options = [level, f"-DFUNCTION={function.name()}", "-fPIC", "-shared", "-o", str(library)]
        command = [find_compiler() or "cc", *options, *sources, "-lm"]
        subprocess.run(command, check=True)
        timed = ctypes.CDLL(str(library)).seconds_per_call
        timed.restype = ctypes.c_double
        return min(timed(*pointers, sizes[0], ctypes.c_long(count)) for _ in range(5))
