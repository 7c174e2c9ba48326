"""Choice of the device for a batch, with a simulated clock and GPU."""

import pickle
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import raises

import chasles
from chasles import backends
from chasles.api import compiling
from chasles.functions import devices
from chasles.functions.compiled import Compiled
from chasles.functions.devices import Report, Timing, turns
from chasles.robots import planar

DOOR = 3000
"""Number of states above which the simulated GPU is faster."""


def test_between_two_sizes_times_are_powers() -> None:
    """Crossings of times that are powers of the batch size are exact, in both directions."""
    timings = [Timing(n, 1e-8 * n, 1e-6 * n**0.5) for n in (1, 100, 100_000)]
    (turn,) = turns(timings)
    assert turn in (10_000, 10_001)
    back = [Timing(n, gpu, cpu) for n, cpu, gpu in timings]
    first, again = turns(back)
    assert first == 1
    assert again in (10_000, 10_001)


@pytest.mark.parametrize(
    ("faster", "expected"),
    [
        ("cccc", []),
        ("gggg", [(1, 1)]),
        ("cggg", [(2, 64)]),
        ("ccgg", [(65, 4096)]),
        ("ccgc", [(65, 4096), (4097, 10**6)]),
        ("gccg", [(1, 1), (2, 64), (4097, 10**6)]),
        ("=ggg", [(1, 64)]),
        ("====", []),
    ],
)
def test_each_turn_is_between_the_sizes_around_it(
    faster: str, expected: list[tuple[int, int]]
) -> None:
    times = {"c": (1.0, 2.0), "g": (2.0, 1.0), "=": (1.0, 1.0)}
    sizes = (1, 64, 4096, 10**6)
    timings = [Timing(n, *times[side]) for n, side in zip(sizes, faster, strict=True)]
    found = turns(timings)
    assert len(found) == len(expected)
    assert all(least <= turn <= most for turn, (least, most) in zip(found, expected, strict=True))
    report = Report("f", "a CPU", "a GPU", "", tuple(timings))
    for size, side in zip(sizes, faster, strict=True):
        assert side == "=" or report.choice(size) == {"c": "cpu", "g": "cuda"}[side]
    assert report.choice(10**9) == report.choice(10**6)
    assert report.choice(0) == "cpu"


def test_the_verdict_names_ranges() -> None:
    timings = (Timing(1, 1.0, 2.0), Timing(100, 2.0, 1.0), Timing(10**4, 1.0, 2.0))
    report = Report("f", "a CPU", "a GPU", "", timings)
    assert report.verdict == "on the GPU from 10 states to 999"
    longer = Report("f", "a CPU", "a GPU", "", (*timings, Timing(10**6, 2.0, 1.0)))
    assert longer.verdict == "on the GPU from 10 states to 999, and from 100,000 states on"


class Machines:
    """Simulated clock and GPU. The GPU computes on the CPU and counts its runs."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        self.name, self.timed, self.runs = "a GPU", 0, 0
        monkeypatch.setenv("CHASLES_CACHE", str(folder))
        folder.chmod(0o700)
        monkeypatch.setattr(backends, "described", lambda b: self.name if b == "cuda" else "a CPU")
        monkeypatch.setattr(devices, "least", self.seconds)

        def from_host(function: Compiled, *arrays: Any, out: Any = None) -> Any:
            self.runs += 1
            return function(*arrays, out=out)

        monkeypatch.setattr(Compiled, "from_host", from_host)

    def seconds(self, run: partial[Any]) -> float:
        self.timed += 1
        count = len(run.args[0])
        return 1e-4 if run.func.__name__ == "from_host" else 1e-4 * count / DOOR


@pytest.fixture
def machines(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Machines:
    return Machines(monkeypatch, tmp_path)


def arrays(count: int, dtype: str = "float64") -> list[np.ndarray]:
    return list(np.random.default_rng(3).normal(size=(3, count, 2)).astype(dtype))


def test_each_batch_runs_where_it_is_faster(machines: Machines) -> None:
    inverse = chasles.compile(planar(2), "inverse_dynamics", device="auto")
    assert "not measured yet" in repr(inverse)
    for count, runs in ((1, 0), (DOOR - 10, 0), (DOOR + 10, 1), (10 * DOOR, 2)):
        given = arrays(count)
        assert np.array_equal(inverse(*given), inverse.function(*given))
        assert machines.runs == runs
        assert inverse.choice(count) == ("cuda" if count > DOOR else "cpu")
    out = np.empty((2, DOOR, 2))
    wide = [a.reshape(2, DOOR, 2) for a in arrays(2 * DOOR)]
    assert inverse(*wide, out=out) is out
    assert machines.runs == 3
    assert np.array_equal(out, inverse.function(*wide))
    assert inverse([0.0, 0.0], [0.0, 0.0], wide[2]).shape == (2, DOOR, 2)
    assert machines.runs == 4


def test_either_kind_of_number_is_measured(machines: Machines) -> None:
    inverse = chasles.compile(planar(2), "inverse_dynamics", device="auto")
    assert inverse(*arrays(2 * DOOR, "float32")).dtype == np.float32
    timed = machines.timed
    assert timed == 2 * len(devices.COUNTS)
    assert inverse(*arrays(5)).dtype == np.float64
    assert machines.timed == 2 * timed
    assert "float32 on the GPU from 3,0" in repr(inverse)
    single = chasles.compile(planar(2), "inverse_dynamics", device="auto", dtype="float32")
    assert single(*arrays(5)).dtype == np.float32
    assert single.report() == inverse.report("float32")


def test_times_are_kept_for_this_gpu(machines: Machines) -> None:
    first = chasles.compile(planar(2), "inverse_dynamics", device="auto").report()
    timed = machines.timed
    again = pickle.loads(
        pickle.dumps(chasles.compile(planar(2), "inverse_dynamics", device="auto"))
    )
    assert again.report() == first
    assert machines.timed == timed
    chasles.compile(planar(3), "inverse_dynamics", device="auto").report()
    assert machines.timed == 2 * timed
    machines.name = "another GPU"
    other = chasles.compile(planar(2), "inverse_dynamics", device="auto").report()
    assert machines.timed == 3 * timed
    assert other.gpu == "another GPU"


def test_large_results_are_timed_at_small_sizes(
    machines: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(devices, "MOST_BYTES", 256 * 8 * (2 + 2 * 2))
    report = chasles.compile(planar(2), "mass_matrix", device="auto").report()
    assert [timing.states for timing in report.timings] == [1, 256]
    assert report.turns == ()
    assert "always on the CPU" in str(report)


def test_the_report_is_readable(machines: Machines) -> None:
    text = str(chasles.compile(planar(2), "inverse_dynamics", device="auto").report())
    first, cpu, gpu, head, *rows = text.splitlines()
    assert first.startswith("inverse_dynamics of 'planar', float64: on the GPU from 3,0")
    assert (cpu, gpu.split(",")[0]) == ("CPU: a CPU", "GPU: a GPU")
    assert head.split() == ["states", "CPU", "GPU"]
    assert rows[-1].split() == ["1,048,576", "34,952.5", "us", "100.0", "us"]


def test_without_a_gpu_it_is_the_cpu_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def described(backend: str) -> str:
        if backend == "cuda":
            raise ModuleNotFoundError("backend='cuda' needs CuPy")
        return "a CPU"

    monkeypatch.setattr(backends, "described", described)
    inverse = chasles.compile(planar(2), "inverse_dynamics", device="auto")
    given = arrays(100)
    assert np.array_equal(inverse(*given), inverse.function(*given))
    assert inverse.choice(10**9) == inverse.choice(10**9, "float32") == "cpu"
    assert "GPU: none (backend='cuda' needs CuPy)" in str(inverse.report())
    assert "because no GPU is available" in repr(inverse)


def test_bad_arrays_are_refused_as_by_the_cpu(machines: Machines) -> None:
    inverse = chasles.compile(planar(2), "inverse_dynamics", device="auto")
    q, qd, qdd = arrays(2 * DOOR)
    with raises("E-CALL-009", "(..., 2)"):
        inverse(q, qd[:, :1], qdd)
    with raises("E-CALL-005"):
        inverse(q, qd[:7], qdd)
    with raises("E-CALL-035"):
        inverse(q, qd)
    with raises("E-GPU-020", "'float64'", "'float32'"):
        inverse.report("float16")
    wrong: list[Any] = [-1, True, 1.5, float("nan"), 2**64 + 1, "x", None]
    for count in wrong:
        with raises("E-CALL-003"):
            inverse.choice(count)
    assert inverse.choice(np.int64(2 * DOOR)) == "cuda"


def test_a_number_of_threads(machines: Machines) -> None:
    """Threads apply to batches on the CPU, and are checked on both devices."""
    inverse = chasles.compile(planar(2), "inverse_dynamics", device="auto")
    for count in (7, 2 * DOOR):
        given = arrays(count)
        expected, out = inverse.function(*given), np.empty((count, 2))
        assert np.array_equal(inverse(*given, threads=1), expected)
        assert inverse(*given, out=out, threads=2) is out
        assert np.array_equal(out, expected)
        with raises("E-CALL-003"):
            inverse(*given, threads=-1)


def test_a_gpu_function_without_cupy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    monkeypatch.delitem(sys.modules, "chasles.functions.libraries.cupy", raising=False)
    with raises("E-GPU-026", "CuPy", kind=ModuleNotFoundError):
        chasles.compile(planar(2), "mass_matrix", device="cuda")([0.0, 0.0])


def test_device_and_backend() -> None:
    assert compiling._backend(None, None) == compiling._backend("cpu", None) == "llvm"
    assert compiling._backend("cuda", None) == compiling._backend(None, "cuda") == "cuda"
    assert compiling._backend("cpu", "numpy") == "numpy"
    robot: Any = planar(2)
    assert chasles.compile(robot, "mass_matrix", device="cpu").recipe.backend == "llvm"
    with raises("E-ROBOT-003", "'gpu'"):
        chasles.compile(robot, "mass_matrix", device="gpu")  # type: ignore[call-overload]
    for device, backend in (("cpu", "cuda"), ("cuda", "llvm"), ("auto", "cuda")):
        with raises("E-ROBOT-004", device, backend):
            chasles.compile(robot, "mass_matrix", device=device, backend=backend)
    with raises("E-CALL-002", "'pascal'"):
        chasles.compile(robot, "mass_matrix", backend="pascal")


def test_every_backend_has_a_device() -> None:
    listed = {name for names in backends.devices().values() for name in names}
    assert listed == set(backends.BACKENDS)


def test_tensors_are_computed_where_they_are(machines: Machines) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: tensors are not tested")
    inverse = chasles.compile(planar(2), "inverse_dynamics", device="auto")
    given = arrays(2 * DOOR)
    found = inverse(*map(torch.from_numpy, given))
    assert isinstance(found, torch.Tensor)
    assert np.array_equal(found.numpy(), inverse.function(*given))
    assert machines.timed == machines.runs == 0
