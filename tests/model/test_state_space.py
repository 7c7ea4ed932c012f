"""A law's matrices beside a design file: every format read alike, every fault in one line."""

import h5py
import numpy as np
import pytest
import scipy.io
import scipy.sparse

from flexctl.errors import InputError
from flexctl.model.controller_matrices import load_matrices
from flexctl.model.lookup import load_design

DESIGN = """
summary = "A controller from outside"
source = "own"
model = "single-link-hub"
method = "state-space"
[reference]
kind = "cycloid"
from = [0.0]
to = [1.0]
duration = 1.0
[state_space]
file = "controller.npz"
measures = ["joint1", "joint1_rate"]
sample_time = 0.01
"""
MATRICES = {
    "A": np.array([[0.9, 0.1], [0.0, 0.5]]),
    "B": np.array([[1.0, 2.0], [3.0, -4.0]]),
    "C": np.array([[5.0, 6.0]]),
    "D": np.array([[20.0, 7.0]]),
    "Ts": 0.01,
}
STATIC = {"D": np.array([[20.0, 7.0]])}
CSV = "A, 0.9, 0.1\nA,0,0.5\nB,1,2\nB,3,-4\nC,5,6\nD,20,7\nTs,0.01\n"


def write_csv(path, arrays):
    lines = []
    for name, M in arrays.items():
        lines += [",".join([name, *map(repr, map(float, row))]) for row in np.atleast_2d(M)]
    path.write_text("\n".join(lines) + "\n")


def write_hdf5(path, arrays):
    """As MATLAB writes version 7.3: HDF5 after 512 bytes, arrays transposed, empty ones by size."""
    with h5py.File(path, "w", userblock_size=512) as file:
        for name, M in arrays.items():
            values = np.atleast_2d(M)
            if values.size:
                file[name] = values.T
            else:
                file[name] = np.array(values.shape, dtype=np.uint64)
                file[name].attrs["MATLAB_empty"] = 1
    with path.open("r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM")


WRITERS = {
    "csv": (".csv", write_csv),
    "npz": (".npz", lambda path, arrays: np.savez(path, **arrays)),
    "mat v4": (".mat", lambda path, arrays: scipy.io.savemat(path, arrays, format="4")),
    "mat v5": (".mat", scipy.io.savemat),
    "mat v7": (".mat", lambda path, arrays: scipy.io.savemat(path, arrays, do_compression=True)),
    "mat v7.3": (".mat", write_hdf5),
}


@pytest.fixture
def design(tmp_path):
    """design(changes): a design file, text replaced, beside which its matrices lie."""

    def make(*changes):
        text = DESIGN
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        path = tmp_path / "trial.toml"
        path.write_text(text)
        return load_design(path)

    return make


@pytest.mark.parametrize("form", WRITERS)
@pytest.mark.parametrize("arrays", [MATRICES, STATIC], ids=["states", "gains only"])
def test_every_format_gives_the_same_matrices(design, tmp_path, form, arrays):
    ending, write = WRITERS[form]
    write(tmp_path / f"controller{ending}", arrays)

    found = load_matrices(design(("controller.npz", f"controller{ending}")), 1)

    none = {"A": np.zeros((0, 0)), "B": np.zeros((0, 2)), "C": np.zeros((1, 0))}
    for name in "ABCD":
        np.testing.assert_array_equal(getattr(found, name), (none | arrays)[name])


def test_matrices_may_stand_in_the_design_itself(design):
    inline = "A = [[0.9]]\nB = [[1.0, 2.0]]\nC = [[3.0]]\nD = [[20.0, 7.0]]"

    found = load_matrices(design(('file = "controller.npz"', inline)), 1)

    assert found.B.tolist() == [[1.0, 2.0]]


def test_empty_and_sparse_matrices_of_matlab_are_read(design, tmp_path):
    empty = {"A": np.zeros((0, 0)), "B": np.zeros((0, 2)), "C": np.zeros((1, 0))}
    scipy.io.savemat(
        tmp_path / "controller.mat", empty | {"D": scipy.sparse.csc_matrix([[20.0, 0]])}
    )

    found = load_matrices(design(("controller.npz", "controller.mat")), 1)

    assert found.D.tolist() == [[20.0, 0.0]]
    assert found.A.shape == (0, 0)


def test_a_spreadsheet_with_decimal_commas_is_read(design, tmp_path):
    (tmp_path / "controller.csv").write_text("D;20,5;7;\nTs;0,01;;\n")

    found = load_matrices(design(("controller.npz", "controller.csv")), 1)

    assert found.D.tolist() == [[20.5, 7.0]]


def test_the_sampling_period_of_the_law_is_that_of_the_loop(design):
    assert design().loop.sample_time == 0.01
    assert design(("[state_space]", "[loop]\nsample_time = 0.01\n[state_space]"))


def without(name):
    return {key: M for key, M in MATRICES.items() if key != name}


FAULTS = {
    "no D": (without("D"), r"controller.npz: D: expected a matrix, got nothing"),
    "no B": (
        without("B"),
        r"controller.npz: B: expected a matrix, as there are others, got nothing",
    ),
    "B turned": (
        MATRICES | {"B": np.ones((3, 2))},
        r"controller.npz: B: expected 2 x 2 \(states by entries of measures\), got 3 x 2",
    ),
    "D of two joints": (
        MATRICES | {"D": np.ones((2, 2))},
        r"controller.npz: D: expected 1 x 2 \(joints by entries of measures\), got 2 x 2",
    ),
    "A not square": (
        MATRICES | {"A": np.ones((2, 3))},
        r"controller.npz: A: expected 2 x 2 \(states by states\), got 2 x 3",
    ),
    "a vector": (
        MATRICES | {"D": np.ones(2)},
        r"controller.npz: D: expected 1 x 2 \(joints by entries of measures\), got 1 dimensions",
    ),
    "NaN": (
        MATRICES | {"C": np.array([[5.0, np.nan]])},
        r"controller.npz: C: expected finite numbers, got another at entry \(1, 2\)",
    ),
    "complex": (
        MATRICES | {"D": np.array([[1j, 0.0]])},
        r"controller.npz: D: expected real numbers, got entries of type complex128",
    ),
    "text": (MATRICES | {"D": np.array([["a", "b"]])}, r"controller.npz: D: expected real numbers"),
    "Ts of another rate": (
        MATRICES | {"Ts": 0.02},
        r"controller.npz: Ts: expected 0.01, as state_space.sample_time of the design, got 0.02",
    ),
    "continuous": (MATRICES | {"Ts": 0.0}, r"controller.npz: Ts: expected 0.01, .*, got 0"),
    "two Ts": (MATRICES | {"Ts": np.ones(2)}, r"controller.npz: Ts: expected one number, got"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_matrices_that_do_not_fit_are_refused_in_one_line(design, tmp_path, fault):
    arrays, message = FAULTS[fault]
    np.savez(tmp_path / "controller.npz", **arrays)

    with pytest.raises(InputError, match=message) as refused:
        load_matrices(design(), 1)

    assert "\n" not in str(refused.value)


FILES = {
    "missing": (".npz", None, r"controller.npz: expected a file, got nothing \(no such file\)"),
    "no mat": (".mat", b"no matrices" * 40, r"controller.mat: expected a .mat file, got: "),
    "empty mat": (".mat", b"", r"controller.mat: expected a .mat file, got: "),
    "no npz": (".npz", b"PK no zip", r"controller.npz: expected an NPZ file, got: "),
    "other ending": (
        ".py",
        b"",
        r"controller.py: expected a file ending in .csv, .npz, .mat, got .py",
    ),
    "unknown row": (
        ".csv",
        b"K,1,2",
        r"controller.csv: line 1: expected a row that begins with A, ",
    ),
    "no number": (".csv", b"D,20,x", r"controller.csv: line 1: expected numbers, got 20,x"),
    "a gap": (".csv", b"D,20,,7", r"controller.csv: line 1: expected numbers, got 20,,7"),
    "ragged": (
        ".csv",
        b"D,1,2\nD,1",
        r"controller.csv: line 2: expected 2 numbers, as in the first",
    ),
    "infinite": (".csv", b"D,1,inf", r"controller.csv: D: expected finite numbers, got another at"),
}


@pytest.mark.parametrize("kind", FILES)
def test_files_that_hold_no_matrices_are_refused_in_one_line(design, tmp_path, kind):
    ending, content, message = FILES[kind]
    if content is not None:
        (tmp_path / f"controller{ending}").write_bytes(content)

    with pytest.raises(InputError, match=message) as refused:
        load_matrices(design(("controller.npz", f"controller{ending}")), 1)

    assert "\n" not in str(refused.value)


def test_objects_of_python_are_never_read(design, tmp_path):
    np.savez(tmp_path / "controller.npz", D=np.array([[object()]]))

    with pytest.raises(InputError, match="expected an NPZ file, got: "):
        load_matrices(design(), 1)


def test_one_array_under_the_name_of_an_npz_file_is_refused(design, tmp_path):
    with (tmp_path / "controller.npz").open("wb") as file:
        np.save(file, np.eye(2))

    with pytest.raises(InputError, match="expected an NPZ file, got: one array without a name"):
        load_matrices(design(), 1)


def test_a_file_with_other_names_says_which(design, tmp_path):
    np.savez(tmp_path / "controller.npz", K=[[1.0]], L=[[2.0]])

    with pytest.raises(InputError, match=r"the names A, B, C, D \(and Ts\), got K, L$"):
        load_matrices(design(), 1)


def test_names_in_a_message_are_whole(design, tmp_path):
    names = [f"a_rather_long_name_{k}" for k in range(10)]
    np.savez(tmp_path / "controller.npz", **dict.fromkeys(names, 1.0))

    with pytest.raises(InputError, match=rf"got {', '.join(names[:8])} and 2 more$"):
        load_matrices(design(), 1)


def test_a_mat_file_that_has_matrices_is_no_object(design, tmp_path):
    scipy.io.savemat(tmp_path / "controller.mat", {"A": [[-1.0]], "B": [[1.0]], "C": [[1.0]]})

    with pytest.raises(InputError, match=r"controller.mat: D: expected a matrix, got nothing$"):
        load_matrices(design(("controller.npz", "controller.mat")), 1)


@pytest.mark.parametrize("content", [b"MATLAB 5.0 MAT-file trash", b"", b"\x00" * 200])
def test_bytes_that_are_no_mat_file_are_refused(design, tmp_path, content):
    (tmp_path / "controller.mat").write_bytes(content)

    with pytest.raises(InputError, match=r"controller.mat: expected"):
        load_matrices(design(("controller.npz", "controller.mat")), 1)


@pytest.mark.parametrize("row", ["D", "D,", "D, ,"])
def test_a_row_without_numbers_says_so(design, tmp_path, row):
    (tmp_path / "controller.csv").write_text(row)

    with pytest.raises(InputError, match=r"line 1: expected numbers, got nothing"):
        load_matrices(design(("controller.npz", "controller.csv")), 1)


def test_an_object_of_matlab_says_how_to_save_it(design, tmp_path):
    scipy.io.savemat(tmp_path / "controller.mat", {"sys": 1.0})

    with pytest.raises(InputError, match=r"ss object cannot be read: .*ssdata\(sys\)"):
        load_matrices(design(("controller.npz", "controller.mat")), 1)


TABLES = {
    "no table": (
        ("[state_space]", "[loop]"),
        "trial.toml: loop.file: expected a known key",
    ),
    "nothing": (('file = "controller.npz"\n', ""), "state_space.file: expected a value"),
    "both": (
        ("sample_time = 0.01", "sample_time = 0.01\nD = [[1.0, 2.0]]"),
        "state_space.D: expected no such key beside file",
    ),
    "twice": (
        ('"joint1_rate"', '"joint1"'),
        "state_space.measures: expected every signal once",
    ),
    "another period": (
        ("[state_space]", "[loop]\nsample_time = 0.02\n[state_space]"),
        "loop.sample_time: expected 0.01, as state_space.sample_time, or no such key, got 0.02",
    ),
    "gains": (
        ("[state_space]", "[gains]\nGp = 1.0\nGv = 1.0\n[state_space]"),
        "gains: expected no such table, as method is state-space",
    ),
    "instruments": (
        ("[state_space]", '[loop]\nmeasures = ["encoder"]\n[state_space]'),
        'loop.measures: expected "state", as method state-space has its own',
    ),
    "code": (
        ("sample_time = 0.01", 'sample_time = 0.01\nfunction = "os.system"'),
        "state_space.function: expected no such key .a CasADi function lives in memory only",
    ),
    "another method": (
        ('method = "state-space"', 'method = "feedforward"'),
        "state_space: expected no such table, as method is feedforward",
    ),
    "feedforward": (
        ("sample_time = 0.01", 'sample_time = 0.01\nfeedforward = "all"'),
        "state_space.feedforward: expected one of 'gravity', got",
    ),
    "motion": (
        ('kind = "cycloid"', 'kind = "motion"'),
        "reference.kind: expected one of 'cycloid'",
    ),
}


@pytest.mark.parametrize("fault", TABLES)
def test_a_table_that_makes_no_sense_is_refused(design, fault):
    change, message = TABLES[fault]

    with pytest.raises(InputError, match=message):
        design(change)
