"""Inverse dynamics of an arm in PyTorch, with operations on whole batches.

The algorithm is the recursive Newton-Euler method with three-vectors (Luh, Walker and Paul 1980).
Quantities of a body are tensors (states, 3) in the body's frame, whose z axis is the joint axis.
Only trees of revolute joints are supported.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

import chasles


class Link(NamedTuple):
    """Revolute joint and the body that it moves, with parameters as tensors.

    Attributes
    ----------
    p : int
        Index of the parent, or -1.
    E : tensor, shape (3, 3)
        Rotation from the parent's axes to the joint's axes in the zero position.
    r : tensor, shape (3,)
        Position (m) of the joint in the parent's frame.
    m, c, I : float, tensor, tensor
        Mass (kg), center of mass (m), and inertia (kg m^2) about the center of mass.
    armature : float
        Armature inertia (kg m^2) of the joint.
    """

    p: int
    E: Any
    r: Any
    m: float
    c: Any
    I: Any
    armature: float


def links(robot: chasles.Robot, dtype: str, device: str) -> list[Link]:
    """Return the links of a robot. Raise ValueError if a joint is not revolute."""

    def tensor(values: Any) -> Any:
        return torch.tensor(np.asarray(values, dtype), device=device)

    found = []
    for body in robot.model.bodies:
        joint = body.joint
        if joint.kind not in ("revolute", "continuous") or joint.offset:
            raise ValueError(f"this model has revolute joints only; that of {body.name} is not")
        m, c, I = body.inertia.about_center()
        E, r = joint.placement.E.matrix(), joint.placement.r
        found.append(
            Link(
                p=body.parent,
                E=tensor(E),
                r=tensor(r.entries),
                m=float(m),
                c=tensor(c.entries),
                I=tensor(I.matrix()),
                armature=float(sum(joint.armature)),
            )
        )
    return found


def inverse_dynamics(arm: Sequence[Link], gravity: Any, q: Any, qd: Any, qdd: Any) -> Any:
    """Return joint torques (states, n) in N m from tensors (states, n)."""
    still = torch.zeros_like(q[:, :1]).expand(-1, 3)
    zero = still[:, 0]
    E, w, wd, a = ([still] * len(arm) for _ in range(4))
    for k, link in enumerate(arm):
        root = link.p < 0
        wp, wdp = (still, still) if root else (w[link.p], wd[link.p])
        ap = -gravity.expand_as(still) if root else a[link.p]
        spin, push = (torch.stack([zero, zero, rate[:, k]], -1) for rate in (qd, qdd))
        E[k] = _turned(q[:, k]) @ link.E
        turning = _apply(E[k], wp)
        w[k] = turning + spin
        wd[k] = _apply(E[k], wdp) + torch.cross(turning, spin, dim=-1) + push
        a[k] = _apply(E[k], ap + _carried(wp, wdp, link.r))
    f, n, tau = [still] * len(arm), [still] * len(arm), [zero] * len(arm)
    for k, link in reversed(list(enumerate(arm))):
        force = link.m * (a[k] + _carried(w[k], wd[k], link.c))
        moment = wd[k] @ link.I + torch.cross(w[k], w[k] @ link.I, dim=-1)
        f[k] = f[k] + force
        n[k] = n[k] + moment + torch.cross(link.c.expand_as(force), force, dim=-1)
        tau[k] = n[k][:, 2] + link.armature * qdd[:, k]
        if link.p >= 0:
            back = E[k].transpose(-1, -2)
            up = _apply(back, f[k])
            f[link.p] = f[link.p] + up
            n[link.p] = n[link.p] + _apply(back, n[k])
            n[link.p] = n[link.p] + torch.cross(link.r.expand_as(up), up, dim=-1)
    return torch.stack(tau, -1)


def _turned(angle: Any) -> Any:
    """Return the rotations (states, 3, 3) to axes that are turned by the angle about z."""
    s, c, o = torch.sin(angle), torch.cos(angle), torch.zeros_like(angle)
    rows = torch.stack([c, s, o, -s, c, o, o, o, o + 1.0], -1)
    return rows.reshape(-1, 3, 3)


def _apply(E: Any, v: Any) -> Any:
    return (E @ v.unsqueeze(-1)).squeeze(-1)


def _carried(w: Any, wd: Any, r: Any) -> Any:
    """Return the acceleration of a point at r relative to that of the origin."""
    r = r.expand_as(w)
    return torch.cross(wd, r, dim=-1) + torch.cross(w, torch.cross(w, r, dim=-1), dim=-1)


def runs(
    robot: chasles.Robot, inputs: Sequence[np.ndarray], dtype: str, device: str = "cuda"
) -> dict[str, Callable[[], Any]]:
    """Return functions, by label, that compute the inverse dynamics of all states."""
    arm = links(robot, dtype, device)
    gravity = torch.tensor(list(robot.gravity), dtype=getattr(torch, dtype), device=device)
    tensors = [torch.from_numpy(a.astype(dtype)).to(device) for a in inputs]

    def eager() -> Any:
        return inverse_dynamics(arm, gravity, *tensors)

    made = torch.compile(lambda *arrays: inverse_dynamics(arm, gravity, *arrays))
    return {
        "PyTorch": eager,
        "PyTorch, in a graph": _captured(eager),
        "PyTorch, torch.compile": lambda: made(*tensors),
    }


def _captured(run: Callable[[], Any]) -> Callable[[], Any]:
    """Return a function that runs the same launches as a CUDA graph, captured at the first call."""

    @functools.cache
    def graph() -> tuple[Any, Any]:
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            run()
        torch.cuda.current_stream().wait_stream(side)
        made = torch.cuda.CUDAGraph()
        with torch.cuda.graph(made):
            result = run()
        return made, result

    def replay() -> Any:
        made, result = graph()
        made.replay()
        return result

    return replay
