"""Count the operations of Pinocchio's inverse dynamics with CasADi, or use known counts."""

import importlib
from dataclasses import dataclass
from typing import Any

from benchmarks.targets import TRACED_PINOCCHIO

COUNTED = ("OP_ADD", "OP_SUB", "OP_MUL", "OP_SQ", "OP_TWICE")
"""CasADi operations that are counted. A square counts as a multiplication, and a double as an
addition."""


@dataclass(frozen=True)
class Reference:
    """Number of multiplications and additions, and its source."""

    operations: int
    source: str


def inverse_dynamics_operations(name: str, model: Any) -> Reference | None:
    """Return the operation count of Pinocchio's inverse dynamics, or None if it is unknown."""
    try:
        traced = importlib.import_module("pinocchio.casadi")
    except ImportError:
        published = TRACED_PINOCCHIO.get(name)
        return Reference(published, "issue 2") if published else None
    return Reference(_traced(model, traced), "traced here")


def _traced(model: Any, traced: Any) -> int:
    """Count the operations after CasADi has folded constants and merged equal expressions."""
    casadi = importlib.import_module("casadi")
    symbolic = traced.Model(model)
    q, v, a = (casadi.SX.sym(*x) for x in (("q", model.nq), ("v", model.nv), ("a", model.nv)))
    tau = traced.rnea(symbolic, symbolic.createData(), q, v, a)
    return operations(casadi.Function("inverse_dynamics", [q, v, a], [casadi.cse(tau)]))


def operations(function: Any) -> int:
    """Return the number of multiplications and additions of a CasADi function of scalars."""
    casadi = importlib.import_module("casadi")
    counted = {getattr(casadi, name) for name in COUNTED}
    return sum(function.instruction_id(k) in counted for k in range(function.n_instructions()))
