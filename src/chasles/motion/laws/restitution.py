"""Impact laws: the impulse as a function of the velocity before impact and the inertia.

A law has a method `impulse(W, zeta)`. The inverse inertia W (..., 3, 3) of the contact point maps
impulses to velocity changes (1/kg). The vector zeta (..., 3) is the velocity of one body relative
to the other at this point before impact (m/s). W and zeta are in contact axes: tangent, tangent,
normal. The impulse (..., 3) acts on the first of the two bodies (N s). Points that do not approach,
zeta_z >= 0, have no impulse. `derivatives` returns the derivatives of the impulse.

| law | the impact ends when | friction |
|---|---|---|
| `Newton` | the normal velocity is -e times its value before impact | Coulomb's, or none |
| `Sticking` | the normal velocity is -e times its value before impact | unlimited: slip stops |
| `Poisson` | the normal impulse is 1 + e times the impulse of compression | Coulomb's |
| `Stronge` | the normal work of expansion is e^2 times the work of compression | Coulomb's |

Coefficients are floats or arrays of shape (...). `Moreau` handles several points at once.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np

from chasles.errors import ArgumentError, InputError
from chasles.functions.doors import numbers
from chasles.model.given import settle
from chasles.motion.geometry.closed_forms import applied, contact_axes
from chasles.motion.laws.friction import Law, coulomb, coulomb_slopes
from chasles.motion.laws.slip import Quantity, Slip

Array = Any

DIFFERENCE = 1e-6
"""Relative step of central differences, for which truncation and rounding errors are both about
1e-10."""

SINGULAR = 1e-12
"""Relative tolerance below which an eigenvalue of the inverse inertia W at a contact point counts
as zero. The point cannot move along the corresponding eigenvector."""


@runtime_checkable
class ImpactLaw(Protocol):
    """Interface that an impact law for a single contact point must implement."""

    def impulse(self, W: Array, zeta: Array) -> np.ndarray:
        """Return the impulse at a contact point.

        Parameters
        ----------
        W : array_like, shape (..., 3, 3)
            Inverse inertia of the point (1/kg), in (tangent, tangent, normal) axes.
        zeta : array_like, shape (..., 3)
            Velocity of the point before the impact (m/s).

        Returns
        -------
        impulse : ndarray, shape (..., 3)
            Impulse lambda (N s).

        Raises
        ------
        InputError
            If an array does not have the documented shape, or if W or `zeta` is not finite. If the
            bodies approach each other and W[..., 2, 2] is not positive. For `Sticking`, if no
            impulse can both stop the slip and make the point rebound.
        ArgumentError
            If `zeta` is not an array of real numbers.

        Examples
        --------
        >>> import numpy as np
        >>> from chasles import contact
        >>> contact.Newton(0.5).impulse(np.eye(3), [0.0, 0.0, -2.0])
        array([0., 0., 3.])
        """

    def derivatives(self, W: Array, zeta: Array) -> tuple[np.ndarray, np.ndarray]:
        """Return the derivatives of the impulse.

        Parameters
        ----------
        W : array_like, shape (..., 3, 3)
            Inverse inertia of the point (1/kg), symmetric.
        zeta : array_like, shape (..., 3)
            Velocity of the point before the impact (m/s).

        Returns
        -------
        by_W : ndarray, shape (..., 3, 3, 3)
            Derivatives with respect to the entries of W.
        by_zeta : ndarray, shape (..., 3, 3)
            Derivatives with respect to zeta.

        Raises
        ------
        InputError
            If an array does not have the documented shape, or if W or `zeta` is not finite. If the
            bodies approach each other and W[..., 2, 2] is not positive. For `Sticking`, if no
            impulse can both stop the slip and make the point rebound.
        ArgumentError
            If `zeta` is not an array of real numbers.

        Examples
        --------
        >>> import numpy as np
        >>> from chasles import contact
        >>> contact.Newton(0.5).derivatives(np.eye(3), [0.0, 0.0, -2.0])[1]
        array([[ 0. ,  0. ,  0. ],
               [ 0. ,  0. ,  0. ],
               [ 0. ,  0. , -1.5]])
        """


def check_law(what: str, law: Any) -> None:
    """Raise an error if an object is not an impact law."""
    if not isinstance(law, ImpactLaw):
        problem = f"{what} must be an impact law, such as Newton(...), not {law!r:.60}"
        raise ArgumentError("E-CONTACT-060", problem)


@dataclass(frozen=True)
class _PointLaw(ImpactLaw):
    """Base class of impact laws at one point. By default, derivatives use central differences."""

    restitution: Array

    def __post_init__(self) -> None:
        if fault := settle(self):
            raise InputError("E-CONTACT-066", fault, part=type(self).__name__)

    def derivatives(self, W: Array, zeta: Array) -> tuple[np.ndarray, np.ndarray]:
        # Take central differences for each of the nine independent entries of zeta and W.
        W, zeta, _ = _arrays(self, W, zeta)
        pairs = np.zeros((9, 3, 3))
        for n, (j, k) in enumerate(zip(*np.triu_indices(3), strict=True), start=3):
            pairs[n, j, k] = pairs[n, k, j] = 1.0
        lead = (slice(None), *[None] * (zeta.ndim - 1))
        dW = pairs[lead] * (DIFFERENCE * np.max(np.abs(W), axis=(-2, -1)))[..., None, None]
        dzeta = np.eye(9, 3)[lead] * (DIFFERENCE * np.max(np.abs(zeta), axis=-1))[..., None]
        up, down = self.impulse(np.stack([W + dW, W - dW]), np.stack([zeta + dzeta, zeta - dzeta]))
        size = np.sum(dW, axis=(-2, -1)) + np.sum(dzeta, axis=-1)
        slopes = (up - down) / (2.0 * np.where(size > 0.0, size, 1.0))[..., None]
        return np.einsum("n...i,njk->...ijk", slopes, pairs), np.moveaxis(slopes[:3], 0, -1)


@dataclass(frozen=True)
class Sticking(_PointLaw):
    """Law in which slip stops by the end of the impact (Featherstone 2008, Eq 11.66 to 11.72).

    The impulse is lambda = -W^-1 (1 + E) zeta with E = diag(0, 0, e): there is no tangential or
    torsional restitution, and no bound on friction. With e > 0, the law can create energy if W
    couples the tangents with the normal.

    Attributes
    ----------
    restitution : float or array_like
        Coefficient of restitution e, from 0 to 1.
    """

    def impulse(self, W: Array, zeta: Array) -> np.ndarray:
        W, zeta, e = _arrays(self, W, zeta)
        wanted = zeta * _turned(e)
        wanted = np.where(zeta[..., 2:] < 0.0, wanted, 0.0)
        impulse = -applied(np.linalg.pinv(W, rcond=SINGULAR, hermitian=True), wanted)
        missing = np.abs(applied(W, impulse) + wanted)
        if np.any(missing > 1e-9 * np.max(np.abs(wanted), axis=-1, initial=0.0, keepdims=True)):
            problem = "the point cannot both stop slipping and rebound with this restitution"
            remedy = "use restitution 0, or a law with Coulomb friction"
            raise InputError("E-CONTACT-061", problem, remedy, part="Sticking")
        return impulse

    def derivatives(self, W: Array, zeta: Array) -> tuple[np.ndarray, np.ndarray]:
        W, zeta, e = _arrays(self, W, zeta)
        back = np.linalg.pinv(W, rcond=SINGULAR, hermitian=True)
        by_W = -back[..., :, :, None] * self.impulse(W, zeta)[..., None, None, :]
        hits = (zeta[..., 2] < 0.0)[..., None, None]
        by_zeta = -back * _turned(e)[..., None, :]
        return np.where(hits[..., None], by_W, 0.0), np.where(hits, by_zeta, 0.0)


def _turned(e: np.ndarray) -> np.ndarray:
    """Return (1, 1, 1 + e), the diagonal of 1 + E in `Sticking`, as an array (..., 3)."""
    return np.stack([np.ones_like(e), np.ones_like(e), 1.0 + e], axis=-1)


@dataclass(frozen=True)
class _Slipping(_PointLaw):
    """Impact law with Coulomb friction, in two phases.

    Compression ends when the normal velocity is zero. Expansion ends when `_quantity` reaches
    `_goal`. If slip reverses, the motion can press the bodies together again during expansion.
    Expansion then lasts until the bodies separate.
    """

    friction: Array
    _quantity: ClassVar[Quantity]
    _goal: ClassVar[Callable[..., np.ndarray]]
    """Function that returns the value of `_quantity` at which the impact ends.

    The arguments of the function are the coefficient of restitution e, the normal impulse and the
    work at the end of compression, and the initial normal velocity."""

    def impulse(self, W: Array, zeta: Array) -> np.ndarray:
        W, zeta, e = _arrays(self, W, zeta)
        mu = np.broadcast_to(np.asarray(self.friction, dtype=float), e.shape)
        result = np.zeros_like(zeta)
        hits = zeta[..., 2] < 0.0
        slip, e = Slip(W[hits], zeta[hits], mu[hits]), e[hits]
        path = slip.follow(slip.start(), "velocity", np.zeros_like(e))
        end = self._goal(e, path[:, 2], path[:, 3], slip.zeta0[:, 2])
        path = slip.follow(path, self._quantity, end)
        late = np.flatnonzero(slip.measured(path, "velocity") < 0.0)
        path[late] = slip[late].follow(path[late], "velocity", np.zeros(len(late)))
        result[hits] = path[:, :3]
        return result


@dataclass(frozen=True)
class Newton(_Slipping):
    """Law that reverses the normal velocity and scales it by e (Featherstone 2008, Eq 11.65).

    Without friction, the impulse is lambda_z = -(1 + e) zeta_z / W_zz. With friction, the law can
    create energy if slip reverses (Kane and Levinson 1985), so use this law with care.

    Attributes
    ----------
    restitution : float or array_like
        Coefficient of restitution e, from 0 to 1.
    friction : float or array_like
        Coulomb's friction coefficient. Default: 0.
    """

    friction: Array = 0.0
    _quantity = "velocity"
    _goal = staticmethod(lambda e, impulse, work, before: -e * before)

    def derivatives(self, W: Array, zeta: Array) -> tuple[np.ndarray, np.ndarray]:
        """Return d lambda/dW and d lambda/dzeta, computed by central differences if mu > 0.

        Parameters
        ----------
        W : array_like, shape (..., 3, 3)
            Inverse inertia of the point (1/kg), in (tangent, tangent, normal) axes.
        zeta : array_like, shape (..., 3)
            Velocity of the point before the impact (m/s).

        Returns
        -------
        by_W : ndarray, shape (..., 3, 3, 3)
            Derivatives of the impulse (N s) with respect to the entries of W.
        by_zeta : ndarray, shape (..., 3, 3)
            Derivatives of the impulse with respect to zeta.

        Raises
        ------
        InputError
            If an array does not have the documented shape, or if W or `zeta` is not finite. If the
            bodies approach each other and W[..., 2, 2] is not positive.
        ArgumentError
            If `zeta` is not an array of real numbers.

        Examples
        --------
        >>> import numpy as np
        >>> from chasles import contact
        >>> contact.Newton(0.5, 0.0).derivatives(np.eye(3), [0.0, 0.0, -1.0])[1].shape
        (3, 3)
        """
        if np.any(np.asarray(self.friction) > 0.0):
            return super().derivatives(W, zeta)
        W, zeta, e = _arrays(self, W, zeta)
        by_W, by_zeta = np.zeros((*zeta.shape, 3, 3)), np.zeros((*zeta.shape, 3))
        hits = zeta[..., 2] < 0.0
        slope = -(1.0 + e) / W[..., 2, 2]
        by_zeta[..., 2, 2] = np.where(hits, slope, 0.0)
        by_W[..., 2, 2, 2] = np.where(hits, -slope * zeta[..., 2] / W[..., 2, 2], 0.0)
        return by_W, by_zeta


@dataclass(frozen=True)
class Poisson(_Slipping):
    """Law with Coulomb friction: the normal impulse of expansion is e times that of compression.

    Compression ends when the normal velocity is zero. If slip stops or reverses during the impact,
    the work of the normal impulse in expansion differs from e^2 times its work in compression, and
    e = 1 is not lossless (Stronge 1990).

    Attributes
    ----------
    restitution : float or array_like
        Coefficient of restitution e, from 0 to 1.
    friction : float or array_like
        Friction coefficient mu.
    """

    _quantity = "impulse"
    _goal = staticmethod(lambda e, impulse, work, before: (1.0 + e) * impulse)


@dataclass(frozen=True)
class Stronge(_Slipping):
    """Law with Coulomb friction: expansion returns e^2 times the work of compression.

    Here, work means the work of the normal impulse alone. The losses due to impact and due to
    friction are therefore separate, and neither is negative: energy is never created (Stronge 1990;
    2000, *Impact Mechanics*). Without friction, or if slip neither stops nor changes direction,
    Newton's, Poisson's and Stronge's laws agree.

    Attributes
    ----------
    restitution : float or array_like
        Coefficient of restitution e, from 0 to 1.
    friction : float or array_like
        Friction coefficient mu.
    """

    _quantity = "work"
    _goal = staticmethod(lambda e, impulse, work, before: (1.0 - e * e) * work)


def _arrays(law: Any, W: Array, zeta: Array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Check W and zeta, and return W, zeta and e with a common leading shape."""
    name = type(law).__name__
    W, zeta = np.asarray(W, dtype=float), numbers(f"{name}: zeta", zeta, 3)
    if W.shape[-2:] != (3, 3):
        problem = f"W must have shape (..., 3, 3), not {W.shape}"
        raise InputError("E-CONTACT-062", problem, part=name)
    if not (np.isfinite(W).all() and np.isfinite(zeta).all()):
        raise InputError("E-CONTACT-063", "W and zeta must be finite", part=name)
    if np.any((W[..., 2, 2] <= 0.0) & (zeta[..., 2] < 0.0)):
        problem = "W[2, 2] must be positive if the bodies approach (zeta[2] < 0)"
        raise InputError("E-CONTACT-064", problem, part=name)
    e = np.asarray(law.restitution, dtype=float)
    mu = np.asarray(getattr(law, "friction", 0.0), dtype=float)
    try:
        lead = np.broadcast_shapes(W.shape[:-2], zeta.shape[:-1], e.shape, mu.shape)
    except ValueError:
        shapes = f"W {W.shape[:-2]}, zeta {zeta.shape[:-1]}, restitution {e.shape}"
        problem = f"leading shapes do not broadcast: {shapes}, friction {mu.shape}"
        raise InputError("E-CONTACT-065", problem, part=name) from None
    wide = np.broadcast_to(W, (*lead, 3, 3))
    return wide, np.broadcast_to(zeta.astype(float), (*lead, 3)), np.broadcast_to(e, lead)


@dataclass(frozen=True)
class Moreau:
    """Law for simultaneous impacts: Coulomb's law for the mean velocity (after + e before)/(1 + e).

    As in Newton's law, each normal velocity after impact is at least -e times the velocity before
    impact; if the velocity after impact is larger, the contact has no impulse. Friction is within
    the cone, and either opposes the mean slip or makes the mean slip zero. In the latter case, slip
    is reversed and multiplied by e. The impulse opposes the mean velocity, so energy is never
    created: the change of energy is lambda.v - (1 - e)/(1 + e) lambda'W lambda/2, where v is the
    mean velocity (Moreau 1988; Glocker 2001). Without friction, this is Newton's law for
    simultaneous impacts. With friction, the law needs Clarabel (extra `contact`).

    Attributes
    ----------
    restitution : float
        Coefficient of restitution e of all contacts, from 0 to 1.
    friction : float
        Friction coefficient mu of all contacts. Default: 0.
    """

    restitution: float
    friction: float = 0.0

    def __post_init__(self) -> None:
        if fault := settle(self):
            raise InputError("E-CONTACT-038", fault, part=type(self).__name__)

    def impulse(self, W: Array, zeta: Array) -> np.ndarray:
        """Return impulses lambda (..., 3k) in N s for W (..., 3k, 3k) and zeta (..., 3k).

        Parameters
        ----------
        W : array_like, shape (..., 3k, 3k)
            Inverse inertia at the contact points (1/kg).
        zeta : array_like, shape (..., 3k)
            Velocities of the contact points before the impact (m/s).

        Returns
        -------
        ndarray, shape (..., 3k)
            Impulses (N s).

        Raises
        ------
        InputError
            If W or `zeta` does not have the documented shape, or is not finite.
        Infeasible
            If no impulses prevent penetration.
        NoUniqueMotion, ConvergenceError
            If no impulses are found.

        Examples
        --------
        >>> import numpy as np
        >>> from chasles import contact
        >>> contact.Moreau(0.5, 0.0).impulse(np.eye(3), [0.0, 0.0, -1.0])
        array([0. , 0. , 1.5])
        """
        W, zeta = _several(W, zeta)
        result = np.zeros_like(zeta)
        for place in np.ndindex(zeta.shape[:-1]):
            law = self._law(W[place], zeta[place])
            result[place] = coulomb(law.G, law.c, law.mu).ravel() if np.any(law.c) else 0.0
        return result

    def derivatives(self, W: Array, zeta: Array) -> tuple[np.ndarray, np.ndarray]:
        """Return d lambda/dW (..., 3k, 3k, 3k) and d lambda/dzeta (..., 3k, 3k).

        Parameters
        ----------
        W : array_like, shape (..., 3k, 3k)
            Inverse inertia at the contact points (1/kg).
        zeta : array_like, shape (..., 3k)
            Velocities of the contact points before the impact (m/s).

        Returns
        -------
        by_W : ndarray, shape (..., 3k, 3k, 3k)
            Derivatives of the impulses (N s) with respect to the entries of W.
        by_zeta : ndarray, shape (..., 3k, 3k)
            Derivatives of the impulses with respect to zeta.

        Raises
        ------
        InputError
            If W or `zeta` does not have the documented shape, or is not finite.
        Infeasible
            If no impulses prevent penetration.
        NoUniqueMotion, ConvergenceError
            If no impulses are found.

        Examples
        --------
        >>> import numpy as np
        >>> from chasles import contact
        >>> contact.Moreau(0.5, 0.0).derivatives(np.eye(3), [0.0, 0.0, -1.0])[1].shape
        (3, 3)
        """
        W, zeta = _several(W, zeta)
        wide = zeta.shape[-1]
        by_W, by_zeta = np.zeros((*W.shape, wide)), np.zeros_like(W)
        impulses = self.impulse(W, zeta)
        for place in np.ndindex(zeta.shape[:-1]):
            law = self._law(W[place], zeta[place])
            slopes = coulomb_slopes(law, impulses[place].reshape(-1, 3), np.eye(wide))
            by_zeta[place] = (1.0 + self.restitution) * slopes
            by_W[place] = slopes[:, :, None] * impulses[place]
        return by_W, by_zeta

    def _law(self, W: np.ndarray, zeta: np.ndarray) -> Law:
        """Return the impact as a friction problem.

        The impulses take the place of the forces, and (1 + e) times the mean velocities take the
        place of the accelerations.
        """
        n = len(zeta) // 3
        symmetric = 0.5 * (W + W.T)
        c = (1.0 + self.restitution) * zeta
        return Law(symmetric, c, np.full(n, self.friction), np.zeros((n, 2)))


def _several(W: Array, zeta: Array) -> tuple[np.ndarray, np.ndarray]:
    """Check W and zeta, and return both with a common leading shape."""
    W, zeta = np.asarray(W, dtype=float), np.asarray(zeta, dtype=float)
    wide = zeta.shape[-1] if zeta.ndim else 0
    if wide % 3 or not wide or W.shape[-2:] != (wide, wide):
        shapes = f"{W.shape} and {zeta.shape}"
        problem = f"W and zeta have shapes {shapes} instead of (..., 3k, 3k) and (..., 3k)"
        raise InputError("E-CONTACT-040", problem, part="Moreau")
    if not (np.isfinite(W).all() and np.isfinite(zeta).all()):
        raise InputError("E-CONTACT-041", "W and zeta must be finite", part="Moreau")
    lead = np.broadcast_shapes(W.shape[:-2], zeta.shape[:-1])
    return np.broadcast_to(W, (*lead, wide, wide)), np.broadcast_to(zeta, (*lead, wide))


# Collision of two bodies -------------------------------------------------------------------------


def contact_forces(point: Array, normal: Array) -> np.ndarray:
    """Return unit forces through a point along two tangents and the normal.

    See Featherstone (2008), Eq 11.68.

    Parameters
    ----------
    point : array_like, shape (..., 3)
        Contact point (m).
    normal : array_like, shape (..., 3)
        Contact normal, of any length.

    Returns
    -------
    N : ndarray, shape (..., 6, 3)
        Columns are spatial forces, moments first. The tangents are unit vectors perpendicular to
        the normal; tangents and normal form a right-handed frame.

    Raises
    ------
    InputError
        If an array does not have three entries along its last axis, or if `normal` is zero or not
        finite.
    ArgumentError
        If an argument is not an array of real numbers.

    Examples
    --------
    >>> from chasles import contact
    >>> contact.contact_forces([1.0, 0.0, 0.0], [0.0, 0.0, 1.0])[:, 2]
    array([ 0., -1.,  0.,  0.,  0.,  1.])
    """
    n = numbers("contact_forces: normal", normal, 3).astype(float)
    length = np.linalg.norm(n, axis=-1, keepdims=True)
    if not np.all(np.isfinite(length) & (length > 0.0)):
        problem = "`normal` must be finite and nonzero"
        raise InputError("E-CONTACT-029", problem, part="contact_forces")
    axes = contact_axes(n / length)
    place = numbers("contact_forces: point", point, 3)
    moments = np.cross(place[..., None, :], axes)
    return np.swapaxes(np.concatenate([moments, axes], axis=-1), -1, -2)


def collide(
    inertias: tuple[Array, Array], velocities: tuple[Array, Array], forces: Array, law: ImpactLaw
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the velocities of two bodies after a collision, and the impulse on the second.

    Parameters
    ----------
    inertias : pair of array_like, shape (..., 6, 6)
        Spatial inertias, both in the same frame; None for an immovable body.
    velocities : pair of array_like, shape (..., 6)
        Velocities before the collision, angular part first.
    forces : array_like, shape (..., 6, 3)
        Result of `contact_forces` with the normal from the first body to the second.
    law : ImpactLaw
        Law of the impact.

    Returns
    -------
    first, second : ndarray, shape (..., 6)
        Velocities after the collision.
    impulse : ndarray, shape (..., 3)
        Impulse on the second body (N s), along tangents and normal.

    Raises
    ------
    InputError
        If an array does not have the documented shape.
    ArgumentError
        If an argument is not an array of real numbers.

    Notes
    -----
    Source: Featherstone (2008), Eq 11.60 to 11.72.

    Examples
    --------
    >>> import numpy as np
    >>> from chasles import contact
    >>> N = contact.contact_forces([0.0, 0.0, 0.0], [0.0, 0.0, 1.0])
    >>> v = np.array([0.0, 0.0, 0.0, 0.0, 0.0, -2.0])
    >>> contact.collide((None, np.eye(6)), (0.0 * v, v), N, contact.Newton(0.5))[1]
    array([0., 0., 0., 0., 0., 1.])
    """
    N = np.asarray(forces, dtype=float)
    if N.shape[-2:] != (6, 3):
        problem = f"`forces` must have shape (..., 6, 3), not {N.shape}"
        raise InputError("E-CONTACT-030", problem, part="collide")
    v1, v2 = (numbers("collide: velocities", v, 6).astype(float) for v in velocities)
    B1, B2 = (_moved(inertia, N) for inertia in inertias)
    back = np.swapaxes(N, -1, -2)
    impulse = law.impulse(back @ (B1 + B2), applied(back, v2 - v1))
    return v1 - applied(B1, impulse), v2 + applied(B2, impulse), impulse


def _moved(inertia: Array, forces: np.ndarray) -> np.ndarray:
    """Return the velocity changes I^-1 N due to impulses N, or zeros if the body is immovable."""
    if inertia is None:
        return np.zeros_like(forces)
    I = np.asarray(inertia, dtype=float)
    if I.shape[-2:] != (6, 6):
        problem = f"`inertias` must have shape (..., 6, 6) or be None, not {I.shape}"
        raise InputError("E-CONTACT-035", problem, part="collide")
    return np.linalg.solve(I, forces)
