"""Dask arrays: the same bits as NumPy in chunks of any shape, lazily, and on a cluster."""

import os
import pickle
import signal
from typing import Any

import numpy as np
import pytest
from support import raises

import chasles

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
    """Also where the axis of a state is cut, and with several results."""
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
    """As columns of a data frame have them."""
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


def test_a_task_holds_a_recipe_and_is_made_once() -> None:
    from chasles.functions.libraries import dask

    chunk = dask._Chunk(chasles.compile(ROBOT, "mass_matrix"), 1)
    data = pickle.dumps(chunk)
    assert b"ELF" not in data
    one, other = pickle.loads(data), pickle.loads(data)
    assert one is other
    assert np.array_equal(one(Q), ROBOT.mass_matrix(Q))


def test_a_cluster_that_loses_a_worker() -> None:
    """Processes of their own; one is killed while it computes."""
    distributed = pytest.importorskip("distributed")
    states = [lazy.from_array(np.tile(x, (40, 1, 1)), chunks=(4, 40, 6)) for x in (Q, QD, QDD)]
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        tau = client.persist(ROBOT.inverse_dynamics(*states))
        first = next(iter(cluster.workers.values()))
        os.kill(first.process.process.pid, signal.SIGKILL)
        found = tau.compute()
    assert np.array_equal(
        found, ROBOT.inverse_dynamics(*[np.tile(x, (40, 1, 1)) for x in (Q, QD, QDD)])
    )
