"""Motion in machine code."""

from collections.abc import Sequence
from typing import Any

from chasles.backends.pool import COMPILING
from chasles.robot.editing import Editing
from chasles.robot.identity import Array
from chasles.rollouts import (
    Contacts,
    Rollout,
    RolloutGradient,
    SoftPair,
    Trajectory,
    checked_steps,
    given_pairs,
    parameter_count,
)


class Rolling(Editing):
    """Motions in steps that are compiled."""

    def rollout(
        self,
        q: Array,
        qd: Array,
        tau: Any = None,
        *,
        dt: float,
        steps: int,
        every: int = 1,
        parameters: Array = None,
        method: str = "semi-implicit",
        start: float = 0.0,
        dissipation: bool = False,
        contacts: Sequence[SoftPair] | None = None,
        contact_states: Array = None,
        threads: int | None = None,
    ) -> Trajectory:
        """The motion from q (..., nq) and qd (..., nv) in so many steps of dt seconds, all of them
        in machine code.

        tau: joint forces: none, constant (nv,), one row for each step (..., steps, nv), or a
        controller that is traced into the step: a function tau(t, q, qd) of numbers that returns
        nv of them (with the functions of `chasles.expr` where it needs more than arithmetic), or
        one of `chasles.rollouts.PDControl`, `GravityCompensation`, `ComputedTorque`. every: keep
        one state of so many, and the last. parameters: (m,) or (..., m), of a controller
        tau(t, q, qd, p), which is traced once for all their values. method: "semi-implicit" (Euler;
        first order), "euler" or "rk4" (fourth order), all along the configuration space. start: the
        time of the first step, in s. dissipation as in `forward_dynamics`. Robots with loops, or
        that depend on time: `chasles.simulate`. CuPy's arrays are computed on their GPU, in one
        launch, in float32 if all are; nothing is checked to be finite there.

        contacts: pairs of shapes with a soft law, `contact.Pair(body, surface, SoftContact(...))`;
        their forces are part of the step, which is compiled for each dt then, and
        `Trajectory.touching` has forces, gaps and states at the kept times. contact_states
        (..., states): those of the surfaces and of friction at the start, at rest by default.
        """
        step, steps, every, threads = checked_steps(dt, steps, every, start, threads)
        made = self._rollout(method, tau, dissipation, contacts, step, parameters)
        return made(
            q,
            qd,
            None if callable(tau) else tau,
            dt=step,
            steps=steps,
            every=every,
            start=start,
            threads=threads,
            contact_states=contact_states,
            parameters=parameters,
        )

    def rollout_pullback(
        self,
        q: Array,
        qd: Array,
        tau: Any = None,
        *,
        covectors: Sequence[Array],
        dt: float,
        steps: int,
        every: int = 1,
        parameters: Array = None,
        method: str = "semi-implicit",
        start: float = 0.0,
        dissipation: bool = False,
        contacts: Sequence[SoftPair] | None = None,
        contact_states: Array = None,
        threads: int | None = None,
    ) -> RolloutGradient:
        """The gradient of a number that depends on a motion: covectors of its states pulled back to
        the start, the forces and the controller's parameters, in machine code.

        covectors: the derivatives of that number by the q and by the qd that `rollout` keeps with
        the same arguments, each (..., n, nv), or None for zero. Derivatives by q, these and the
        one by the start, are along `integrate`, as in `derivatives`: nv numbers for each q. There
        is one gradient for each member of a batch, also by what the batch shares. Memory grows with
        the square root of `steps`, beside what is given and returned (the adjoint method, with
        checkpoints: Griewank, Walther 2008, chapter 12). Arrays of NumPy only.
        """
        step, steps, every, threads = checked_steps(dt, steps, every, start, threads)
        made = self._rollout(method, tau, dissipation, contacts, step, parameters)
        return made.pullback(
            q,
            qd,
            None if callable(tau) else tau,
            covectors=covectors,
            dt=step,
            steps=steps,
            every=every,
            start=start,
            threads=threads,
            contact_states=contact_states,
            parameters=parameters,
        )

    def _rollout(
        self,
        method: str,
        tau: Any,
        dissipation: bool,
        contacts: Sequence[SoftPair] | None = None,
        dt: float = 0.0,
        parameters: Array = None,
    ) -> Rollout:
        """A compiled step, made once for a controller and contacts that can be told from others."""
        control, count = tau if callable(tau) else None, parameter_count(parameters)
        pairs = None if contacts is None else given_pairs("rollout", contacts)
        constant = None if pairs is None else dt
        key: Any = ("rollout", method, control, dissipation, pairs, constant, count)
        try:
            if key in self._ready:
                return self._ready[key]  # type: ignore[return-value]
        except TypeError:
            key = None
        with COMPILING:
            touch = None if pairs is None else Contacts(self.model, pairs)
            made = Rollout(
                self.model, self.mimic, method, control, dissipation, touch, constant, count
            )
        found: Rollout = self._ready.setdefault(("rollout", made.recipe), made)  # type: ignore
        if key is not None:
            self._ready[key] = found
        return found
