"""Velocity, acceleration and higher derivatives of frames, as 6-vectors or 4x4 matrices.

The method "joint-motion" and the matrices are from A. K. Mitra, "Homogeneous matrix approach based
on joint motion for forward kinematic analysis of serial mechanisms" (docs/mitra.md).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from chasles.algorithms.spatial.kinematics import At, Axes
from chasles.errors import ArgumentError
from chasles.functions import doors, numeric
from chasles.functions.programs import checked_order
from chasles.robot.configuration import Configuring
from chasles.robot.identity import Array


class Moving(Configuring):
    """Robot functions that take any number of time derivatives of q."""

    def frame_motion(
        self,
        q: Array,
        *rates: Array | str,
        frame: str | None = None,
        axes: Axes = "world",
        at: At = "frame",
        method: str = "fastest",
        out: Array = None,
        threads: int | None = None,
        **named_rates: Array,
    ) -> np.ndarray:
        """Return the velocity, acceleration, jerk and higher derivatives of a frame.

        Parameters
        ----------
        q : array_like, shape (..., nq)
            Joint positions (rad or m).
        *rates : array_like, shape (..., nv)
            Time derivatives qd, qdd, qddd, ..., in this order. The number of derivatives, including
            those in `named_rates`, is the order of the result.
        frame : str
            Name of a link or frame, which may also be the last positional argument, after the
            rates.
        axes : {"world", "frame"}, optional
            Axes in which vectors are expressed.
        at : {"frame", "world"} or (3,) array_like, optional
            Reference point, which moves with the body, as in `frame_velocity`.
        method : str, optional
            "joint-motion" (Mitra's method, docs/mitra.md; computed in the base frame),
            "link-frames" (computed in link frames) or "fastest".
        out, threads : optional
            As in `frame_velocity`.
        **named_rates : array_like, shape (..., nv)
            Time derivatives of the remaining orders, by keyword.

        Returns
        -------
        ndarray, shape (..., order, 6)
            Row k contains the k-th derivatives of the angular velocity (rad/s^(k+1)) and of the
            velocity of the reference point (m/s^(k+1)). Rows 0 and 1 are `frame_velocity` and the
            classical `frame_acceleration`.

        Raises
        ------
        ArgumentError
            If no time derivative is given, if several frames are given, or if a keyword argument is
            unknown.
        ModelError
            If the frame does not exist.
        InputError
            If an array has the wrong shape, or if an option has an unknown value.

        Examples
        --------
        >>> import chasles
        >>> robot = chasles.robots.planar(2)
        >>> robot.frame_motion([0.0, 0.5], [1.0, 0.0], [0.0, 0.0], frame="tip").round(3)
        array([[ 0.   , -1.   ,  0.   , -0.479,  0.   ,  1.878],
               [ 0.   , -0.   ,  0.   , -1.878,  0.   , -0.479]])
        """
        rates, frame = _frame_last("frame_motion", rates, frame)
        rates += doors.rates_by_name("frame_motion", rates, named_rates)
        order = doors.order_of("frame_motion", rates)
        view = ("frame", frame, "axes", axes, "at", at, "order", order, "method", method)
        return self._call("frame_motion", (q, *rates), view, None, out, threads)

    def jacobian_rate(
        self,
        q: Array,
        *rates: Array | str,
        frame: str | None = None,
        axes: Axes = "world",
        at: At = "frame",
        order: int | None = None,
        method: str = "fastest",
        out: Array = None,
        threads: int | None = None,
        **named_rates: Array,
    ) -> np.ndarray:
        """Return the n-th time derivative of the Jacobian of a frame.

        Parameters
        ----------
        q : array_like, shape (..., nq)
            Joint positions (rad or m).
        *rates : array_like, shape (..., nv)
            The n time derivatives qd, qdd, ..., in this order.
        frame : str
            Name of a link or frame.
        axes, at : optional
            As in `jacobian`.
        order : int, optional
            Expected number of rates. A different number raises an error.
        method : str, optional
            "spatial" (Featherstone 2008, example 2.5; first order only), "joint-motion" (Mitra's
            method, docs/mitra.md) or "fastest".
        out, threads : optional
            As in `jacobian`.
        **named_rates : array_like, shape (..., nv)
            Time derivatives of the remaining orders, by keyword.

        Returns
        -------
        ndarray, shape (..., 6, nv)
            Time derivative of the entries of `jacobian`.

        Raises
        ------
        ArgumentError
            If no time derivative is given, if their number differs from `order`, if several frames
            are given, or if a keyword argument is unknown.
        ModelError
            If the frame does not exist.
        InputError
            If an array has the wrong shape, or if an option has an unknown value.

        Examples
        --------
        >>> import chasles
        >>> robot = chasles.robots.planar(2)
        >>> robot.jacobian_rate([0.0, 0.5], [1.0, 0.0], frame="tip").round(3)
        array([[ 0.   ,  0.   ],
               [ 0.   ,  0.   ],
               [ 0.   ,  0.   ],
               [-1.878, -0.878],
               [ 0.   ,  0.   ],
               [-0.479, -0.479]])
        """
        rates, frame = _frame_last("jacobian_rate", rates, frame)
        rates += doors.rates_by_name("jacobian_rate", rates, named_rates)
        given = doors.order_of("jacobian_rate", rates)
        if order is not None and checked_order("jacobian_rate", order) != given:
            problem = f"order={order} requires {order} time derivatives after q, but got {given}"
            raise ArgumentError("E-ROBOT-026", problem, part="jacobian_rate")
        view = ("frame", frame, "axes", axes, "at", at, "order", given, "method", method)
        return self._call("jacobian_rate", (q, *rates), view, None, out, threads)

    def joint_motion_matrices(
        self, q: Array, *rates: Array | str, frame: str | None = None
    ) -> np.ndarray:
        """Return Mitra's joint-motion property matrices D for the body that carries a frame.

        Parameters
        ----------
        q : array_like, shape (..., nq)
            Joint positions (rad or m).
        *rates : array_like, shape (..., nv)
            The n time derivatives qd, qdd, ... of q. The result is the n-th time derivative of D.
        frame : str
            Name of a link or frame.

        Returns
        -------
        D : ndarray, shape (..., nv, 4, 4)
            Velocity matrix of the body in the base frame for a unit velocity of each coordinate.
            The matrix is zero for joints that do not move the body.

        Raises
        ------
        ArgumentError
            If no time derivative is given, or if several frames are given.
        ModelError
            If the frame does not exist.
        InputError
            If an array has the wrong shape.

        Notes
        -----
        D is [e~ r x e; 0 0] for a revolute joint about the unit vector e through the point r, and
        [0 e; 0 0] for a prismatic joint along e. e~ is the skew-symmetric matrix of e. The
        derivative of D is Ddot = Omega D - D Omega, where Omega is the velocity matrix of the
        joint's body. See Mitra's paper (docs/mitra.md), Eq 3.

        Examples
        --------
        >>> import chasles
        >>> chasles.robots.planar(2).joint_motion_matrices([0.0, 0.5], frame="tip").shape
        (2, 4, 4)
        """
        rates, frame = _frame_last("joint_motion_matrices", rates, frame)
        view: dict[str, Any] = {"frame": frame, "at": "world"}
        J = self.jacobian_rate(q, *rates, **view) if rates else self.jacobian(q, **view)
        return numeric.twist_matrices(np.swapaxes(J, -1, -2))

    def motion_matrices(
        self, q: Array, *rates: Array | str, frame: str | None = None
    ) -> np.ndarray:
        """Return Mitra's motion matrices, in the base frame, for the body that carries a frame.

        Parameters
        ----------
        q : array_like, shape (..., nq)
            Joint positions (rad or m).
        *rates : array_like, shape (..., nv)
            Time derivatives qd, qdd, ...
        frame : str
            Name of a link or frame.

        Returns
        -------
        ndarray, shape (..., order, 4, 4)
            One matrix for each given time derivative of q. In homogeneous coordinates, the matrices
            Omega, A_H, J_H, ... map a body point P to its velocity Omega P, acceleration A_H P,
            jerk J_H P and so on.

        Raises
        ------
        ArgumentError
            If no time derivative is given, or if several frames are given.
        ModelError
            If the frame does not exist.
        InputError
            If an array has the wrong shape.

        Notes
        -----
        If M is the body's position matrix, each result is a time derivative of M, multiplied from
        the right by M^-1. See Mitra's paper (docs/mitra.md), sections 2.6 and 2.7.

        Examples
        --------
        >>> import chasles
        >>> chasles.robots.planar(2).motion_matrices([0.0, 0.5], [1.0, 0.0], frame="tip").shape
        (1, 4, 4)
        """
        rates, frame = _frame_last("motion_matrices", rates, frame)
        return numeric.motion_matrices(self.frame_motion(q, *rates, frame=frame, at="world"))


def _frame_last(function: str, rates: Sequence[Any], frame: str | None) -> tuple[Any, str | None]:
    """Return the time derivatives and the frame name, which may be the last entry of `rates`."""
    given = (*rates, frame) if frame is not None else tuple(rates)
    names = [x for x in given if isinstance(x, str)]
    if not names:
        return given, None
    if len(names) != 1 or given[-1] is not names[0]:
        problem = f"{function} accepts one frame name, passed as `frame` or as the last argument"
        raise ArgumentError("E-CALL-340", problem)
    return given[:-1], names[0]
