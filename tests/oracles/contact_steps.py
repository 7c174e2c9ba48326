"""Time stepping of free rigid bodies in NumPy, with three friction laws for comparison.

The state of a body is its center, rotation, velocity and angular velocity in world coordinates. A
step solves M (v - v*) = J' g(J v) for the velocities v at its end, where g is

    lagged       normal (bound - v_n)+ / R_n; friction -min(mu f / |v_t|, 1 / R_t) v_t, with f the
                 normal impulse: Coulomb's law, by convex problems in which f is constant
    associated   projection onto the cone of Drake's SAP and MuJoCo (Castro and others 2022)
    gauss-seidel rigid contact and Coulomb's law, by many projected sweeps

This module shares no code with the library.
"""

from dataclasses import dataclass, field

import numpy as np

GRAVITY = np.array([0.0, 0.0, -9.81])
NORMAL, TANGENT = 1e-4, 1e-4
"""Normal and tangential compliance of a contact, relative to its inverse mass."""
RELEASE, FASTEST = 0.2, 0.5
"""Fraction of a penetration that one step removes, and the largest speed of removal (m/s)."""


@dataclass
class Body:
    """Free body with principal moments of inertia: a ball with a radius, or a box with `half`.

    `half` contains half of the edge lengths.
    """

    mass: float
    moments: np.ndarray
    x: np.ndarray
    radius: float = 0.0
    half: np.ndarray = field(default_factory=lambda: np.zeros(3))
    R: np.ndarray = field(default_factory=lambda: np.eye(3))
    v: np.ndarray = field(default_factory=lambda: np.zeros(3))
    w: np.ndarray = field(default_factory=lambda: np.zeros(3))


def brick(mass, edges, x, **more):
    a, b, c = np.array(edges) ** 2
    moments = mass / 12.0 * np.array([b + c, a + c, a + b])
    return Body(mass, moments, np.array(x, float), half=np.array(edges) / 2.0, **more)


def ball(mass, radius, x, **more):
    return Body(mass, np.full(3, 0.4 * mass * radius**2), np.array(x, float), radius, **more)


@dataclass
class Contact:
    """Contact of body a with body b (None: the world) at a point; the normal points to a."""

    a: int
    b: int | None
    point: np.ndarray
    normal: np.ndarray
    gap: float
    friction: float
    restitution: float = 0.0


def on_plane(bodies, normal, friction, restitution=0.0):
    """Return the contacts of corners and balls with a plane through the origin."""
    n, found = np.array(normal, float), []
    signs = np.array(np.meshgrid(*[(-1.0, 1.0)] * 3)).reshape(3, -1).T
    for k, body in enumerate(bodies):
        arms = [-body.radius * n] if body.radius else list((signs * body.half) @ body.R.T)
        for arm in arms:
            point = body.x + arm
            found.append(Contact(k, None, point, n, float(n @ point), friction, restitution))
    return found


def stacked(lower, upper, a, b, friction):
    """Return contacts between corners of an upper brick and the top of a nearly level one."""
    n, found = lower.R[:, 2], []
    for sx in (-1.0, 1.0):
        for sy in (-1.0, 1.0):
            point = upper.x + upper.R @ (np.array([sx, sy, -1.0]) * upper.half)
            gap = float(n @ (point - lower.x) - lower.half[2])
            found.append(Contact(b, a, point, n, gap, friction))
    return found


def between_balls(bodies, friction=0.0, restitution=0.0):
    found = []
    for i in range(len(bodies)):
        for j in range(i):
            d = bodies[i].x - bodies[j].x
            far = np.linalg.norm(d)
            gap, n = far - bodies[i].radius - bodies[j].radius, d / far
            point = bodies[j].x + bodies[j].radius * n
            found.append(Contact(i, j, point, n, gap, friction, restitution))
    return found


def skew(r):
    return np.array([[0.0, -r[2], r[1]], [r[2], 0.0, -r[0]], [-r[1], r[0], 0.0]])


def axes_of(n):
    t = np.cross(n, np.eye(3)[np.argmin(np.abs(n))])
    t /= np.linalg.norm(t)
    return np.stack([t, np.cross(n, t), n])


class Problem:
    """Data of a step: M, free velocities, Jacobians (3 rows per contact), bounds."""

    def __init__(self, bodies, contacts, dt, loads=None):
        n = len(bodies)
        self.M, self.v0, f = np.zeros((6 * n, 6 * n)), np.zeros(6 * n), np.zeros(6 * n)
        for k, body in enumerate(bodies):
            inertia = body.R @ np.diag(body.moments) @ body.R.T
            at = slice(6 * k, 6 * k + 6)
            self.M[at, at][:3, :3], self.M[at, at][3:, 3:] = inertia, body.mass * np.eye(3)
            self.v0[at] = [*body.w, *body.v]
            f[at] = [*-np.cross(body.w, inertia @ body.w), *body.mass * GRAVITY]
        f += 0.0 if loads is None else loads
        self.free = self.v0 + dt * np.linalg.solve(self.M, f)
        self.contacts, self.dt = contacts, dt
        self.J = np.zeros((len(contacts), 3, 6 * n))
        for row, c in zip(self.J, contacts, strict=True):
            E = axes_of(c.normal)
            for k, sign in ((c.a, 1.0), (c.b, -1.0)):
                if k is not None:
                    row[:, 6 * k : 6 * k + 3] += sign * E @ -skew(c.point - bodies[k].x)
                    row[:, 6 * k + 3 : 6 * k + 6] += sign * E
        W = np.einsum("kin,knj->kij", self.J, np.linalg.solve(self.M, np.swapaxes(self.J, 1, 2)))
        self.W = W
        self.w = np.trace(W, axis1=1, axis2=2) / 3.0
        self.mu = np.array([c.friction for c in contacts])
        gap = np.array([c.gap for c in contacts])
        self.bound = np.where(gap > 0.0, -gap / dt, np.minimum(-RELEASE * gap / dt, FASTEST))
        before, ahead = self.J[:, 2] @ self.v0, self.J[:, 2] @ self.free
        e = np.array([c.restitution for c in contacts])
        # Stored velocities are those of half a step earlier, which makes free fall exact.
        self.a = (self.free - self.v0) / dt
        u, a = 0.5 * (before + ahead), (ahead - before) / dt
        root = np.sqrt(np.maximum(u * u - 2.0 * a * gap, 0.0))
        when = 2.0 * np.maximum(gap, 0.0) / np.maximum(root - u, 1e-12)
        hit = -(u + a * when)
        strikes = (gap + dt * ahead < 0.0) & (hit > 2.0 * 9.81 * dt) & (e > 0.0)
        leave = e * hit + a * (0.5 * dt - when)
        self.bound = np.where(strikes, np.maximum(leave, self.bound), self.bound)
        self.early = min(dt, float(np.min(when[strikes]))) if strikes.any() else 0.0


def lagged(p, tolerance=1e-10, most=200):
    """Solve by Newton's method with an exact line search.

    Return velocities, impulses (k, 3) and the number of iterations.
    """
    Rn, Rt = NORMAL * p.w, TANGENT * p.w
    v = p.v0.copy()
    size = np.sqrt(np.diag(p.M))

    def normal(vc):
        return np.maximum(p.bound - vc[:, 2], 0.0) / Rn

    def friction(vc, f):
        speed = np.linalg.norm(vc[:, :2], axis=1)
        return np.minimum(p.mu * f / np.maximum(speed, 1e-300), 1.0 / Rt), speed

    def impulses(vc, f):
        k, _ = friction(vc, f)
        return np.column_stack([-k[:, None] * vc[:, :2], normal(vc)])

    def gradient(v, f):
        vc = p.J @ v
        return p.M @ (v - p.free) - np.einsum("kin,ki->n", p.J, impulses(vc, f)), vc

    scale = np.linalg.norm(size * p.free) + np.linalg.norm(size * p.v0) + 1e-12
    count = -1
    while (count := count + 1) < most:
        f = normal(p.J @ v)
        g, vc = gradient(v, f)
        if np.linalg.norm(g / size) <= tolerance * scale:
            break
        k, speed = friction(vc, f)
        G = np.zeros((len(vc), 3, 3))
        G[:, 2, 2] = np.where(vc[:, 2] < p.bound, 1.0 / Rn, 0.0)
        G[:, 0, 0] = G[:, 1, 1] = k
        slides = (k < 1.0 / Rt) & (speed > 0.0)
        t = vc[:, :2] / np.maximum(speed, 1e-300)[:, None]
        G[:, :2, :2] -= np.where(slides, k, 0.0)[:, None, None] * t[:, :, None] * t[:, None, :]
        H = p.M + np.einsum("kin,kij,kjm->nm", p.J, G, p.J)
        d = -np.linalg.solve(H, g)
        low, high = 0.0, 1.0
        for _ in range(60):
            slope = gradient(v + high * d, f)[0] @ d
            if slope <= 0.0 or high > 1e3:
                break
            middle = 0.5 * (low + high)
            if gradient(v + middle * d, f)[0] @ d > 0.0:
                high = middle
            else:
                low = middle
            if high - low < 1e-12:
                break
        v = v + (high if slope <= 0.0 else low or high) * d
    return v, impulses(p.J @ v, f), count


def associated(p, most=100):
    """Solve with SAP's cone and compliances, by a damped Newton method on SAP's potential."""
    Rn, Rt = NORMAL * p.w, TANGENT * p.w

    def impulses(vc):
        y = np.column_stack([-vc[:, :2] / Rt[:, None], (p.bound - vc[:, 2]) / Rn])
        r, yn = np.linalg.norm(y[:, :2], axis=1), y[:, 2]
        m = p.mu * Rt / Rn  # the polar cone in the metric of R
        gn = (yn + p.mu * (Rt / Rn) * r) / (1.0 + p.mu**2 * Rt / Rn)
        slide = np.column_stack([(p.mu * gn / np.maximum(r, 1e-300))[:, None] * y[:, :2], gn])
        stick = r <= p.mu * yn
        apart = yn < -m * r
        return np.where(stick[:, None], y, np.where(apart[:, None], 0.0, slide))

    v = p.v0.copy()

    def gradient(v):
        return p.M @ (v - p.free) - np.einsum("kin,ki->n", p.J, impulses(p.J @ v))

    count = -1
    while (count := count + 1) < most:
        g = gradient(v)
        if np.linalg.norm(g) < 1e-11 * (1.0 + np.linalg.norm(p.M @ p.free)):
            break
        vc, h = p.J @ v, 1e-7
        G = np.stack(
            [(impulses(vc - h * e) - impulses(vc + h * e)) / (2.0 * h) for e in np.eye(3)], axis=2
        )
        H = p.M + np.einsum("kin,kij,kjm->nm", p.J, 0.5 * (G + np.swapaxes(G, 1, 2)), p.J)
        d = -np.linalg.solve(H, g)
        low, high = 0.0, 1.0
        if gradient(v + d) @ d > 0.0:
            for _ in range(50):
                middle = 0.5 * (low + high)
                low, high = (low, middle) if gradient(v + middle * d) @ d > 0.0 else (middle, high)
        v = v + high * d
    return v, impulses(p.J @ v), count


def gauss_seidel(p, sweeps=2000):
    """Solve rigid contact by projected sweeps, one contact at a time, normal before friction."""
    g, v = np.zeros((len(p.contacts), 3)), p.free.copy()
    back = np.linalg.solve(p.M, p.J.reshape(-1, p.J.shape[2]).T).T.reshape(p.J.shape)
    for _ in range(sweeps):
        for k, (J, W) in enumerate(zip(p.J, p.W, strict=True)):
            new = g[k].copy()
            new[2] = max(0.0, g[k, 2] + (p.bound[k] - J[2] @ v) / W[2, 2])
            wt = 0.5 * (W[0, 0] + W[1, 1])
            new[:2] = g[k, :2] - (J[:2] @ v) / wt
            size, most = np.linalg.norm(new[:2]), p.mu[k] * new[2]
            new[:2] *= 1.0 if size <= most else most / size
            v = v + (new - g[k]) @ back[k]
            g[k] = new
    return v, g, sweeps


def advanced(bodies, p, v):
    """Return the bodies after a step: free motion until the first impact, then velocity v."""
    t, rest = p.early, p.dt - p.early
    way = t * (p.v0 + 0.5 * p.a * (p.dt + t)) + rest * (v + 0.5 * p.a * t)
    moved = []
    for k, body in enumerate(bodies):
        turn, shift = way[6 * k : 6 * k + 3], way[6 * k + 3 : 6 * k + 6]
        angle = np.linalg.norm(turn)
        S = skew(turn / angle) if angle else np.zeros((3, 3))
        spin = np.eye(3) + np.sin(angle) * S + (1.0 - np.cos(angle)) * S @ S
        new = {"x": body.x + shift, "R": spin @ body.R, "w": v[6 * k : 6 * k + 3]}
        same = {"v": v[6 * k + 3 : 6 * k + 6], "radius": body.radius, "half": body.half}
        moved.append(Body(body.mass, body.moments, **new, **same))
    return moved


def run(bodies, contacts, dt, steps, law=lagged, loads=None, each=None):
    """Return the bodies after the given number of steps.

    `contacts` is a function of the bodies, and `each` is called after each step.
    """
    for _ in range(steps):
        p = Problem(bodies, contacts(bodies), dt, loads)
        v, g, count = law(p)
        bodies = advanced(bodies, p, v)
        if each is not None:
            each(bodies, p, v, g, count)
    return bodies
