"""The public class `Robot`: a mechanism and its functions, compiled on first use."""

from types import FunctionType
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from chasles import mechanisms
from chasles.algorithms import that_runs
from chasles.backends.arrays import check_tolerance
from chasles.entry_points import entry_point
from chasles.functions.cost import Explanation, explain
from chasles.functions.doors import check_robot
from chasles.model.given import a_generator, a_name
from chasles.motion.rollouts import rollout, rollout_pullback
from chasles.motion.simulation import simulate
from chasles.robot.identity import Array
from chasles.robot.sensing import Sensing

if TYPE_CHECKING:  # imported by the methods that need them
    from chasles.checks import Verification
    from chasles.distances import Distances
    from chasles.motion.geometry.closed_forms import Capsule, Sphere
    from chasles.plots import Plots


class Robot(Sensing):
    """A mechanism and all functions that can be computed for it.

    The last axis of an array holds the coordinates: q has shape (..., nq); velocities,
    accelerations and forces have shape (..., nv); leading shapes broadcast. Units are SI and
    radians; 6-vectors have the angular part first. Every function accepts `out`, an array for the
    result, and `threads`, the number of threads (by default all for large batches). The first call
    of a function compiles it for this robot.

    A robot with loops or couplings is a tree with constraints; q, qd and tau refer to the tree.
    `assemble` and `complete` compute positions and velocities that keep the loops closed.
    `forward_dynamics`, `linearize` and similar functions keep the loops closed or raise an error.
    Kinematics, energy, momentum and the terms of the equations of motion (`mass_matrix`,
    `bias_forces`, `gravity_forces`, ...) are computed for the tree. They are also valid for closed
    motions: M qdd + h = tau + A' multipliers, with A = `loop_matrix`.

    A robot depends on time if joints have prescribed motions (`drive`) or couplings change with
    time. Evaluate it at a time: `robot.at_time(t).mass_matrix(q)`.
    """

    # Motion in time -----------------------------------------------------------------------------

    simulate = simulate
    rollout = rollout
    rollout_pullback = rollout_pullback

    # Comparison ---------------------------------------------------------------------------------

    def is_equivalent(
        self,
        other: Self,
        *,
        tolerance: float = 1e-9,
        rng: "np.random.Generator | int | None" = 0,
    ) -> bool:
        """Return True if another robot with the same joints has the same equations of motion.

        Parameters
        ----------
        other : Robot
            Robot to compare with.
        tolerance : float, optional
            Largest difference relative to the largest entry.
        rng : numpy.random.Generator or int, optional
            Generator or seed of the random states.

        Returns
        -------
        bool
            True if joint torques of random motions and mass matrices agree. For robots with loops
            or couplings, closed configurations, the number of degrees of freedom and accelerations
            are compared too. Damping and friction are ignored.

        Examples
        --------
        >>> import chasles
        >>> robot = chasles.robots.planar(2)
        >>> robot.is_equivalent(robot.simplified())
        True
        """
        check_robot("is_equivalent", other)
        check_tolerance("is_equivalent", tolerance)
        mine, theirs = (
            [robot.joint(n).traits.kind for n in robot.joints] for robot in (self, other)
        )
        if mine != theirs:
            return False
        rng = a_generator(rng, "is_equivalent")
        return mechanisms.equivalent(self.mechanism, other.mechanism, tolerance, rng)

    # Distances ----------------------------------------------------------------------------------

    def distance(
        self,
        q: Array,
        pairs: Any = None,
        *,
        obstacles: Any = None,
        shapes: Any = None,
        meshes: str = "hull",
        threads: int | None = None,
    ) -> "Distances":
        """Return distances between links, and from links to obstacles, at q (..., nq).

        Parameters
        ----------
        q
            Joint positions (rad or m) of one configuration or a batch.
        pairs
            Pairs of names: two links with collision shapes, or a link and an obstacle. Default:
            `collision_pairs()`, and every moving link with every obstacle.
        obstacles
            {name: shape}. A shape is an object of `chasles.contact` whose frame is None (`Sphere`,
            `Capsule`, `Box`, `Cylinder`, `ConvexMesh`, `Plane`), a pair (shape, pose) with a pose
            (4, 4) in the world, or a list of these.
        shapes
            Shapes of `chasles.contact` on frames of the robot, such as `enclosing_shapes()`, which
            replace the collision shapes of the file.
        meshes
            "hull" replaces each mesh of the file by its convex hull. "triangles" uses the triangles
            as a surface without volume, so the distance between overlapping meshes is not the
            penetration depth.
        threads
            Number of threads of the compiled program. Default: all for large batches.

        Returns
        -------
        Distances
            `distance` (..., P), `points` (..., P, 2, 3) in the world, `normals`, `gradient` (...,
            P, nv), the smallest distance `least` (...), and its pair `nearest`.

        Raises
        ------
        ModelError
            If the robot has no collision shapes, or if mesh files are missing.

        Notes
        -----
        One compiled program with threads and SIMD handles pairs of spheres and capsules, pairs of
        these with planes, and pairs of spheres with boxes of the world. coal (`pip install
        'chasles[contact]'`) computes all other pairs, one after the other.

        Examples
        --------
        >>> from chasles.contact import Plane, Sphere
        >>> robot = chasles.robots.puma560()
        >>> ball = Sphere("tool", 0.05)
        >>> found = robot.distance(robot.neutral(), shapes=[ball], obstacles={"floor": Plane()})
        >>> found.nearest
        ('tool', 'floor')
        """
        options = {"obstacles": obstacles, "shapes": shapes, "meshes": meshes, "threads": threads}
        return entry_point("distance")(self, q, pairs, **options)

    def collision_pairs(self, *, srdf: Any = None) -> tuple[tuple[str, str], ...]:
        """Return the pairs of links whose collision shapes may touch, in file order.

        Parameters
        ----------
        srdf
            Path of an SRDF file. None (default) uses the SRDF file next to the URDF file, if any;
            False uses no SRDF file.

        Returns
        -------
        tuple of (str, str)
            All pairs of links with collision shapes that move relative to each other, except
            neighbors connected by a joint and pairs that the file excludes: `<disable_collisions>`
            of SRDF, `<exclude>`, contype and conaffinity of MJCF.

        Notes
        -----
        The SRDF file must be in the folder of the URDF file, in its subfolder `srdf`, or in
        `../srdf` or `../config`, and have the name of the URDF file or of the robot. As in MuJoCo,
        a body of an MJCF file that is connected to the world may collide with shapes of the world.

        Examples
        --------
        >>> import chasles
        >>> chasles.robots.planar(2).collision_pairs()
        ()
        """
        return entry_point("collision_pairs")(self, srdf=srdf)

    def enclosing_shapes(
        self, kind: str = "spheres", *, excess: float = 0.05, count: int = 16
    ) -> "tuple[Sphere | Capsule, ...]":
        """Return spheres or capsules that contain the collision shapes of all links.

        Parameters
        ----------
        kind
            "spheres" or "capsules".
        excess
            Largest distance (m) by which a result may extend beyond the collision shape it
            encloses.
        count
            Largest number of shapes per collision shape of the file; it takes precedence over
            `excess`.

        Returns
        -------
        tuple of Sphere or Capsule
            Shapes in the frames of their links, for `distance(shapes=)` and
            `inverse_kinematics(avoid=)`.

        Notes
        -----
        The union of the shapes contains the convex hull of every collision shape, up to rounding. A
        positive distance between them is therefore a lower bound of the distance between the
        collision shapes. If they overlap, the collision shapes do not necessarily overlap.
        """
        return entry_point("enclosing_shapes")(self, kind, excess=excess, count=count)

    # Plots ------------------------------------------------------------------------------------

    @property
    def plot(self) -> "Plots":
        """Plots of this robot, for example `robot.plot.torque(q, qd, qdd, t=t)`."""
        return entry_point("plots")(self)

    # Checks -----------------------------------------------------------------------------------

    def verify(self, *, seed: int = 0, states: int = 2, full: bool = False) -> "Verification":
        """Check the functions of this robot for consistency with each other and with physics.

        Parameters
        ----------
        seed : int, optional
            Seed of the first random state.
        states : int, optional
            Number of random states.
        full : bool, optional
            Include long checks (docs/verify.md).

        Returns
        -------
        Verification
            `.ok`, `.failures` and `.results` with the worst error, tolerance and seed of each
            check.

        Examples
        --------
        >>> import chasles
        >>> chasles.robots.planar(1).verify(states=1).ok
        True
        """
        return entry_point("verify")(self, seed=seed, states=states, full=full)

    def explain(self, function: str, **options: Any) -> Explanation:
        """Return a report on a function: method, passes, operations, source, program.

        Parameters
        ----------
        function : str
            Name of a method.
        **options
            `method`, `dissipation`, `f_ext` and options of the function, for example frame="tool".

        Returns
        -------
        Explanation
            Report. Printing it shortens a long program; `.text(full=True)` returns every line.

        Examples
        --------
        >>> import chasles
        >>> report = chasles.robots.planar(2).explain("mass_matrix")
        """
        runs = that_runs(self.model, a_name("a function", function, "explain"))
        self.mechanism.refuse_open("explain", runs)
        return explain(self.mechanism.chosen(runs), runs, **options)

    # Viewer -----------------------------------------------------------------------------------

    def show(self, q: Array | None = None, **options: Any) -> Any:
        """Show the robot in a browser, with sliders, overlays and motions.

        Parameters
        ----------
        q : array_like (nq,), optional
            Initial configuration. Default: the neutral configuration.
        **options
            `beside`: a second robot. `motion`: a file of `chasles simulate` or a motion file
            (docs/motion.md). `host`, `port`: address of the page; by default only this machine has
            access. `allow`: further hosts, for example of a proxy.

        Returns
        -------
        Viewer
            The running viewer, which a notebook displays. `url` is the address with its access
            token, `stop()` closes it, and `wait()` keeps a script running.

        Notes
        -----
        The viewer needs `pip install 'chasles[view]'`.

        Examples
        --------
        >>> viewer = robot.show()  # doctest: +SKIP
        """
        return entry_point("show")(self, q, **options)


for _room in Robot.__mro__[1:-1]:  # tracebacks and help show Robot, not its base classes
    for _name, _member in vars(_room).items():
        if isinstance(_member, FunctionType):
            _member.__qualname__, _member.__module__ = f"Robot.{_name}", __name__
