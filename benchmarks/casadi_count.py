"""Operations of Pinocchio's inverse dynamics: traced with CasADi, or as published."""

import importlib
from dataclasses import dataclass
from typing import Any

from benchmarks.targets import TRACED_PINOCCHIO

COUNTED = ("OP_ADD", "OP_SUB", "OP_MUL", "OP_SQ", "OP_TWICE")
"""CasADi's additions and multiplications: a square is a product, a double is a sum."""


@dataclass(frozen=True)
class Reference:
    """A number of multiplications and additions, and where it comes from."""

    operations: int
    source: str


def inverse_dynamics_operations(name: str, model: Any) -> Reference | None:
    """What Pinocchio's algorithm costs for a robot, constants folded; None where nobody knows."""
    try:
        traced = importlib.import_module("pinocchio.casadi")
    except ImportError:
        published = TRACED_PINOCCHIO.get(name)
        return Reference(published, "issue 2") if published else None
    return Reference(_traced(model, traced), "traced here")


def _traced(model: Any, traced: Any) -> int:
    """CasADi folds constants as it builds expressions; equal expressions are then merged."""
    casadi = importlib.import_module("casadi")
    symbolic = traced.Model(model)
    q, v, a = (casadi.SX.sym(*x) for x in (("q", model.nq), ("v", model.nv), ("a", model.nv)))
    tau = traced.rnea(symbolic, symbolic.createData(), q, v, a)
    return operations(casadi.Function("inverse_dynamics", [q, v, a], [casadi.cse(tau)]))


def operations(function: Any) -> int:
    """Multiplications and additions of a CasADi function of scalars."""
    casadi = importlib.import_module("casadi")
    counted = {getattr(casadi, name) for name in COUNTED}
    return sum(function.instruction_id(k) in counted for k in range(function.n_instructions()))
