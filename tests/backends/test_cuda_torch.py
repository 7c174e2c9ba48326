"""PyTorch tensors passed to the CUDA backend, on a GPU that is imitated by the CPU."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from gpu_on_cpu import DEVICE, STREAM, imitated
from support import close, raises, state

import chasles
from chasles.functions.compiled import Compiled
from chasles.numeric.handles import ALGORITHMS, Chain
from chasles.robots import general_chain, planar

torch = pytest.importorskip("torch", reason="PyTorch is not installed")


@pytest.fixture
def imitate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let compiled functions run kernels of an imitated GPU, on which CPU tensors lie."""
    kernels: dict[str, Any] = {}

    def found(self: Compiled) -> Any:
        if self.key not in kernels:
            kernels[self.key] = imitated(self.program, self.recipe.dtype, tmp_path, monkeypatch)[0]
        return SimpleNamespace(kernel=kernels[self.key])

    monkeypatch.setattr(Compiled, "cuda", property(found))
    monkeypatch.setattr(torch.cuda, "current_device", lambda: DEVICE)
    name = "_cuda_getCurrentRawStream"  # exists only in builds of PyTorch with GPU support
    monkeypatch.setattr(torch._C, name, lambda _: STREAM, raising=False)


@pytest.fixture
def inverse(imitate: None) -> Any:
    """Return inverse dynamics that accepts CPU tensors in place of GPU tensors."""
    from chasles.functions.libraries import torch as door

    compiled = chasles.compile(planar(2), "inverse_dynamics")
    return lambda *a, out=None: door._run_on_gpu(compiled, a, out)


def test_layouts(inverse: Any) -> None:
    q, qd, qdd = (torch.from_numpy(a) for a in state(planar(2), 0, (5, 4)))
    columns = [a.permute(2, 0, 1).contiguous().permute(1, 2, 0) for a in (q, qd, qdd)]
    for given in ((q, qd, qdd), columns, (q, qd[0, 0], qdd[:, :1]), (q[:0], qd[:0], qdd[:0])):
        (result,) = inverse(*given)
        assert result.is_contiguous()
        close(result, planar(2).inverse_dynamics(*given), 1e-12)


def test_negated_tensors(inverse: Any) -> None:
    """Views that PyTorch negates only when they are read give correct results."""
    q, qd, qdd = (torch.from_numpy(a) for a in state(planar(2), 0, 3))
    lazy = torch.complex(qd, -qd).conj().imag
    assert lazy.is_neg()
    (result,) = inverse(q, lazy, qdd)
    close(result, planar(2).inverse_dynamics(q, qd, qdd), 1e-12)


def test_out(inverse: Any) -> None:
    arrays = state(planar(2), 1, (5, 4))
    expected = planar(2).inverse_dynamics(*arrays)
    given = [torch.from_numpy(a) for a in arrays]
    for out in (
        torch.empty(5, 4, 2, dtype=torch.float64),
        torch.empty(5, 4, 9, dtype=torch.float64)[..., 2:4],
        torch.empty(2, 4, 5, dtype=torch.float64).permute(2, 1, 0),
        given[1],
    ):
        assert inverse(*given, out=(out,))[0] is out
        close(out, expected, 1e-12)
    with raises("E-GPU-005"):
        inverse(*given, out=(torch.empty(5, 4, 2),))
    with pytest.raises(RuntimeError, match="single memory location"):
        inverse(*given, out=(torch.empty(2, dtype=torch.float64).expand(5, 4, 2),))


def test_long_chains(imitate: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """`Chain` keeps tensors on the GPU, where each of its programs is a kernel."""
    from chasles.functions.libraries import torch as door

    ran: list[str] = []

    def run(function: Any, tensors: Any, threads: Any) -> Any:
        ran.append(function.recipe.method)
        return door._run_on_gpu(function, tensors, None)

    monkeypatch.setattr(door, "_run", run)
    robot, arrays = general_chain(5), state(general_chain(5), 0, 3)
    found = Chain(robot).forward_dynamics(*map(torch.from_numpy, arrays))
    assert set(ran) == {"gathered", *(a.__name__ for a in ALGORITHMS)}
    close(found.numpy(), robot.forward_dynamics(*arrays, method="articulated-body"), 1e-11)
