"""Dask arrays: results are bitwise those of NumPy, for all chunks and on a cluster."""

import os
import pickle
import signal
from typing import Any

import numpy as np
import pytest
from support import raises

import chasles
from chasles.tasks import Portable

lazy = pytest.importorskip("dask.array")

ROBOT = chasles.robots.puma560()
RNG = np.random.default_rng(0)
Q, QD, QDD = RNG.normal(size=(3, 5, 40, 6))
CHUNKS = (2, (13, 20, 7), 4)


def chunked(*arrays: np.ndarray) -> list[Any]:
    return [lazy.from_array(x, chunks=CHUNKS[-x.ndim :]) for x in arrays]


@pytest.mark.parametrize(
    ("function", "arrays"),
    [
        ("inverse_dynamics", (Q, QD, QDD)),
        ("forward_dynamics", (Q, QD, QDD)),
        ("mass_matrix", (Q,)),
        ("kinetic_energy", (Q, QD)),
        ("regressor", (Q[0], QD[0], QDD[0])),
        ("linearize", (Q, QD, QDD)),
    ],
)
def test_chunks_have_the_bits_of_one_call(function: str, arrays: tuple[np.ndarray, ...]) -> None:
    """Chunks give bitwise identical results, even if the axis of a state is split."""
    call = getattr(ROBOT, function)
    found, expected = call(*chunked(*arrays)), call(*arrays)
    pairs = (
        [(found, expected)]
        if isinstance(expected, np.ndarray)
        else zip(found, expected, strict=True)
    )
    for one, other in pairs:
        assert isinstance(one, lazy.Array)
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        assert one.npartitions > 1
        assert isinstance(one._meta, np.ndarray)
        assert np.array_equal(one.compute(scheduler="sync"), other)


def test_options_types_and_broadcasting() -> None:
    q, qd, qdd = chunked(Q, QD, QDD)
    pose = ROBOT.forward_kinematics(q, frame="tool")
    assert np.array_equal(pose.compute(), ROBOT.forward_kinematics(Q, frame="tool"))
    fixed = ROBOT.inverse_dynamics(q, QD[0], np.zeros(6))
    assert np.array_equal(fixed.compute(), ROBOT.inverse_dynamics(Q, QD[0], np.zeros(6)))
    small = [x.astype("f4") for x in (q, qd, qdd)]
    tau = ROBOT.inverse_dynamics(*small)
    assert tau.dtype == tau.compute().dtype == np.float32
    assert ROBOT.inverse_dynamics(small[0], qd, qdd).dtype == np.float64
    whole = ROBOT.mass_matrix(lazy.ones((3, 6), dtype=int))
    assert np.array_equal(whole.compute(), ROBOT.mass_matrix(np.ones((3, 6))))
    assert np.array_equal(ROBOT.mass_matrix(q[0, 0]).compute(), ROBOT.mass_matrix(Q[0, 0]))
    assert ROBOT.mass_matrix(q).name == ROBOT.mass_matrix(q).name


def test_rows_of_unknown_number() -> None:
    """The number of rows may be unknown, as for columns of a data frame."""
    q = lazy.from_array(Q[0], chunks=(10, 6))
    some = q[q[:, 0] > 0.0]
    assert np.isnan(some.shape[0])
    assert np.array_equal(
        ROBOT.mass_matrix(some).compute(), ROBOT.mass_matrix(Q[0][Q[0][:, 0] > 0.0])
    )


def test_refusals() -> None:
    q, *_ = chunked(Q, QD, QDD)
    with raises("E-CALL-119", "out="):
        ROBOT.mass_matrix(q, out=lazy.zeros((5, 40, 6, 6)))
    with raises("E-CALL-009", "(..., 6)"):
        ROBOT.mass_matrix(q[..., :5])
    wrong: list[Any] = ["x", 0, -1, 2**64 + 1]
    for threads in wrong:
        with raises("E-CALL-003", "threads"):
            ROBOT.mass_matrix(q, threads=threads)


def test_a_task_holds_a_recipe_and_is_made_once() -> None:
    chunk = Portable(chasles.compile(ROBOT, "mass_matrix"))
    data = pickle.dumps(chunk)
    assert b"ELF" not in data
    one, other = pickle.loads(data), pickle.loads(data)
    assert one is other
    assert np.array_equal(one(Q), ROBOT.mass_matrix(Q))


# Data frames -----------------------------------------------------------------------------------

STATES = [x.reshape(-1, 6) for x in (Q, QD, QDD)]


def frames(**more: Any) -> tuple[Any, list[Any]]:
    """Return a data frame of all states, and its parts q, qd and qdd."""
    table = pytest.importorskip("dask.dataframe")
    pandas = pytest.importorskip("pandas")
    names = [f"{x}{k}" for x in ("q", "qd", "qdd") for k in range(6)]
    whole = pandas.DataFrame(np.concatenate(STATES, axis=1), columns=names)
    whole.index = pandas.Index(10.0 * np.arange(len(whole)), name="time")
    made = table.from_pandas(whole.astype(more), npartitions=7)
    return made, [made[names[k : k + 6]] for k in (0, 6, 12)]


@pytest.mark.parametrize(
    ("function", "count", "last"),
    [
        ("inverse_dynamics", 3, "inverse_dynamics.5"),
        ("mass_matrix", 1, "mass_matrix.5.5"),
        ("kinetic_energy", 2, "kinetic_energy"),
        ("regressor", 3, "regressor.5.59"),
    ],
)
def test_partitions_have_the_bits_of_one_call(function: str, count: int, last: str) -> None:
    made, parts = frames()
    found = getattr(ROBOT, function)(*parts[:count])
    expected = getattr(ROBOT, function)(*STATES[:count])
    assert found.npartitions == 7
    assert found.divisions == made.divisions
    assert found.columns[-1] == last
    assert {str(t) for t in found.dtypes} == {"float64"}
    table = found.compute(scheduler="sync")
    assert table.index.equals(made.compute(scheduler="sync").index)
    assert table.dtypes.equals(found.dtypes)
    assert np.array_equal(table.to_numpy(), expected.reshape(len(table), -1))
    assert list(found._meta.columns) == list(table.columns)
    assert found._meta.index.name == "time"


def test_frames_with_several_results_arrays_and_single_precision() -> None:
    made, parts = frames()
    A, B = ROBOT.linearize(*parts)
    expected = ROBOT.linearize(*STATES)
    assert (A.columns[-1], B.columns[0]) == ("linearize.result0.11.11", "linearize.result1.0.0")
    assert np.array_equal(B.compute().to_numpy(), expected[1].reshape(200, -1))
    still = ROBOT.inverse_dynamics(parts[0], np.zeros(6), np.zeros(6))
    assert np.array_equal(
        still.compute().to_numpy(), ROBOT.inverse_dynamics(STATES[0], np.zeros(6), np.zeros(6))
    )
    _, single = frames(**{f"q{k}": "float32" for k in range(6)})
    M = ROBOT.mass_matrix(single[0])
    assert {str(t) for t in M.dtypes} == {str(t) for t in M.compute().dtypes} == {"float32"}
    with raises("E-CALL-009", "(..., 6)"):
        ROBOT.mass_matrix(made[["q0", "q1"]])
    with raises("E-CALL-119", "out="):
        ROBOT.mass_matrix(parts[0], out=parts[0])
    with raises("E-CALL-421", "partitions"):
        ROBOT.kinetic_energy(parts[0], parts[1].repartition(npartitions=3))
    *inner, last = parts[1].divisions
    moved = parts[1].repartition(divisions=[inner[0], *(k + 1 for k in inner[1:]), last])
    assert moved.npartitions == parts[0].npartitions
    with raises("E-CALL-421", "partitions"):
        ROBOT.kinetic_energy(parts[0], moved)


def test_a_cluster_that_loses_a_worker() -> None:
    """Results are correct if one of several worker processes is killed during the computation."""
    distributed = pytest.importorskip("distributed")
    states = [lazy.from_array(np.tile(x, (40, 1, 1)), chunks=(4, 40, 6)) for x in (Q, QD, QDD)]
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        tau = client.persist(ROBOT.inverse_dynamics(*states))
        first = next(iter(cluster.workers.values()))
        os.kill(first.process.process.pid, signal.SIGKILL)
        found = tau.compute()
    assert np.array_equal(
        found, ROBOT.inverse_dynamics(*[np.tile(x, (40, 1, 1)) for x in (Q, QD, QDD)])
    )
