"""Closed-loop functions other than forward dynamics: forces, inertia, linearization."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np

from chasles.errors import ArgumentError, InputError
from chasles.functions.doors import Load
from chasles.functions.programs import Derivative, checked_frame, checked_joints
from chasles.mathematics.linear import Vector
from chasles.mechanisms import singular_values
from chasles.mechanisms.closing import Loops
from chasles.mechanisms.dynamics import Constrained, Run, Solver
from chasles.mechanisms.mechanism import accelerated
from chasles.mechanisms.reports import OverDetermined, UnderActuated, at_index, farthest, named
from chasles.model import Model, ModelError

AGREE = 1e-7
"""Tolerance for contradictions between known accelerations and loops.

The tolerance is relative to the largest known acceleration, or absolute if that is below 1.
"""

BY_MOTION = Derivative("jacobian", ("q", "qd"))


class Closed(Constrained):
    """Mechanism with closed loops, or with couplings between joint coordinates."""

    # Hybrid dynamics ----------------------------------------------------------------------------

    def _hybrid(self, load: Load, *, known: Any, **options: Any) -> Run:
        """Return a function for hybrid dynamics with given accelerations of the `known` joints.

        The function computes the torques of these joints and the accelerations of the others.
        """
        model, name = self.model, "hybrid_dynamics"
        options["known"] = known = checked_joints(model, name, known)
        owners = [model.bodies[i].data.name for i in self.loops.owners]
        given = np.flatnonzero(np.isin(owners, known))
        again = partial(singular_values.hybrid_dynamics, given=given)
        solve = self._solver(name, "constrained_hybrid_dynamics", again, given, load, **options)

        def run(*arrays: Any, threads: int | None = None) -> np.ndarray:
            found, left = solve(*arrays, threads=threads)
            self._check_agree(given, np.asarray(arrays[2], dtype=float), self.loops.rows * left)
            return found

        return run

    def _check_agree(self, given: np.ndarray, x: np.ndarray, left: np.ndarray) -> None:
        """Raise an error if the given accelerations are inconsistent with the loop constraints."""
        size = np.sqrt(np.sum(left * left, axis=-1))
        if np.all(size <= AGREE):
            return
        loops = self.loops
        largest = np.max(np.abs(x[..., given] / loops.columns[given]), axis=-1, initial=1.0)
        bad = ~(size <= AGREE * largest) & np.isfinite(size)
        if not np.any(bad):
            return
        worst = int(np.argmax(np.where(bad, size, 0.0)))
        constraint, far = farthest(loops.model, left.reshape(-1, left.shape[-1])[worst])
        known = f"{loops.names(loops.confined(given))}{at_index(worst, bad.shape)}"
        error = f"{named(constraint)}: error {far:.3g} (rad/s2, or relative to the loop size)"
        problem = f"the known accelerations of {known} are inconsistent with {error}"
        remedy = (
            "compute consistent accelerations with robot.complete, or name fewer joints in `known`"
        )
        raise OverDetermined("E-LOOP-012", problem, remedy, part=loops.part)

    # Actuator forces ----------------------------------------------------------------------------

    def _actuators(
        self,
        load: Load,
        *,
        actuated: Sequence[str] | None,
        weights: Mapping[str, float] | None = None,
        method: str = "fastest",
        **options: Any,
    ) -> Run:
        """Return an inverse-dynamics function with zero torques at unactuated coordinates."""
        self._refuse_method("inverse_dynamics(actuated=)", method)
        loops, name = self.loops, "inverse_dynamics"
        given = loops.indices(loops.freedoms if actuated is None else actuated, "to actuate")
        free = loops.among(given)
        if free is None:
            who = (
                f"actuators at {loops.names(given)}" if len(given) else "an empty list of actuators"
            )
            problem = f"{who} cannot move all {len(loops.independent)} degrees of freedom"
            remedy = f"actuate, for example, {loops.names(loops.independent)}"
            raise UnderActuated("E-LOOP-013", problem, remedy, part=loops.part)
        heavy = self._weights([loops.freedoms[k] for k in given], weights)
        again = partial(
            singular_values.actuator_forces, independent=free, actuated=given, weights=heavy
        )
        options |= {"actuated": tuple(map(int, given)), "weights": heavy, "rates": 2}
        return self._solver(name, "actuator_forces", again, free, load, **options).first

    def _weights(
        self, names: Sequence[str], weights: Mapping[str, float] | None
    ) -> tuple[float, ...]:
        """Return the checked actuator weights of the named degrees of freedom."""
        if not isinstance(weights or {}, Mapping):
            problem = (
                f"`weights` must be {{degree of freedom: weight}}, not {type(weights).__name__}"
            )
            raise ArgumentError("E-LOOP-014", problem, part="inverse_dynamics")
        chosen = dict.fromkeys(names, 1.0)
        for name, value in (weights or {}).items():
            if name not in chosen:
                problem, known = (
                    f"`weights` names {name!r}, which is not actuated",
                    ", ".join(map(repr, names)),
                )
                raise InputError("E-LOOP-015", problem, f"name {known}", part="inverse_dynamics")
            if not (isinstance(value, int | float) and np.isfinite(value) and value > 0.0):
                problem = f"the weight of {name!r} must be positive, not {value!r}"
                raise InputError("E-LOOP-016", problem, part="inverse_dynamics")
            chosen[name] = float(value)
        return tuple(chosen.values())

    # Mass matrix --------------------------------------------------------------------------------

    def _inertia(self, name: str, method: str = "fastest") -> Solver:
        """Return the solver for the mass matrix of the independent coordinates.

        `name` is the name of the requested function, for error messages.
        """
        self._refuse_method(f'{name}(coordinates="independent")', method)
        runs, given = "independent_mass_matrix", self.loops.independent
        return self._solver(name, runs, singular_values.mass_matrix, given, rates=0)

    def reduced(
        self, name: str, q: Any, *, threads: int | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        M = self._inertia(name).first(q, threads=threads)
        return self.closing.carried(np.asarray(q, dtype=float), self.loops.independent)[0], M

    def _mass(self, load: Load, *, method: str = "fastest", packed: bool = False, **_: Any) -> Run:
        """Return a function for the mass matrix of the independent coordinates."""
        if packed:
            problem = "packed=True is not supported with coordinates='independent'"
            remedy = 'omit `packed`, or use coordinates="tree"'
            raise InputError("E-CALL-096", problem, remedy, part="mass_matrix")
        return self._inertia("mass_matrix", method).first

    def _mass_inverse(
        self, load: Load, *, coordinates: str | None = None, method: str = "fastest"
    ) -> Run:
        """Return a function for the inverse mass matrix of the independent coordinates."""
        if coordinates is None:
            problem = (
                f"robot {self.model.name!r} has loops or couplings, so `coordinates` is required"
            )
            remedy = 'use coordinates="independent" or coordinates="tree"'
            raise ModelError("E-ROBOT-017", problem, remedy, part="mass_matrix_inverse")
        self.check_inertia("mass_matrix_inverse")
        M = self._inertia("mass_matrix_inverse", method).first

        def run(q: Any, threads: int | None = None) -> np.ndarray:
            H = M(q, threads=threads)
            return accelerated(H, np.eye(H.shape[-1], dtype=H.dtype), "mass_matrix_inverse")

        return run

    def _operational(self, load: Load, *, frame: Any, method: str = "fastest", **view: Any) -> Run:
        """Return a function for the inverse operational-space inertia of a closed-loop robot.

        The result is J G (G' M G)^-1 G' J', where J is the frame Jacobian, M is the mass matrix of
        the tree, and G maps independent velocities to all velocities.
        """
        name = "operational_inertia_inverse"
        self._refuse_method(name, method)
        self.check_inertia(name)
        frames = checked_frame(self.model, name, frame, True)
        each = [frames] if isinstance(frames, str) else frames

        def run(q: Any, threads: int | None = None) -> np.ndarray:
            G, M = self.reduced(name, q, threads=threads)
            rows = [self.jacobian(q, frame=one, threads=threads, **view) for one in each]
            J = np.concatenate(rows, axis=-2) @ G
            return np.asarray(J @ accelerated(M, np.swapaxes(J, -1, -2), name)).astype(M.dtype)

        return run

    # Joint reactions and linearization -----------------------------------------------------------

    def _reactions(self, load: Load) -> Run:
        """Return a function for the reactions at all tree joints, which include loop forces."""
        here = self.function("closed_joint_reactions", wrenches=load.keys).at(self.t)
        return lambda *arrays, threads=None: here(*arrays, *load.forces, threads=threads)

    def _linear(
        self, load: Load, *, coordinates: str = "independent", dissipation: bool = False
    ) -> Run:
        """Return a function for the state-space matrices A and B of the linearized mechanism."""
        if self.model.rolls:
            rolls = ", ".join(map(repr, self.model.rolls))
            problem = f"nonholonomic constraints are not supported: {rolls}"
            remedy = 'use finite differences of forward_dynamics, or coordinates="tree"'
            raise ModelError("E-LOOP-324", problem, remedy, part="linearize")
        solve = self._constrained(load, name="linearize", dissipation=dissipation)
        shared: dict[str, Any] = {"wrenches": load.keys, "dissipation": dissipation}

        def run(*arrays: Any, threads: int | None = None) -> tuple[np.ndarray, np.ndarray]:
            qdd, lam = solve(*arrays, threads=threads)
            state = [np.asarray(a, dtype=float) for a in arrays[:2]]
            motion = [
                np.broadcast_to(a, (*qdd.shape[:-1], a.shape[-1])) for a in (*state, qdd, lam)
            ]
            A, B = linear_system(self.closing, motion, load.forces, threads=threads, **shared)
            return A.astype(qdd.dtype), B.astype(qdd.dtype)

        return run

    def _refuse_method(self, what: str, method: str) -> None:
        if method != "fastest":
            problem = (
                f"method {method!r} applies only to trees, but robot {self.model.name!r} has "
                "loops or couplings"
            )
            raise InputError("E-LOOP-035", problem, "omit `method`", part=what)

    _own = Constrained._own | {
        "hybrid_dynamics": _hybrid,
        "inverse_dynamics": _actuators,
        "mass_matrix": _mass,
        "mass_matrix_inverse": _mass_inverse,
        "operational_inertia_inverse": _operational,
        "joint_reactions": _reactions,
        "linearize": _linear,
    }
    _trees: ClassVar[dict[str, Callable[..., bool]]] = {
        "inverse_dynamics": lambda actuated=None, weights=None, **_: actuated is weights is None,
        "mass_matrix": lambda coordinates="tree", **_: coordinates == "tree",
    }


def linear_system(
    loops: Loops,
    motion: Sequence[np.ndarray],
    forces: Sequence[Any],
    *,
    threads: int | None,
    **options: Any,
) -> tuple[np.ndarray, np.ndarray]:
    """Return A (..., 2n, 2n) and B (..., 2n, nv) of the linearized system xdot = A x + B u.

    x contains small changes y of the n independent coordinates, and changes of their rates. u
    contains changes of the joint torques. `motion` contains q, qd, qdd and the multipliers lam.

    H is the mass matrix, and K is the constraint Jacobian. A small step G y of all coordinates
    keeps the loops closed. The function `loop_equations` has three results e1, e2 and e3. Small
    changes satisfy K dqd = -de3, K dqdd = -de2 and H dqdd - K' dlam + de1 = u. Multiplication of
    the last equation by G' eliminates lam.
    """
    q, qd, _, _ = motion
    slopes = loops.function("loop_equations", derivative=BY_MOTION, **options)
    e1_q, e1_v, e2_q, e2_v, e3_q, _ = slopes(*motion, *forces, threads=threads)
    H = loops.function("mass_matrix")(q, threads=threads)
    G, R = loops.carried(q, loops.independent)
    GT, n = np.swapaxes(G, -1, -2), len(loops.independent)
    turning = -R @ e3_q @ G  # derivative of qd with respect to y, with yd held constant
    dq, dqd = np.block([G, 0.0 * G]), np.block([turning, G])
    dqdd = -R @ (e2_q @ dq + e2_v @ dqd)
    by_state = -GT @ (e1_q @ dq + e1_v @ dqd + H @ dqdd)
    below = accelerated(GT @ H @ G, np.block([by_state, GT]), "linearize")
    drift = np.einsum("...k,kij->...ij", qd, _brackets(loops.model))[..., loops.independent, :] @ G
    above = np.block([drift, np.eye(n) + 0.0 * drift, 0.0 * GT])
    A, B = np.split(np.concatenate([above, below], axis=-2), [2 * n], axis=-1)
    return A, B


def _brackets(model: Model) -> np.ndarray:
    """Return the Lie-bracket matrices -ad(e) of all unit velocities e, as an array (nv, nv, nv)."""
    found = np.zeros((model.nv,) * 3)
    for i, where in model.velocity_slices.items():
        joint = model.bodies[i].joint
        for k, unit in enumerate(np.eye(joint.nv), start=where.start):
            found[k, where, where] = joint.drift(Vector(tuple(unit.tolist()))).rows
    return found
