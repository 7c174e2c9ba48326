"""Compute distances between robot links, and from links to obstacles.

A compiled program (`functions.rounds`) computes distances between spheres and capsules, from
spheres and capsules to fixed planes, and from spheres to fixed boxes. Coal (extra `contact`)
computes all other distances.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from chasles.backends.arrays import call, check_shape, checked_count
from chasles.distances import elements
from chasles.distances.elements import PART, ROUND, Element
from chasles.distances.pairs import Pair, all_pairs, checked_pairs
from chasles.distances.processes import in_processes
from chasles.errors import InputError, ModelError
from chasles.expr import Variable
from chasles.functions.doors import Library, check_robot, library_of, module, numbers
from chasles.functions.rounds import OBSTACLES, Rounds
from chasles.motion.contact.from_file import may_touch
from chasles.motion.contract import Array, Machine
from chasles.motion.solvers import optional

PRECISION = 1e-10
"""Tolerance (m) for distances computed by the Coal library.

The tolerance for penetration depths stays at 1e-6, because Coal does not converge for ellipsoids
with smaller tolerances.
"""

ITERATIONS = 512
"""Iteration limit for the GJK and EPA algorithms of the Coal library."""

TOUCHING = 1e-9
"""Distance (m) below which the nearest points are too close to define a contact normal."""


@dataclass(frozen=True, eq=False)
class Distances:
    """Distances (m) between P pairs of links and obstacles in configurations q (..., nq).

    Attributes
    ----------
    pairs : tuple of (str, str)
        Names of the two links, or of the link and the obstacle, in each pair.
    distance : (..., P)
        Smallest distance between the shapes of each pair. If shapes overlap, the distance is minus
        the length of the shortest translation that separates the shapes. For a PyTorch or JAX array
        q, `distance` is an array of the same library and can be differentiated once with respect to
        q; all other results are NumPy arrays. For a CuPy array q, all results are CuPy arrays.
    """

    pairs: tuple[Pair, ...]
    distance: np.ndarray
    q: np.ndarray
    _scene: "Scene"
    _known: tuple[np.ndarray, np.ndarray] | None = None

    @cached_property
    def _nearest(self) -> tuple[np.ndarray, np.ndarray]:
        if self._known is not None:
            return self._known
        return self._scene.evaluated(self._numbers, None, points=True)[1:]

    @property
    def _numbers(self) -> Any:
        """Configurations (..., nq) as an array without gradient tracking."""
        q: Any = self.q
        library = library_of(q)
        if library is None or library.package == "cupy":
            return q
        return np.asarray(q.detach() if library.package == "torch" else q, dtype=float)

    @property
    def points(self) -> np.ndarray:
        """Nearest points (..., P, 2, 3) on the two shapes of each pair, in world coordinates."""
        return self._nearest[0]

    @property
    def normals(self) -> np.ndarray:
        """Unit normals (..., P, 3) from the first shape to the second, in world axes.

        points[1] - points[0] = distance * normal, also for negative distances.
        """
        return self._nearest[1]

    @property
    def least(self) -> np.ndarray:
        """Smallest distance (...) over all pairs, or infinity if there are no pairs."""
        if not self.pairs:
            return np.full(self.distance.shape[:-1], np.inf)[()]
        far: Any = self.distance
        least: np.ndarray = far.amin(-1) if hasattr(far, "amin") else far.min(axis=-1)
        return least

    @property
    def nearest(self) -> Any:
        """Closest pair of names; for a batch, indices (...) of the closest pairs in `pairs`."""
        if not self.pairs:
            raise InputError(
                "E-DIST-030",
                "there is no nearest pair, because there are no pairs of shapes",
                "pass `obstacles`, or `pairs` of links",
                part=PART,
            )
        which = self.distance.argmin(-1)
        return self.pairs[int(which)] if which.ndim == 0 else which

    @cached_property
    def gradient(self) -> np.ndarray:
        """Gradient (..., P, nv) of each distance with respect to joint displacements.

        d distance / dt = gradient @ qd, provided that the nearest points are unique.
        """
        return self._scene.gradient(self._numbers, self.points, self.normals)

    def __repr__(self) -> str:
        if self.distance.ndim != 1 or not self.pairs:
            return f"<Distances of {len(self.pairs)} pairs, batch shape {self.distance.shape[:-1]}>"
        least, (a, b) = float(self.least), self.nearest
        return f"<Distances of {len(self.pairs)} pairs, smallest {least:.6g} m: {a}, {b}>"


class _Casting(NamedTuple):
    """Two shapes whose distance is computed by the Coal library.

    `pair` is the index in `Scene.pairs`, and `first` and `second` are indices in `Scene.elements`.
    `compute` is Coal's distance function for the two shapes.
    """

    pair: int
    first: int
    second: int
    compute: Any


class Scene:
    """Collision geometry of a robot and obstacles, prepared for repeated distance computations.

    `scene(q)` returns the same result as `robot.distance(q, ...)` with the same options.
    """

    def __init__(
        self,
        robot: Machine,
        pairs: Any = None,
        *,
        obstacles: Any = None,
        shapes: Any = None,
        meshes: str = "hull",
    ) -> None:
        check_robot(PART, robot)
        if meshes not in elements.MESHES:
            problem = f"`meshes` must be 'hull' or 'triangles', not {meshes!r}"
            raise InputError("E-DIST-031", problem, part=PART)
        self.mechanism, self.model = robot.mechanism, robot.model
        world = list(elements.of_world(obstacles))
        self._check_names(world)
        own, planes = _own(robot, shapes, meshes, pairs, {e.owner for e in world})
        world += planes
        if pairs is None:
            self.pairs = tuple(all_pairs(robot, own, world, shapes is not None))
        else:
            known = dict.fromkeys(e.owner for e in (*own, *world))
            self.pairs = tuple(checked_pairs(pairs, known))
        self.elements = [*own, *world]
        self._arrange(len(own))

    def _check_names(self, world: Sequence[Element]) -> None:
        for element in world:
            if element.owner in self.model.frames:
                problem = f"obstacle {element.owner!r} has the same name as a link or frame"
                raise InputError("E-DIST-032", problem, "rename the obstacle", part=PART)

    def _arrange(self, count: int) -> None:
        """Assign each pair of shapes to the compiled program or to the Coal library.

        The first `count` entries of `elements` belong to the robot, and the others to the world.
        """
        owned: dict[str, list[int]] = {}
        for k, element in enumerate(self.elements):
            owned.setdefault(element.owner, []).append(k)
        rounds = [k for k in range(count) if self.elements[k].kind in ROUND]
        place = {k: i for i, k in enumerate(rounds)}
        closed = [k for k in range(count, len(self.elements)) if self.elements[k].kind in OBSTACLES]
        place |= {k: len(rounds) + i for i, k in enumerate(closed)}
        self._obstacles = closed
        self.swapped = np.zeros(len(self.pairs), dtype=bool)
        self.groups: list[tuple[int, tuple[tuple[int, int], ...]]] = []
        self._cast: list[_Casting] = []
        for p, (a, b) in enumerate(self.pairs):
            first, second = owned[a], owned[b]
            if min(first) >= count and min(second) >= count:
                problem = f"the pair {a!r} and {b!r} consists of two obstacles"
                remedy = "replace one obstacle with a link of the robot"
                raise InputError("E-DIST-033", problem, remedy, part=PART)
            self.swapped[p] = max(first) >= count  # the shapes of the link must come first
            if self.swapped[p]:
                first, second = second, first
            group = []
            for i, j in self._touching(first, second):
                if self._closed(i, j, count):
                    ends = (
                        (place[j], place[i])
                        if self.elements[i].kind not in ROUND
                        else (place[i], place[j])
                    )
                    group.append(ends)
                else:
                    self._cast.append(self._casting(p, i, j))
            if group:
                self.groups.append((p, tuple(group)))
        self._compute(rounds, closed)

    def _compute(self, rounds: Sequence[int], closed: Sequence[int]) -> None:
        self.rounds = Rounds(
            self.model,
            tuple(self.elements[k].round for k in rounds),
            tuple(self.elements[k].kind for k in closed),
            tuple(group for _, group in self.groups),
        )
        self._numbers = np.concatenate([np.zeros(0), *(self.elements[k].numbers() for k in closed)])
        self._frames = dict.fromkeys(
            self.elements[k].frame for cast in self._cast for k in (cast.first, cast.second)
        )

    def _touching(self, first: Sequence[int], second: Sequence[int]) -> list[tuple[int, int]]:
        """Return the index pairs of shapes whose bit masks allow collisions.

        If the masks exclude every pair, return all pairs, so that distances can be computed.
        """
        every, known = [(i, j) for i in first for j in second], self.elements
        return [(i, j) for i, j in every if may_touch(known[i], known[j])] or every

    def _closed(self, i: int, j: int, count: int) -> bool:
        """Return True if `functions.rounds` has a closed-form distance for shapes i and j."""
        a, b = self.elements[i].kind, self.elements[j].kind
        if a not in ROUND:
            return False
        if b in ROUND:
            return True
        return j >= count and (b == "plane" or (b == "box" and a == "sphere"))

    def _casting(self, pair: int, i: int, j: int) -> _Casting:
        a, b = self.elements[i].solid, self.elements[j].solid
        return _Casting(pair, i, j, optional("coal").ComputeDistance(a, b))

    @property
    def uses_coal(self) -> bool:
        """Return True if some distances have no closed form and require the Coal library."""
        return bool(self._cast)

    @property
    def closed_obstacles(self) -> list[Element]:
        """Obstacles handled by the compiled program, in the order of the program's inputs."""
        return [self.elements[k] for k in self._obstacles]

    # Evaluation -------------------------------------------------------------------------------

    def __call__(self, q: Array, *, threads: int | None = None) -> Distances:
        """Return the distances for all pairs at q (..., nq); `threads` is as in `evaluated`."""
        threads = None if threads is None else checked_count(f"{PART}: threads", threads)
        library = library_of(q)
        if library is not None and library.package == "cupy":
            return Distances(self.pairs, self._resident(q, points=False)[0], q, self)
        if library is not None and library.package in ("torch", "jax"):
            return Distances(self.pairs, self._differentiable(library, q, threads), q, self)
        posture = numbers(f"{PART}: q", q, self.model.nq).astype(float)
        if not np.isfinite(posture).all():
            raise InputError("E-DIST-034", "q must be finite", part=PART)
        by_coal = bool(self._cast)
        found, points, normals = self.evaluated(posture, threads, points=by_coal)
        known = (points, normals) if by_coal else None
        return Distances(self.pairs, found, posture, self, known)

    def evaluated(
        self, q: np.ndarray, threads: int | None, *, points: bool
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Compute the distances and, optionally, the nearest points and normals.

        Parameters
        ----------
        q : ndarray, shape (..., nq)
            Configurations. For a CuPy array, the computation runs on its GPU.
        threads : int or None
            Number of threads; None uses all cores for large batches. For the Coal library,
            `threads` is the number of processes, and None uses a single process.
        points : bool
            If True, also compute the nearest points and normals.

        Returns
        -------
        distances : ndarray, shape (..., pairs)
            Distances (m), negative for penetration.
        points : ndarray, shape (..., pairs, 2, 3)
            Nearest points on the two shapes, in world coordinates (m). Empty if `points` is False.
        normals : ndarray, shape (..., pairs, 3)
            Unit vectors from the first shape to the second. Empty if `points` is False.

        Raises
        ------
        ArgumentError
            If `q` is not an array of real numbers.
        InputError
            If `q` does not have shape (..., nq), if `threads` is not a positive integer, or if `q`
            is a CuPy array and a pair needs the Coal library.
        MissingPackageError
            If a pair needs the Coal library and it is not installed.

        Examples
        --------
        >>> import numpy as np
        >>> import chasles
        >>> from chasles import contact, distances
        >>> ball = contact.Sphere("tip", 0.1)
        >>> wall = contact.Sphere(None, 0.5, center=(3.0, 0.0, 0.0))
        >>> arm = chasles.robots.planar(2)
        >>> scene = distances.Scene(arm, obstacles={"wall": wall}, shapes=[ball])
        >>> far, points, normals = scene.evaluated(np.zeros(2), None, points=True)
        >>> far.round(6), points[0, 0]
        (array([0.4]), array([2.1, 0. , 0. ]))
        """
        if not isinstance(q, np.ndarray):
            return self._resident(q, points=points)
        lead, n = q.shape[:-1], len(self.pairs)
        far, shown = np.full((*lead, n), np.inf), n if points or self._cast else 0
        places, ways = np.full((*lead, shown, 2, 3), np.nan), np.full((*lead, shown, 3), np.nan)
        which = [p for p, _ in self.groups]
        if which:
            time = () if self.mechanism.t is None else (self.mechanism.t,)
            given = (q, self._numbers, *time)
            if points:
                kernel = self.rounds.nearest
                some = call(kernel, PART, given, threads=threads)
                far[..., which], places[..., which, :, :], ways[..., which, :] = some
            else:
                far[..., which] = call(self.rounds.distances, PART, given, threads=threads)
        if self._cast:
            self._by_coal(q.reshape(-1, q.shape[-1]), threads, far, places, ways)
        if points and self.swapped.any():
            places[..., self.swapped, :, :] = places[..., self.swapped, ::-1, :]
            ways[..., self.swapped, :] *= -1.0
        return far, places, ways

    def _differentiable(self, library: Library, q: Any, threads: int | None) -> Any:
        """Return the distances for a PyTorch or JAX array q, computed in float64 on the CPU."""
        check_shape(PART, Variable("q", (self.model.nq,)), q.shape)
        if library.package == "torch" and q.device.type != "cpu":
            problem = f"q is a tensor on {q.device}, but distances for tensors require the CPU"
            raise InputError("E-DIST-037", problem, "use q.cpu(), or a CuPy array", part=PART)

        def ahead(q: np.ndarray) -> tuple[np.ndarray]:
            return (self(q, threads=threads).distance,)

        def back(q: np.ndarray, _: np.ndarray, bar: np.ndarray) -> tuple[np.ndarray]:
            slopes = self(q, threads=threads).gradient
            felt = np.where(bar[..., None] == 0.0, 0.0, bar[..., None] * slopes).sum(axis=-2)
            pull = self.mechanism.function("difference").pullback(("q1",))
            return (np.asarray(pull(q, q, felt)),)

        shapes = [(*q.shape[:-1], len(self.pairs))]
        return module(f"moving_{library.package}").moved(ahead, back, [q], shapes)[0]

    def _resident(self, q: Any, *, points: bool) -> Any:
        """Compute distances for a CuPy array on its GPU, in float32 if q is float32."""
        if self._cast or len(self.groups) != len(self.pairs):
            problem = (
                "GPU computations support only shapes with closed-form distances, such as "
                "spheres and capsules"
            )
            remedy = "pass shapes=robot.enclosing_shapes(), or `q` as a NumPy array"
            raise InputError("E-DIST-036", problem, remedy, part=PART)
        kernel = self.rounds.resident("float32" if q.dtype == np.float32 else "float64", points)
        time = () if self.mechanism.t is None else (self.mechanism.t,)
        (posture,) = module("cupy").converted(PART, kernel.interface.inputs[:1], [q], kernel.dtype)
        others = [np.asarray(a, kernel.dtype) for a in (self._numbers, *time)]
        with posture.device:
            given = [posture, *(module("cupy").cupy.asarray(a) for a in others)]
            found = kernel.call(PART, given)
        if not points:
            return found, None, None
        far, places, ways = found
        places[..., self.swapped, :, :] = places[..., self.swapped, ::-1, :]
        ways[..., self.swapped, :] *= -1.0
        return far, places, ways

    def _by_coal(
        self,
        q: np.ndarray,
        threads: int | None,
        far: np.ndarray,
        places: np.ndarray,
        ways: np.ndarray,
    ) -> None:
        """Compute distances with Coal; for each pair, keep the new distance if it is smaller."""
        n = len(self.pairs)
        used = dict.fromkeys(k for cast in self._cast for k in (cast.first, cast.second))
        poses = {k: self._pose(self.elements[k], q) for k in used}
        every = (far.reshape(-1, n), places.reshape(-1, n, 2, 3), ways.reshape(-1, n, 3))
        in_processes(partial(self._cast_rows, poses), len(q), threads or 1, every)
        _align(far, places, ways)

    def _cast_rows(
        self,
        poses: Mapping[int, tuple[np.ndarray, np.ndarray]],
        which: range,
        rows: np.ndarray,
        both: np.ndarray,
        normals: np.ndarray,
    ) -> None:
        """Update the results in the rows `which` wherever Coal finds a smaller distance.

        `poses` maps the index of a shape to its orientations (n, 3, 3) and origins (n, 3).
        """
        coal = optional("coal")
        request, result = coal.DistanceRequest(), coal.DistanceResult()
        request.gjk_tolerance = PRECISION
        request.gjk_max_iterations = request.epa_max_iterations = ITERATIONS
        for row in which:
            at = {k: coal.Transform3s(R[row], r[row]) for k, (R, r) in poses.items()}
            for pair, i, j, compute in self._cast:
                result.clear()
                compute(at[i], at[j], request, result)
                if result.min_distance < rows[row, pair]:
                    rows[row, pair] = result.min_distance
                    both[row, pair] = result.getNearestPoint1(), result.getNearestPoint2()
                    normals[row, pair] = result.normal

    def _pose(self, element: Element, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the orientations (n, 3, 3) and origins (n, 3) of a shape in the world frame."""
        if element.frame is None:
            R, r = (
                np.broadcast_to(element.R, (len(q), 3, 3)),
                np.broadcast_to(element.r, (len(q), 3)),
            )
            return np.ascontiguousarray(R), np.ascontiguousarray(r)
        T = self.mechanism.forward_kinematics(q, frame=element.frame)
        return T[:, :3, :3] @ element.R, T[:, :3, :3] @ element.r + T[:, :3, 3]

    def gradient(self, q: np.ndarray, points: np.ndarray, normals: np.ndarray) -> np.ndarray:
        """Return the gradients of distances with respect to joint displacements.

        Parameters
        ----------
        q : ndarray, shape (..., nq)
            Configurations.
        points : ndarray, shape (..., pairs, 2, 3)
            Nearest points in world coordinates (m), from `evaluated`.
        normals : ndarray, shape (..., pairs, 3)
            Unit vectors n from the first shape to the second.

        Returns
        -------
        gradient : ndarray, shape (..., pairs, nv)
            Derivatives of n . (second point - first point), in m/rad or m/m.

        Examples
        --------
        >>> import numpy as np
        >>> import chasles
        >>> from chasles import contact, distances
        >>> ball = contact.Sphere("tip", 0.1)
        >>> wall = contact.Sphere(None, 0.5, center=(2.0, 0.0, 1.0))
        >>> arm = chasles.robots.planar(2)
        >>> scene = distances.Scene(arm, obstacles={"wall": wall}, shapes=[ball])
        >>> q = np.zeros(2)
        >>> _, points, normals = scene.evaluated(q, None, points=True)
        >>> scene.gradient(q, points, normals).round(6)
        array([[-2., -1.]])
        """
        found = np.zeros_like(normals, shape=(*normals.shape[:-1], self.model.nv))
        frames = {element.owner: element.frame for element in self.elements}
        bodies: dict[str, tuple[np.ndarray, np.ndarray]] = {}
        for p, pair in enumerate(self.pairs):
            for end, (sign, name) in enumerate(zip((-1.0, 1.0), pair, strict=True)):
                frame = frames[name]
                if frame is None:
                    continue
                if frame not in bodies:
                    T = self.mechanism.forward_kinematics(q, frame=frame)
                    bodies[frame] = self.mechanism.jacobian(q, frame=frame), T[..., :3, 3]
                J, origin = bodies[frame]
                n = normals[..., p, :]
                wrench = np.concatenate([np.cross(points[..., p, end, :] - origin, n), n], axis=-1)
                found[..., p, :] += sign * np.einsum("...i,...ij->...j", wrench, J)
        return found


def _align(far: np.ndarray, places: np.ndarray, ways: np.ndarray) -> None:
    """Recompute normals from nearest points, because Coal's normals may be wrong for triangles."""
    apart = np.abs(far) > TOUCHING
    way = places[..., 1, :] - places[..., 0, :]
    length = np.linalg.norm(way, axis=-1)
    apart &= np.abs(length - np.abs(far)) <= TOUCHING + 1e-6 * length
    ways[apart] = way[apart] / far[apart][:, None]


def _own(
    robot: Machine, shapes: Any, meshes: str, pairs: Any, world: set[str]
) -> tuple[list[Element], list[Element]]:
    """Return the robot's collision shapes, and the fixed planes in its model file.

    Shapes passed by the user replace all shapes and planes in the model file. Otherwise, `pairs`
    selects the links; by default, the result contains the shapes and planes of all links.
    """
    if shapes is not None:
        return elements.of_user(robot.model, shapes), []
    model, links = robot.model, None
    source = model.source
    touching = dict.fromkeys(s.link for s in (*source.shapes, *source.planes) if s.collides)
    if not any(shape.collides for shape in source.shapes):
        problem = f"robot {model.name!r} has no collision shapes"
        remedy = (
            "load a file with collision shapes, or pass shapes=[chasles.contact.Sphere(link, ...)]"
        )
        raise ModelError("E-DIST-035", problem, remedy, part=PART)
    if pairs is not None:
        named = checked_pairs(pairs, touching | dict.fromkeys(world))
        links = [name for pair in named for name in pair]
    planes = elements.planes_of_file(model, links)
    moving = [plane for plane in planes if plane.frame is not None]
    still = [plane for plane in planes if plane.frame is None]
    return [*elements.of_file(model, meshes, links), *moving], still
