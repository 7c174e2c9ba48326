"""Laws of friction at points of contact: Coulomb's, its convex relative, pyramids, and batches.

They take the problem of `chasles.motion.solvers.cones`: G, c, mu and slip.
"""

from contextlib import suppress
from itertools import product
from typing import Any

import numpy as np
import scipy

from chasles.errors import ConvergenceError, InputError
from chasles.motion.solvers.complementarity import Infeasible, Iterated, lemke
from chasles.motion.solvers.cones import Law, allowed, checked, cone_program, length, slope

Array = Any

ACCURATE = 1e-10
"""How well Coulomb's law must hold, beside the largest |c|."""

ROUNDING = 4e-15
"""Of forces: what more they are off cannot be told where they are large beside what they change."""

ROUNDS = 100
"""Cone programs at most for Coulomb's law; one to three are usual."""

GRIP = 10.0
"""Coefficients beyond it are tried as this one first: what sticks by it sticks by more, and wide
cones are hard for cone programs."""

POLISH = 20
"""Steps of Newton's method at most after each of them."""

MANY = 12
"""Sliding contacts up to which all cases are looked at where a solution need not be unique."""


class NoUniqueMotion(InputError):
    """Coulomb's law and rigid bodies have no unique answer here (Painleve 1895)."""


class Inconsistent(NoUniqueMotion):
    """No finite force satisfies Coulomb's law: an impact without collision is due."""


class Indeterminate(NoUniqueMotion):
    """Several motions satisfy Coulomb's law; `solutions` are their normal forces."""

    def __init__(self, *text: str, solutions: np.ndarray, **place: Any) -> None:
        super().__init__(*text, **place)
        self.solutions = solutions


# Laws ------------------------------------------------------------------------------------------


def coulomb(G: Array, c: Array, mu: Array, slip: Array = None) -> np.ndarray:
    """Forces f (nc, 3 or 4) of Coulomb's law.

    Where every contact slides it is a linear complementarity problem in normal forces, its matrix
    not symmetric; without a unique motion it raises `Inconsistent` or `Indeterminate` (of more than
    12 contacts it takes what Lemke's method finds), and `NoUniqueMotion` where some contacts slide,
    others do not, and no forces are found. A load that more contacts carry than are needed
    they share by the smallest forces: a table that turns and slides on four legs. Otherwise the
    cone program is solved again and again with De Saxce's correction mu |a_t| of the normal
    acceleration (De Saxce and Feng 1998; Acary et al. 2011), each time followed by Newton's method
    (Alart and Curnier 1991), until f and a satisfy the law to 1e-10 of the largest |c|.
    """
    return _solved(Law(*checked("coulomb", G, c, mu, slip)))


def convex(G: Array, c: Array, mu: Array, slip: Array = None) -> np.ndarray:
    """Forces f (nc, 3 or 4) of the convex law: Coulomb's without De Saxce's correction.

    Of contacts that do not slide it is the `cone_program`, which always has an answer where
    contacts can be kept, the one that dissipates most (Anitescu 2006). It differs from Coulomb's
    law where a contact begins to slide: there a_n = mu |a_t| instead of 0, so that the bodies part
    as if they swelled (dilation). Contacts that slide already are dragged as by Coulomb's law.
    """
    return _solved(Law(*checked("convex", G, c, mu, slip), dilates=True))


def _solved(law: Law) -> np.ndarray:
    """Forces that satisfy a law, by cone programs and Newton's method."""
    mu, sticks = law.mu, law.sticks
    if not len(mu):
        return np.zeros((0, law.width))
    if not np.any(sticks):
        return _sliding(law)
    f = np.zeros((len(mu), law.width))
    if np.any(mu[sticks] > GRIP):
        for attempt in (_gripped, _stuck):
            with suppress(ArithmeticError, Infeasible, NoUniqueMotion, np.linalg.LinAlgError):
                f = attempt(law)
                if _holds(law, f):
                    return f
    for _ in range(ROUNDS):
        dragged = np.zeros_like(f)
        dragged[:, :-1] = -mu[:, None] * f[:, -1:] * law.slip
        moved = law.c + law.G @ dragged.ravel()
        moved[law.width - 1 :: law.width] += law.dilation(law.accelerations(f))
        f = cone_program(law.G, moved, np.where(sticks, mu, 0.0)) + dragged
        exact = _polished(law, f)
        if _holds(law, exact):
            return exact
    if np.any(law.slip):
        problem = (
            f"after {ROUNDS} cone programs no forces are found that satisfy the law to {ACCURATE}, "
            "with contacts that slide beside others that do not (Painleve's paradox, most likely)"
        )
        remedy = "make friction smaller (contact_dynamics has friction='polyhedral' too)"
        raise NoUniqueMotion("E-CONTACT-018", problem, remedy, part="friction")
    raise ConvergenceError(
        "E-CONTACT-019",
        f"after {ROUNDS} cone programs the law does not hold to {ACCURATE}, and perhaps no "
        "forces satisfy it",
        "make friction smaller, or masses less different (contact_dynamics has "
        "friction='polyhedral' too)",
        part="friction",
    )


def _holds(law: Law, f: np.ndarray, part: float = 1.0) -> bool:
    """Whether forces satisfy a law: as accurately as asked for, or as they can be written."""
    rounding = ROUNDING * np.max((1.0 + law.mu)[:, None] * np.abs(law.weight * f))
    return bool(law.residual(f) <= part * ACCURATE * np.max(np.abs(law.c)) + rounding)


def _gripped(law: Law) -> np.ndarray:
    """Forces with no more friction than `GRIP` where contacts stick."""
    return _solved(law._replace(mu=np.where(law.sticks, np.minimum(law.mu, GRIP), law.mu)))


def _stuck(law: Law) -> np.ndarray:
    """Forces with as much friction as is needed, so that contacts stick or part; none slides.

    Friction -Gtt^-1 (ct + Gtn z) leaves a complementarity problem in normal forces z; of contacts
    that part there is none.
    """
    wide, rubs = law.width, np.repeat(law.mu > 0.0, law.width)
    normal = np.arange(len(law.c)) % wide == wide - 1
    t, n = np.flatnonzero(rubs & ~normal), np.flatnonzero(normal)
    answers = np.linalg.pinv(law.G[np.ix_(t, t)], rcond=1e-12, hermitian=True) @ np.column_stack(
        [law.G[np.ix_(t, n)], law.c[t]]
    )
    M, d = (law.G[np.ix_(n, t)] @ answers)[:, :-1], law.G[np.ix_(n, t)] @ answers[:, -1]
    z = lemke(law.G[np.ix_(n, n)] - M, law.c[n] - d)
    on = np.flatnonzero((rubs | normal) & np.repeat(z > 0.0, wide))
    f = np.zeros_like(law.c)
    f[on] = -np.linalg.lstsq(law.G[np.ix_(on, on)], law.c[on], rcond=1e-12)[0]
    return f.reshape(-1, wide)


def _polished(law: Law, f: np.ndarray) -> np.ndarray:
    """The f near a given one at which the residual vanishes, if Newton's method finds it."""
    for _ in range(POLISH):
        if _holds(law, f, 1e-3):
            break
        target = law.target(law.weight * f, law.accelerations(f))
        wrong = law.weight * f - allowed(target, law.mu, law.slip)
        jacobian, _ = _linear(law, f)
        f = f - np.linalg.lstsq(jacobian, wrong.ravel(), rcond=1e-13)[0].reshape(f.shape)
    return f


def _linear(law: Law, f: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The derivatives of weight f - P(weight f - a - correction) by f, and by a given f."""
    n, wide = f.shape
    a = law.accelerations(f)
    target = law.target(law.weight * f, a)
    corrected = np.zeros((n, wide, wide)) + np.eye(wide)
    direction = a[:, :-1] / np.where(length(a[:, :-1]) > 0.0, length(a[:, :-1]), 1.0)[:, None]
    corrected[:, -1, :-1] = np.where(law.dilation(a) > 0.0, law.mu, 0.0)[:, None] * direction
    slopes = [slope(*row) for row in zip(target, law.mu, law.slip, law.sticks, strict=True)]
    scale, turned = np.diag(np.repeat(law.weight[:, 0], wide)), _diagonal(*slopes)
    by_a = turned @ _diagonal(*corrected)
    return scale - turned @ scale + by_a @ law.G, by_a


def coulomb_slopes(law: Law, f: np.ndarray, change: np.ndarray) -> np.ndarray:
    """How forces f (nc, 3) that satisfy a law change (3 nc, k) with dG f + dc (3 nc, k).

    By differentiating the law. Where a contact is just about to slide, to stick or to leave there
    is no derivative; of forces that are not unique it is the smallest.
    """
    by_f, by_a = _linear(law, f)
    slopes: np.ndarray = np.linalg.lstsq(by_f, -by_a @ change, rcond=1e-12)[0]
    return slopes


def _sliding(law: Law) -> np.ndarray:
    """Forces where every contact slides, or has no friction."""
    n = len(law.mu)
    drag = _diagonal(*np.column_stack([-law.mu[:, None] * law.slip, np.ones(n)])[:, :, None])
    normal = slice(law.width - 1, None, law.width)
    M, d = (law.G @ drag)[normal], law.c[normal]
    plain = not np.any(law.mu[:, None] * law.slip)
    if plain or n > MANY or np.linalg.eigvalsh(M + M.T)[0] > 1e-9 * np.max(np.abs(M)):
        return (drag @ lemke(M, d)).reshape(n, -1)
    return (drag @ _only(M, d, law.G @ drag)).reshape(n, -1)


def _only(M: np.ndarray, d: np.ndarray, effect: np.ndarray) -> np.ndarray:
    """The normal forces of w = M z + d, by looking at all cases.

    Answers whose forces are complementary to each other's accelerations share a load that more
    points carry than are needed, and so do all between them: the smallest is taken. Others are
    different motions, unless they accelerate all points alike.
    """
    scale = np.max(np.abs(d), initial=0.0) or 1.0
    found: list[np.ndarray] = []
    apart: list[np.ndarray] = []
    for case in product((False, True), repeat=len(d)):
        on = np.array(case)
        z = np.zeros_like(d)
        z[on] = np.linalg.lstsq(M[np.ix_(on, on)], -d[on], rcond=1e-11)[0]
        w = M @ z + d
        if np.all(z >= 0.0) and np.all(w >= -1e-9 * scale) and abs(z @ w) <= 1e-9 * scale * sum(z):
            found.append(z)
            apart.append(w)
    if not found:
        problem = "no finite forces satisfy Coulomb's law here (Painleve's paradox, inconsistent)"
        remedy = "friction drives a contact into the ground: an impact is due"
        raise Inconsistent("E-CONTACT-020", problem, remedy, part="coulomb")
    forces = np.array(found)
    motions = forces @ effect.T
    alike = np.max(np.abs(motions - motions[0])) <= 1e-6 * scale
    if not alike and np.any(forces @ np.transpose(apart) > 1e-6 * scale * np.max(forces)):
        problem = (
            f"{len(found)} sets of forces satisfy Coulomb's law here (Painleve's paradox, "
            "indeterminate)"
        )
        remedy = "rigid bodies do not say which"
        raise Indeterminate("E-CONTACT-021", problem, remedy, solutions=forces, part="coulomb")
    smallest: np.ndarray = forces[np.argmin(np.linalg.norm(forces, axis=-1))]
    return smallest


def polyhedral(G: Array, c: Array, mu: Array, slip: Array = None, *, facets: int = 8) -> np.ndarray:
    """Forces f (nc, 3 or 4) with pyramids of `facets` sides in the place of cones.

    A linear complementarity problem by Lemke's method, which always has an answer where contacts
    can be kept (Stewart and Trinkle 1996; Anitescu and Potra 1997). The pyramids stand within the
    cones: friction may be less than Coulomb's by 1 - cos(pi/facets), and its direction off by
    pi/facets. Torsion, if there is, adds one spoke to each side of their plane.
    """
    G, c, mu, slip = checked("polyhedral", G, c, mu, slip)
    if not isinstance(facets, int) or facets < 3:
        problem = f"facets must be an integer from 3 on, not {facets!r}"
        raise InputError("E-CONTACT-022", problem, part="polyhedral")
    law = Law(G, c, mu, slip)
    weight = np.max(law.weight, initial=0.0) or 1.0
    angles = 2.0 * np.pi / facets * np.arange(facets)
    spokes = np.zeros((law.width, facets))
    spokes[:2] = np.cos(angles), np.sin(angles)
    if law.width == 4:
        spokes = np.column_stack([spokes, np.eye(4)[2], -np.eye(4)[2]])
    along, seen, links = [], [], []
    for m, sliding, sticks in zip(mu, slip, law.sticks, strict=True):
        wide = spokes.shape[1] + 2 if sticks else 1
        pull, row, link = (np.zeros((k, wide)) for k in (law.width, law.width, wide))
        pull[:, 0], row[-1, 0] = (*(-m * sliding), 1.0), 1.0
        if sticks:
            pull[:, 1:-1] = row[:, 1:-1] = spokes
            link[1:-1, -1], link[-1, 0], link[-1, 1:-1] = 1.0, m, -1.0
        along.append(pull)
        seen.append(row)
        links.append(link)
    P, R, E = (
        _diagonal(*along),
        _diagonal(*seen),
        _diagonal(*links),
    )
    x = lemke(R.T @ G @ P / weight + E, R.T @ c)
    return (P @ x).reshape(-1, law.width) / weight


def cone_gauss_seidel(
    G: Array,
    c: Array,
    mu: Array,
    slip: Array = None,
    *,
    start: Array = None,
    dilates: bool = False,
    sweeps: int = 2000,
    tolerance: float = ACCURATE,
) -> Iterated:
    """Forces (..., nc, 3 or 4) of many problems, each contact projected on its cone in turn.

    G (..., 3 nc, 3 nc), c (..., 3 nc), mu (..., nc), slip (..., nc, 2); leading shapes broadcast;
    4 and 3 in the place of 3 and 2 with torsion. start (..., nc, 3): forces to begin with, such as
    those of the last step. All problems advance together, by Coulomb's law (Jourdan, Alart and Jean
    1998), or the convex one with dilates=True. It stops where every residual is below `tolerance`
    times the largest |c| of its problem, or after `sweeps`, and never raises for problems without a
    solution, whose residual stays large.
    """
    law = _batch(G, c, mu, slip, dilates)
    lead, n, wide = law.mu.shape[:-1], law.mu.shape[-1], law.width
    weight = np.broadcast_to(law.weight, (*lead, n, 1))
    f = np.zeros((*lead, n, wide))
    f[...] = 0.0 if start is None else start
    limit = tolerance * np.max(np.abs(law.c), axis=-1, initial=0.0)
    done = 0
    while np.any((far := law.residual(f)) > limit) and done < sweeps:
        for i in range(n):
            rows, one = slice(wide * i, wide * i + wide), slice(i, i + 1)
            a = (law.G[..., rows, :] @ f.reshape(*lead, wide * n, 1))[..., 0] + law.c[..., rows]
            part = law._replace(mu=law.mu[..., one], slip=law.slip[..., one, :])
            target = part.target(weight[..., one, :] * f[..., one, :], a[..., None, :])
            f[..., one, :] = allowed(target, part.mu, part.slip) / weight[..., one, :]
        done += 1
    return Iterated(f, far, done)


def _batch(G: Array, c: Array, mu: Array, slip: Array, dilates: bool) -> Law:
    """The arrays of many problems, mu and slip with all leading shapes."""
    G, c, mu = (np.asarray(a, dtype=float) for a in (G, c, mu))
    n = mu.shape[-1] if mu.ndim else -1
    wide = 4 if c.shape[-1:] == (4 * n,) else 3
    if c.shape[-1:] != (wide * n,) or G.shape[-2:] != (wide * n, wide * n):
        problem = (
            f"G {G.shape}, c {c.shape} and mu {mu.shape} must be (..., 3 nc, 3 nc), (..., 3 nc) "
            "and (..., nc)"
        )
        raise InputError("E-CONTACT-023", problem, part="cone_gauss_seidel")
    lead = np.broadcast_shapes(G.shape[:-2], c.shape[:-1], mu.shape[:-1])
    slip = np.broadcast_to(
        0.0 if slip is None else np.asarray(slip, dtype=float), (*lead, n, wide - 1)
    )
    return Law(G, c, np.broadcast_to(mu, (*lead, n)), slip, dilates)


def _diagonal(*blocks: np.ndarray) -> np.ndarray:
    """The blocks along the diagonal, zero elsewhere."""
    whole: np.ndarray = scipy.linalg.block_diag(*blocks)
    return whole
