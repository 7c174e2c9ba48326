"""Friction laws at contact points: Coulomb's law and its convex approximation.

    a = G f + c

Here, f are the contact forces and a the relative accelerations, with three components per contact:
along two tangents, then along the normal. G is symmetric. mu (nc,) are the friction coefficients. A
contact slides along `slip` (nc, 2), the unit vector of its tangential velocity; if `slip` is zero,
the contact sticks or is about to slide. Coulomb's law, with f_n >= 0, a_n >= 0 and a_n f_n = 0, is:

| the contact | its friction |
|---|---|
| slides | f_t = -mu f_n slip |
| sticks | |f_t| <= mu f_n and a_t = 0 |
| begins to slide | f_t = -mu f_n a_t/|a_t| |

A row with a finite `bound` (nc,) represents dry friction of a joint at rest, not a contact. The
normal force of such a row is between -bound and bound. The normal acceleration is zero unless the
force is at a bound; the acceleration then opposes the force.

With torsional friction there are four components per contact: the third tangent is the rotation
about the normal, scaled by a length such that the moment is also bounded by mu f_n. Forces and
moment then share one cone with ellipsoidal sections (Howe and Cutkosky 1996).
"""

from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import scipy

from chasles.errors import ConvergenceError, InputError
from chasles.motion.solvers import (
    Cone,
    Infeasible,
    NoUniqueMotion,
    checked_problem,
    cones_program,
    lemke,
    normal_forces,
)

Array = Any

REACH = 1e-13
"""Relative tolerance: entries of G and c below this fraction of the largest entry count as zero."""

ACCURATE = 1e-10
"""Tolerance for violations of Coulomb's law, relative to the largest |c|."""

ROUNDING = 4e-15
"""Relative rounding error of forces, which limits the accuracy if forces are large and cancel."""

ROUNDS = 100
"""Maximum number of cone programs for Coulomb's law; one to three are typical."""

GRIP = 10.0
"""Friction coefficient up to which cone solvers converge well. Larger coefficients are first
reduced to this value: contacts that stick with reduced friction also stick with more friction."""

LIGHT = 1e-3
"""Threshold for normal forces, relative to the largest normal force. A contact with a smaller
force may be separating."""

POLISH = 20
"""Maximum number of Newton steps that refine the solution of each cone program."""


# Friction problem ---------------------------------------------------------------------------------


class Law(NamedTuple):
    """Friction problem a = G f + c of one state or a batch, with Coulomb's law or the convex law.

    Attributes
    ----------
    G : array, shape (..., 3 nc, 3 nc)
        Delassus matrix; with torsion, 4 nc instead of 3 nc.
    c : array, shape (..., 3 nc)
        Accelerations without contact forces (m/s2).
    mu : array, shape (..., nc)
        Friction coefficients.
    slip : array, shape (..., nc, 2)
        Unit slip directions, zero for contacts that do not slide.
    dilates : bool
        True for the convex law, False for Coulomb's law.
    bound : array, shape (..., nc)
        Largest dry friction torque or force of joints at rest (N m or N); infinite for contacts.
    """

    G: np.ndarray
    c: np.ndarray
    mu: np.ndarray
    slip: np.ndarray
    dilates: bool = False
    bound: Array = np.inf

    @staticmethod
    def checked(
        name: str,
        G: Array,
        c: Array,
        mu: Array,
        slip: Array = None,
        dilates: bool = False,
        bound: Array = np.inf,
    ) -> "Law":
        """Check the arrays of a single friction problem, and return a `Law`.

        Error messages begin with the function name `name`.
        """
        mu = np.atleast_1d(np.asarray(mu, dtype=float))
        n = len(mu)
        G, c = checked_problem(name, G, c)
        wide = 4 if n and len(c) == 4 * n else 3
        slip = np.zeros((n, wide - 1)) if slip is None else np.asarray(slip, dtype=float)
        if mu.shape != (n,) or len(c) != wide * n or slip.shape != (n, wide - 1):
            needed = f"c ({3 * n},) and slip ({n}, 2), or with torsion c ({4 * n},), slip ({n}, 3)"
            problem = f"for {n} contacts, pass {needed}, not c {c.shape} and slip {slip.shape}"
            raise InputError("E-CONTACT-010", problem, part=name)
        if not (np.all(mu >= 0.0) and np.all(np.isfinite(mu)) and np.all(np.isfinite(slip))):
            problem = "`mu` must be finite and non-negative, and `slip` must be finite"
            raise InputError("E-CONTACT-011", problem, part=name)
        bound = np.broadcast_to(np.asarray(bound, dtype=float), (n,))
        if not np.all((bound >= 0.0) & (np.isinf(bound) | (mu == 0.0))):
            problem = (
                "`bound` must be non-negative, and `mu` must be 0 for entries with a finite bound"
            )
            raise InputError("E-CONTACT-089", problem, part=name)
        for k in out_of_reach(G, c, wide)[np.isinf(bound[out_of_reach(G, c, wide)])]:
            problem = f"the bodies at contact {k} approach, and no contact force can separate them"
            remedy = "check that the joints allow the bodies to separate"
            raise Infeasible("E-CONTACT-012", problem, remedy, ray=np.eye(n)[k], part=name)
        return Law(G, c, mu, slip, dilates, bound)

    @property
    def sticks(self) -> np.ndarray:
        """Mask of the contacts that have friction and do not slide."""
        return (self.mu > 0.0) & ~np.any(self.slip != 0.0, axis=-1)

    @property
    def width(self) -> int:
        """Number of force components per contact: 3, or 4 with torsion."""
        return self.slip.shape[-1] + 1

    @property
    def weight(self) -> np.ndarray:
        """Positive upper bounds (..., nc, 1) on the eigenvalues of the diagonal blocks of G."""
        n, wide = self.mu.shape[-1], self.width
        blocks = self.G.reshape(*self.G.shape[:-2], n, wide, n, wide)
        own = np.stack([blocks[..., i, :, i, :] for i in range(n)], axis=-3)
        size = np.linalg.norm(own, axis=(-1, -2))[..., None]
        return np.where(size > 0.0, size, 1.0)

    def accelerations(self, f: np.ndarray) -> np.ndarray:
        """Return a = G f + c, with the shape of f."""
        flat = f.reshape(*f.shape[:-2], -1, 1)
        return ((self.G @ flat)[..., 0] + self.c).reshape(f.shape)

    def dilation(self, a: np.ndarray) -> np.ndarray:
        """Return De Saxce's correction mu |a_t| (..., nc) of the normal accelerations."""
        return np.where(self.sticks & (not self.dilates), self.mu * length(a[..., :-1]), 0.0)

    def residual(self, f: np.ndarray) -> np.ndarray:
        """Return the largest residual of the friction law for the forces f.

        For a batch, this is an array with one residual for each state. Residuals have units of
        acceleration.
        """
        return np.max(np.abs(self.miss(f)), axis=(-1, -2), initial=0.0)

    def miss(self, f: np.ndarray) -> np.ndarray:
        """Return the residual of the friction law for forces f: zero for a solution.

        The residual is weight f - P(weight f - a - correction), in units of acceleration. The
        vector a contains the contact accelerations, P is the projection `allowed`, and the
        correction is `dilation`.
        """
        scaled = self.weight * f
        return scaled - self.allowed(self.target(scaled, self.accelerations(f)))

    def target(self, scaled: np.ndarray, a: np.ndarray) -> np.ndarray:
        """Return the argument of the projection `allowed`, which yields admissible forces.

        The argument is the difference of the forces `scaled`, which have units of acceleration, and
        the accelerations `a`. In the normal component, `dilation` is also subtracted.
        """
        target = scaled - a
        target[..., -1] -= self.dilation(a)
        return target

    def allowed(self, target: np.ndarray) -> np.ndarray:
        """Return the forces `target` (..., nc, 3), replaced by forces that the law allows.

        At contacts that stick, forces are projected onto the friction cone. At all other contacts,
        normal forces are clamped to their bounds, and sliding friction is computed from them.
        """
        normal = np.maximum(target[..., -1:], 0.0)
        if np.any(np.isfinite(self.bound)):
            low, high = (x[..., None] for x in self.bounds)
            normal = np.clip(target[..., -1:], self.weight * low, self.weight * high)
        dragged = np.concatenate([-self.mu[..., None] * normal * self.slip, normal], axis=-1)
        return np.where(self.sticks[..., None], project(target, self.mu), dragged)

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper bounds on the normal forces, each of shape (..., nc)."""
        high = np.broadcast_to(self.bound, self.mu.shape)
        return np.where(np.isinf(high), 0.0, -high), high


def project(f: Array, mu: Array) -> np.ndarray:
    """Return the point of the friction cone |f_t| <= mu f_n nearest to a force.

    Parameters
    ----------
    f : array_like, shape (..., 3) or (..., 4)
        Forces: tangents, then normal.
    mu : array_like
        Friction coefficients; shapes broadcast.

    Returns
    -------
    f : ndarray
        Projected forces, of the same shape.

    Examples
    --------
    >>> from chasles import contact
    >>> contact.project([2.0, 0.0, 1.0], 0.5)
    array([0.8, 0. , 1.6])
    """
    f, mu = np.asarray(f, dtype=float), np.asarray(mu, dtype=float)
    normal, size = f[..., -1], length(f[..., :-1])
    s = np.maximum(normal + mu * size, 0.0) / (1.0 + mu * mu)
    ratio = mu * s / np.where(size > 0.0, size, 1.0)
    on_cone = np.concatenate([ratio[..., None] * f[..., :-1], s[..., None]], axis=-1)
    return np.where((size <= mu * normal)[..., None], f, on_cone)


def slope(
    target: np.ndarray, mu: float, slip: np.ndarray, sticks: bool, low: float, high: float
) -> np.ndarray:
    """Return the Jacobian (3, 3) or (4, 4) of the projection `Law.allowed` for one contact."""
    wide, size = len(target), float(length(target[:-1]))
    if not sticks:
        return np.outer([*(-mu * slip), 1.0], float(low < target[-1] < high) * np.eye(wide)[-1])
    if size <= mu * target[-1]:
        return np.eye(wide)
    if target[-1] + mu * size <= 0.0:
        return np.zeros((wide, wide))
    u = target[:-1] / size
    edge = np.array([*(mu * u), 1.0])
    slope = np.outer(edge, edge) / (1.0 + mu * mu)
    across = np.eye(wide - 1) - np.outer(u, u)
    slope[:-1, :-1] += mu * (edge @ target) / (1.0 + mu * mu) / size * across
    return slope


def out_of_reach(G: np.ndarray, c: np.ndarray, wide: int) -> np.ndarray:
    """Return the indices of approaching contacts that no contact force can separate."""
    still = np.diagonal(G)[wide - 1 :: wide] <= REACH * np.max(np.diagonal(G), initial=0.0)
    closes = c[wide - 1 :: wide] < -REACH * np.max(np.abs(c), initial=0.0)
    return np.flatnonzero(still & closes)


def length(v: np.ndarray) -> np.ndarray:
    return np.linalg.norm(v, axis=-1)


# Friction laws ---------------------------------------------------------------------------------


def coulomb(
    G: Array, c: Array, mu: Array, slip: Array = None, *, bound: Array = np.inf
) -> np.ndarray:
    """Return contact forces f that satisfy Coulomb's law for accelerations a = G f + c.

    Parameters
    ----------
    G : array_like, shape (3 nc, 3 nc)
        Delassus matrix, in contact axes (tangents, then normal).
    c : array_like, shape (3 nc,)
        Accelerations of the contact points without contact forces (m/s2).
    mu : array_like, shape (nc,)
        Friction coefficients.
    slip : array_like, shape (nc, 2), optional
        Unit slip directions, zero for contacts that stick. Default: no contact slides.
    bound : array_like, optional
        Largest friction forces or torques of joints at rest; infinite for contacts.

    Returns
    -------
    f : ndarray, shape (nc, 3) or (nc, 4)
        Contact forces: tangential components, then normal. With torsion, the third of the four
        columns is the moment about the normal divided by a length, the ratio of the torsional
        friction coefficient (m) to `mu`.

    Raises
    ------
    Inconsistent, Indeterminate
        If all contacts slide and there is no unique motion.
    NoUniqueMotion
        If some contacts slide, others do not, and no forces are found.
    InputError
        If an array does not have the documented shape, if `mu` or `bound` is negative, or if `mu`
        or `slip` is not finite.
    Infeasible
        If no forces prevent penetration.
    ConvergenceError
        If no contact slides, and no forces are found.
    MissingPackageError
        If clarabel is not installed.

    Notes
    -----
    If every contact slides, the normal forces solve a linear complementarity problem with an
    asymmetric matrix. With more than 12 contacts, it is solved by Lemke's method. If
    redundant contacts share a load, as for a table that turns and slides on four legs, the smallest
    forces are returned.

    If a contact with friction does not slide, a cone program is solved repeatedly with De Saxce's
    correction mu |a_t| of the normal acceleration (De Saxce and Feng 1998; Acary et al. 2011). Each
    solution is refined by Newton's method (Alart and Curnier 1991). The iteration ends when f and a
    satisfy the law to within 1e-10 of the largest |c|.

    Examples
    --------
    >>> import numpy as np
    >>> from chasles import contact
    >>> contact.coulomb(np.eye(3), [1.0, 0.0, -9.81], [0.5]).round(6)
    array([[-1.  ,  0.  ,  9.81]])
    """
    return _solved(Law.checked("coulomb", G, c, mu, slip, bound=bound))


def convex(G: Array, c: Array, mu: Array, slip: Array = None) -> np.ndarray:
    """Return contact forces for the convex law: Coulomb's law without De Saxce's correction.

    Parameters
    ----------
    G : array_like, shape (3 nc, 3 nc)
        Delassus matrix, in contact axes (tangents, then normal).
    c : array_like, shape (3 nc,)
        Accelerations of the contact points without contact forces (m/s2).
    mu : array_like, shape (nc,)
        Friction coefficients.
    slip : array_like, shape (nc, 2), optional
        Unit slip directions, as in `coulomb`.

    Returns
    -------
    f : ndarray, shape (nc, 3) or (nc, 4)
        Contact forces: tangential components, then normal. With torsion, the third of the four
        columns is the moment about the normal divided by a length, the ratio of the torsional
        friction coefficient (m) to `mu`.

    Raises
    ------
    InputError
        If an array does not have the documented shape, if `mu` is negative, or if `mu` or `slip` is
        not finite.
    Inconsistent, Indeterminate
        If all contacts slide and there is no unique motion.
    NoUniqueMotion
        If some contacts slide, others do not, and no forces are found.
    Infeasible
        If no forces prevent penetration.
    ConvergenceError
        If no contact slides, and no forces are found.
    MissingPackageError
        If clarabel is not installed.

    Notes
    -----
    If no contact slides, the forces are the solution of `cone_program`. A solution exists whenever
    contacts can be maintained, and it dissipates the most energy (Anitescu 2006). The convex law
    differs from Coulomb's law where a contact begins to slide: a_n is mu |a_t| instead of 0, so the
    bodies separate (dilation). At sliding contacts, friction is the same as in Coulomb's law.

    Examples
    --------
    >>> import numpy as np
    >>> from chasles import contact
    >>> contact.convex(np.eye(3), [1.0, 0.0, -9.81], [0.5]).round(6)
    array([[-1.  ,  0.  ,  9.81]])
    """
    return _solved(Law.checked("convex", G, c, mu, slip, dilates=True))


def _solved(law: Law) -> np.ndarray:
    """Solve a friction problem by cone programs and Newton's method, and return the forces."""
    mu, sticks = law.mu, law.sticks
    if not len(mu):
        return np.zeros((0, law.width))
    if not np.any(sticks):
        return _sliding(law)
    f = np.zeros((len(mu), law.width))
    if np.any(mu[sticks] > GRIP):
        gripped = law._replace(mu=np.where(sticks, np.minimum(mu, GRIP), mu))
        for attempt, tried in ((_solved, gripped), (_stuck, law)):
            with suppress(ArithmeticError, Infeasible, NoUniqueMotion, np.linalg.LinAlgError):
                f = attempt(tried)
                if _holds(law, f):
                    return f
    for _ in range(ROUNDS):
        dragged = np.zeros_like(f)
        dragged[:, :-1] = -mu[:, None] * f[:, -1:] * law.slip
        moved = law.c + law.G @ dragged.ravel()
        moved[law.width - 1 :: law.width] += law.dilation(law.accelerations(f))
        f = _program(law._replace(c=moved, mu=np.where(sticks, mu, 0.0))) + dragged
        for refined in (_polished, _parted):
            exact = refined(law, f)
            if _holds(law, exact):
                return exact
    found = (
        f"{ROUNDS} cone programs found no forces that satisfy the friction law to within {ACCURATE}"
    )
    if np.any(law.slip):
        problem = f"{found}; sliding contacts probably cause Painleve's paradox"
        remedy = (
            "reduce the friction, simulate with integrator='time-stepping', "
            "or use contact_dynamics with friction='polyhedral'"
        )
        raise NoUniqueMotion("E-CONTACT-018", problem, remedy, part="friction")
    remedy = "reduce the friction or the mass ratio, or use friction='polyhedral'"
    raise ConvergenceError("E-CONTACT-019", found, remedy, part="friction")


def _holds(law: Law, f: np.ndarray, part: float = 1.0) -> bool:
    """Return True if the residual of a law is within a tolerance.

    The tolerance is `part` * `ACCURATE` times the largest |c|, plus a bound on rounding errors.
    """
    rounding = ROUNDING * np.max((1.0 + law.mu)[:, None] * np.abs(law.weight * f))
    return bool(law.residual(f) <= part * ACCURATE * np.max(np.abs(law.c)) + rounding)


def _stuck(law: Law) -> np.ndarray:
    """Return the forces for unlimited friction, where every contact either sticks or separates.

    The friction forces are -Gtt^-1 (ct + Gtn z), which leaves a complementarity problem in the
    normal forces z. Separating contacts have no friction.
    """
    wide, rubs = law.width, np.repeat(law.mu > 0.0, law.width)
    normal = np.arange(len(law.c)) % wide == wide - 1
    t, n = np.flatnonzero(rubs & ~normal), np.flatnonzero(normal)
    G = law.G[np.ix_(n, t)]
    held = G @ np.linalg.pinv(law.G[np.ix_(t, t)], rcond=1e-12, hermitian=True)
    z = lemke(law.G[np.ix_(n, n)] - held @ G.T, law.c[n] - held @ law.c[t])
    on = np.flatnonzero((rubs | normal) & np.repeat(z > 0.0, wide))
    f = np.zeros_like(law.c)
    f[on] = -np.linalg.lstsq(law.G[np.ix_(on, on)], law.c[on], rcond=1e-12)[0]
    return f.reshape(-1, wide)


def _parted(law: Law, f: np.ndarray) -> np.ndarray:
    """Refine contact forces by Newton's method, with zero force where the normal force is tiny.

    The cone solver leaves a small force at a contact that separates with an acceleration near zero.
    Newton's method would keep such a contact closed, so the contact is left out.
    """
    on = np.abs(f[:, -1]) > LIGHT * np.max(np.abs(f[:, -1]))
    rows, bound = np.repeat(on, law.width), np.broadcast_to(law.bound, law.mu.shape)
    G, c = law.G[np.ix_(rows, rows)], law.c[rows]
    found = np.zeros_like(f)
    if np.any(on):
        found[on] = _polished(Law(G, c, law.mu[on], law.slip[on], law.dilates, bound[on]), f[on])
    return found


def _polished(law: Law, f: np.ndarray) -> np.ndarray:
    """Refine forces f by at most `POLISH` steps of Newton's method, until the residual is small."""
    for _ in range(POLISH):
        if _holds(law, f, 1e-3):
            break
        jacobian, _ = _linear(law, f)
        f = f - np.linalg.lstsq(jacobian, law.miss(f).ravel(), rcond=1e-13)[0].reshape(f.shape)
    return f


def _linear(law: Law, f: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return two derivatives of `Law.miss`, the violation of the friction law.

    The first is the total derivative with respect to the forces `f`. The second is the partial
    derivative with respect to the accelerations `a`.
    """
    n, wide = f.shape
    a = law.accelerations(f)
    target = law.target(law.weight * f, a)
    corrected = np.zeros((n, wide, wide)) + np.eye(wide)
    direction = a[:, :-1] / np.where(length(a[:, :-1]) > 0.0, length(a[:, :-1]), 1.0)[:, None]
    corrected[:, -1, :-1] = np.where(law.dilation(a) > 0.0, law.mu, 0.0)[:, None] * direction
    low, high = (law.weight[:, 0] * x for x in law.bounds)
    each = zip(target, law.mu, law.slip, law.sticks, low, high, strict=True)
    slopes = [slope(*row) for row in each]
    scale, turned = np.diag(np.repeat(law.weight[:, 0], wide)), scipy.linalg.block_diag(*slopes)
    by_a = turned @ scipy.linalg.block_diag(*corrected)
    return scale - turned @ scale + by_a @ law.G, by_a


def coulomb_slopes(law: Law, f: np.ndarray, change: np.ndarray) -> np.ndarray:
    """Return the derivatives (3 nc, k) of the solution f (nc, 3) of a friction problem.

    `change` (3 nc, k) contains the derivatives dG f + dc of the accelerations at constant f. The
    derivatives do not exist if a contact is about to slide, stick or separate. If the linear system
    has several solutions, the smallest is returned.
    """
    by_f, by_a = _linear(law, f)
    slopes: np.ndarray = np.linalg.lstsq(by_f, -by_a @ change, rcond=1e-12)[0]
    return slopes


def _sliding(law: Law) -> np.ndarray:
    """Return the forces of a problem in which every contact slides or is frictionless."""
    n, along = len(law.mu), -law.mu[:, None] * law.slip
    drag = scipy.linalg.block_diag(*np.column_stack([along, np.ones(n)])[:, :, None])
    normal = slice(law.width - 1, None, law.width)
    effect = law.G @ drag
    z = normal_forces(effect[normal], law.c[normal], *law.bounds, effect, bool(np.any(along)))
    return (drag @ z).reshape(n, -1)


def cone_program(G: Array, c: Array, mu: Array) -> np.ndarray:
    """Return forces that minimize f'G f / 2 + f'c over the cones |f_t| <= mu f_n.

    Parameters
    ----------
    G : array_like, shape (3 nc, 3 nc)
        Symmetric positive semidefinite matrix.
    c : array_like, shape (3 nc,)
        Linear term.
    mu : array_like, shape (nc,)
        Friction coefficients.

    Returns
    -------
    f : ndarray, shape (nc, 3) or (nc, 4)
        Forces. The minimum is accurate to about nine digits, the forces themselves to about five.

    Raises
    ------
    Infeasible
        If the program is unbounded: no forces prevent penetration.
    InputError
        If an array does not have the documented shape, if `mu` is negative, or if `mu` or `slip` is
        not finite.
    ConvergenceError
        If clarabel finds no solution.
    MissingPackageError
        If clarabel is not installed.

    Notes
    -----
    The program is solved by Clarabel (extra `contact`). The friction law `convex` is based on it.

    Examples
    --------
    >>> import numpy as np
    >>> from chasles import contact
    >>> contact.cone_program(np.eye(3), [1.0, 0.0, -9.81], [0.5]).round(6)
    array([[-1.  ,  0.  ,  9.81]])
    """
    return _program(Law.checked("cone_program", G, c, mu))


def _program(law: Law) -> np.ndarray:
    """Solve the cone program of a friction problem, ignoring slip."""
    G, c, mu = law[:3]
    rubs = (mu > 0.0)[:, None] & (np.diagonal(G).reshape(-1, law.width)[:, :-1] > 0.0)
    used = np.column_stack([rubs, np.ones(len(mu), dtype=bool)]).ravel()
    unit = np.repeat(1.0 / np.sqrt(law.weight[:, 0]), law.width)[used]
    size = np.max(np.abs(unit * c[used])) or 1.0
    P = unit[:, None] * G[np.ix_(used, used)] * unit
    high = law.bounds[1] * np.sqrt(law.weight[:, 0]) / size
    wide = 1 + np.sum(rubs, axis=1)
    parts = np.split(np.eye(len(P)), np.cumsum(wide)[:-1])
    cones = [_cone(*row) for row in zip(parts, mu, high, strict=True)]
    f = np.zeros_like(c)
    f[used] = size * unit * cones_program(P, unit * c[used] / size, cones)
    return f.reshape(-1, law.width)


def _cone(part: np.ndarray, mu: float, bound: float) -> Cone:
    """Return the friction cone of a contact, or the force bounds of a joint with dry friction.

    The rows of `part` select the force components of the contact, with the normal component last.
    """
    if np.isfinite(bound):
        return Cone(np.vstack([part, -part]), np.full(2, bound), True)
    if len(part) == 1:
        return Cone(part, np.zeros(1), True)
    return Cone(np.vstack([mu * part[-1:], part[:-1]]), np.zeros(len(part)), False)
