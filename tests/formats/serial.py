"""Serial robots in the data format of Legnani et al., in plain NumPy, as a reference.

The code uses products of 4x4 matrices and Newton-Euler equations in vectors of the base frame. It
shares nothing with the library.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Link:
    """Parameters of one link, in the order of the file."""

    code: int
    theta: float
    s: float
    b: float
    a: float
    alpha: float
    mass: float
    jxx: float
    jxy: float
    jxz: float
    jyy: float
    jyz: float
    jzz: float
    xg: float
    yg: float
    zg: float

    @property
    def numbers(self) -> list[str]:
        return [repr(value) for value in self.__dict__.values()]

    @property
    def tensor(self) -> np.ndarray:
        return np.array(
            [
                [self.jxx, self.jxy, self.jxz],
                [self.jxy, self.jyy, self.jyz],
                [self.jxz, self.jyz, self.jzz],
            ]
        )

    def matrix(self, q: float) -> np.ndarray:
        """Return the matrix M(i-1, i)."""
        theta, s = (self.theta + q, self.s) if self.code == 0 else (self.theta, self.s + q)
        c, n, ca, sa = np.cos(theta), np.sin(theta), np.cos(self.alpha), np.sin(self.alpha)
        return np.array(
            [
                [c, -n * ca, n * sa, self.a * c - self.b * n],
                [n, c * ca, -c * sa, self.a * n + self.b * c],
                [0.0, sa, ca, s],
                [0.0, 0.0, 0.0, 1.0],
            ]
        )


@dataclass(frozen=True)
class Instant:
    """Results of the program of fig. 6 for one sample, with vectors in the base frame.

    M: poses of the links. w, wd: angular velocity and acceleration. v, a: velocity and acceleration
    of the origins of the links' frames. moment, force: exerted on a link by its predecessor, with
    the moment about the origin of the base. tau: joint torques.
    """

    M: np.ndarray
    w: np.ndarray
    wd: np.ndarray
    v: np.ndarray
    a: np.ndarray
    moment: np.ndarray
    force: np.ndarray
    tau: np.ndarray


def instant(
    links: list[Link],
    gravity: np.ndarray,
    action: np.ndarray,
    q: np.ndarray,
    qd: np.ndarray,
    qdd: np.ndarray,
) -> Instant:
    """Compute motion and forces; `action` is the force and moment on the gripper, in its frame."""
    n = len(links)
    M, axes = [np.eye(4)], []
    w, wd, v, a = ([np.zeros(3)] for _ in range(4))
    for i, link in enumerate(links):
        M.append(M[-1] @ link.matrix(q[i]))
        z, r = M[i][:3, 2], M[i + 1][:3, 3] - M[i][:3, 3]
        axes.append(z)
        turns, slides = (1.0, 0.0) if link.code == 0 else (0.0, 1.0)
        w.append(w[i] + turns * qd[i] * z)
        wd.append(wd[i] + turns * (qdd[i] * z + np.cross(w[i], qd[i] * z)))
        v.append(v[i] + np.cross(w[i + 1], r) + slides * qd[i] * z)
        a.append(
            a[i]
            + np.cross(wd[i + 1], r)
            + np.cross(w[i + 1], np.cross(w[i + 1], r))
            + slides * (qdd[i] * z + 2.0 * np.cross(w[i], qd[i] * z))
        )
    R, tip = M[n][:3, :3], M[n][:3, 3]
    force = -R @ action[:3]
    moment = -(R @ action[3:] + np.cross(tip, R @ action[:3]))
    forces, moments, tau = [], [], np.zeros(n)
    for i in reversed(range(n)):
        link, R = links[i], M[i + 1][:3, :3]
        arm = R @ [link.xg, link.yg, link.zg]
        c = M[i + 1][:3, 3] + arm
        J = R @ link.tensor @ R.T
        spin, turn = w[i + 1], wd[i + 1]
        ac = a[i + 1] + np.cross(turn, arm) + np.cross(spin, np.cross(spin, arm))
        push = link.mass * (ac - gravity)
        force = force + push
        moment = moment + J @ turn + np.cross(spin, J @ spin) + np.cross(c, push)
        at_joint = moment - np.cross(M[i][:3, 3], force)
        tau[i] = axes[i] @ (at_joint if link.code == 0 else force)
        forces.insert(0, force)
        moments.insert(0, moment)
    stacked = (np.array(x[1:]) for x in (M, w, wd, v, a))
    return Instant(*stacked, np.array(moments), np.array(forces), tau)


def random_links(rng: np.random.Generator, codes: list[int]) -> list[Link]:
    """Return random links with physically valid inertias, which are those of point clouds."""
    links = []
    for code in codes:
        masses, points = rng.uniform(0.2, 1.0, 6), rng.uniform(-0.3, 0.3, (6, 3))
        m = masses.sum()
        c = masses @ points / m
        d = points - c
        J = np.einsum("k,kij->ij", masses, [x @ x * np.eye(3) - np.outer(x, x) for x in d])
        constants = rng.uniform(-1.0, 1.0, 5).tolist()
        moments = [J[0, 0], J[0, 1], J[0, 2], J[1, 1], J[1, 2], J[2, 2]]
        links.append(Link(code, *constants, float(m), *map(float, moments), *map(float, c)))
    return links


def text(links: list[Link], gravity: np.ndarray, actions: np.ndarray) -> str:
    """Return the text of a data file, with one record per line."""
    rows = [str(len(links))]
    for link in links:
        words = link.numbers
        rows += [" ".join(words[:6]), " ".join(words[6:13]), " ".join(words[13:])]
    rows += [" ".join(map(repr, row.tolist())) for row in (gravity, *actions)]
    return "\n".join(rows) + "\n"
