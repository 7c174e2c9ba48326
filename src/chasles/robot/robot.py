"""Public class `Robot`: a mechanism and its functions, compiled on first use."""

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
from chasles.names import with_suggestions
from chasles.robot.identity import Array, Identity
from chasles.robot.sensing import Sensing

if TYPE_CHECKING:  # imported inside methods at run time
    from chasles.checks import Verification
    from chasles.distances import Distances
    from chasles.motion.geometry.closed_forms import Capsule, Sphere
    from chasles.plots import Plots


class Robot(Sensing):
    """A mechanism and its kinematic and dynamic functions.

    q has shape (..., nq). Velocities, accelerations and forces have shape (..., nv). Leading
    dimensions broadcast. Units are SI and radians. 6-vectors have the angular components first.
    Every function accepts `out`, an array for the result, and `threads`, the number of threads
    (default: all for large batches). The first call to a function compiles it for this robot.

    A robot with loops or couplings is a tree with constraints, and q, qd and tau refer to the tree.
    `assemble` and `complete` compute positions and velocities that keep the loops closed.
    `forward_dynamics`, `linearize` and similar functions keep the loops closed or raise an error.
    Kinematics, energy, momentum and the terms of the equations of motion (`mass_matrix`,
    `bias_forces`, `gravity_forces`, ...) are computed for the tree. The results are also valid for
    closed loops: M qdd + h = tau + A' multipliers, with A = `loop_matrix`.

    A robot depends on time if joints have prescribed motions (`drive`) or couplings change with
    time. Call its functions at a fixed time: `robot.at_time(t).mass_matrix(q)`.
    """

    # Simulation ---------------------------------------------------------------------------------

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
        """Return True if another robot has the same joints and equations of motion.

        Parameters
        ----------
        other : Robot
            Robot to compare with.
        tolerance : float, optional
            Maximum difference, relative to the largest entry.
        rng : numpy.random.Generator or int, optional
            Generator or seed for the random states.

        Returns
        -------
        bool
            True if joint torques and mass matrices agree at random states. For robots with loops or
            couplings, closed configurations, mobility and accelerations are compared instead.
            Damping and friction are ignored.

        Raises
        ------
        ArgumentError
            If `other` is not a Robot.
        InputError
            If `tolerance` is not a positive finite number, or if `rng` is not a generator or a
            seed.

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
        q : array_like, shape (..., nq)
            Joint positions (rad or m) of one configuration or a batch. With PyTorch tensors (on
            the CPU) or JAX arrays, `Distances.distance` is differentiable once.
        pairs : sequence of (str, str), optional
            Pairs of names: two links with collision shapes, or a link and an obstacle. Default: all
            `collision_pairs()`, and all pairs of a moving link and an obstacle.
        obstacles : mapping from str to shape, optional
            Obstacles by name. A shape is an object from `chasles.contact` with frame None
            (`Sphere`, `Capsule`, `Box`, `Cylinder`, `ConvexMesh`, `Plane`), a pair (shape, pose)
            with a pose (4, 4) in the world, or a list of these.
        shapes : sequence of shape, optional
            Shapes from `chasles.contact` on frames of the robot, which replace the collision shapes
            in the file, for example `enclosing_shapes()`.
        meshes : {"hull", "triangles"}, optional
            "hull" replaces each mesh by its convex hull. "triangles" treats meshes as surfaces
            without volume, so the distance between overlapping meshes is not the penetration depth.
        threads : int, optional
            Number of threads for the compiled program and, if the system can fork, number of
            processes for coal (see Notes). Default: all threads for large batches, and one process.

        Returns
        -------
        Distances
            For P pairs, `distance` (..., P), nearest `points` (..., P, 2, 3) in the world,
            `normals` and `gradient` (..., P, nv). `least` (...) is the smallest distance, and
            `nearest` is the pair of names to which it belongs.

        Raises
        ------
        ModelError
            If the robot has no collision shapes, or if mesh files are missing.
        InputError
            If `q` does not have nq entries along its last axis, or if an option is not valid.
        ArgumentError
            If an argument has the wrong type.

        Notes
        -----
        A compiled program with threads and SIMD computes the distances among spheres and capsules,
        from spheres and capsules to planes, and from spheres to boxes fixed in the world. The
        library coal (`pip install 'chasles[contact]'`) computes all other distances. The Python
        module of coal holds the global interpreter lock, so using several cores requires several
        processes.

        Examples
        --------
        >>> import chasles
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
        """Return the pairs of links that may collide, in file order.

        Parameters
        ----------
        srdf : str, path or False, optional
            Path to an SRDF file. By default, an SRDF file near the URDF file is used (see Notes).
            False disables this search.

        Returns
        -------
        tuple of (str, str)
            All pairs of links with collision shapes that move relative to each other. Pairs
            connected by a joint are omitted, as are pairs excluded in the file, by
            `<disable_collisions>` (SRDF) or by `<exclude>`, contype and conaffinity (MJCF).

        Raises
        ------
        ModelError
            If the SRDF file cannot be read.

        Notes
        -----
        The SRDF file must be named after the URDF file or after the robot. It must be in the folder
        of the URDF file, in the subfolder `srdf`, or in `../srdf` or `../config`.

        A link that a free joint connects to the world may collide with links fixed to the world, so
        these pairs are not omitted. For robots from MJCF files, this applies to any joint between a
        link and the world, as in MuJoCo.

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
        kind : {"spheres", "capsules"}, optional
            Kind of the returned shapes.
        excess : float, optional
            Maximum distance (m) from a returned shape to the collision shape that it encloses.
        count : int, optional
            Maximum number of shapes per collision shape. `count` takes precedence over `excess`.

        Returns
        -------
        tuple of Sphere or Capsule
            Shapes in the frames of their links, for the argument `shapes` of `distance` and the
            argument `avoid` of `inverse_kinematics`.

        Raises
        ------
        InputError
            If `kind` is unknown, or if an option is out of range.
        ModelError
            If the robot has no collision shapes.

        Notes
        -----
        The union of the shapes contains the convex hull of every collision shape, to within
        rounding error. A positive distance between enclosing shapes is therefore a lower bound for
        the distance between the collision shapes. If enclosing shapes overlap, the collision shapes
        may still be apart, or they may overlap by a different depth. A negative distance is minus
        the penetration depth of a single pair of spheres or capsules. The unions of all shapes may
        overlap by a different depth.

        Examples
        --------
        >>> import chasles
        >>> shapes = chasles.robots.quadruped().enclosing_shapes()
        >>> sorted({shape.frame for shape in shapes})
        ['front_left_foot', 'front_right_foot', 'rear_left_foot', 'rear_right_foot', 'trunk']
        """
        return entry_point("enclosing_shapes")(self, kind, excess=excess, count=count)

    # Plots ------------------------------------------------------------------------------------

    @property
    def plot(self) -> "Plots":
        """Plots of this robot, for example `robot.plot.torque(q, qd, qdd, t=t)`."""
        return entry_point("plots")(self)

    # Checks -----------------------------------------------------------------------------------

    def verify(self, *, seed: int = 0, states: int = 2, full: bool = False) -> "Verification":
        """Check that the functions of this robot are consistent with each other and with physics.

        Parameters
        ----------
        seed : int, optional
            Seed for the first random state.
        states : int, optional
            Number of random states.
        full : bool, optional
            Include slow checks (docs/verify.md).

        Returns
        -------
        Verification
            `.ok`, `.failures` and `.results` with the worst error, tolerance and seed of each
            check.

        Raises
        ------
        InputError
            If `seed` is not a non-negative integer, if `states` is not a positive integer, or if no
            configuration is found in which the loops are closed.

        Examples
        --------
        >>> import chasles
        >>> chasles.robots.planar(1).verify(states=1).ok
        True
        """
        return entry_point("verify")(self, seed=seed, states=states, full=full)

    def explain(self, function: str, **options: Any) -> Explanation:
        """Report how a function is computed: method, passes, operation count, source and program.

        Parameters
        ----------
        function : str
            Name of a method.
        **options
            `method`, `dissipation`, `f_ext` and options of the function, for example frame="tool".

        Returns
        -------
        Explanation
            Report. A long program is shortened when printed. `.text(full=True)` returns every line.

        Raises
        ------
        InputError
            If `function`, `method`, `rules` or the value of an option is unknown.
        ArgumentError
            If `function` is not a string, or if an option is unknown, or if a required
            option is missing.

        Examples
        --------
        >>> import chasles
        >>> report = chasles.robots.planar(2).explain("mass_matrix")
        >>> report.function
        'mass_matrix'
        """
        runs = that_runs(self.model, a_name("a function", function, "explain"))
        self.mechanism.refuse_open("explain", runs)
        return explain(self.mechanism.chosen(runs), runs, **options)

    # Viewer -----------------------------------------------------------------------------------

    def show(self, q: Array | None = None, **options: Any) -> Any:
        """Show the robot in a browser, with sliders, overlays and motions.

        Parameters
        ----------
        q : array_like, shape (nq,), optional
            Initial configuration. Default: the neutral configuration.
        **options
            `beside`: a second robot to show. `motion`: a file written by `chasles simulate` or a
            motion file (docs/motion.md). `host`, `port`: address of the page, accessible only from
            this machine by default. `allow`: additional allowed hosts, for example a proxy.

        Returns
        -------
        Viewer
            The running viewer; a notebook displays it. The attribute `url` is the address of the
            viewer with an access token. `stop()` closes the viewer, and `wait()` keeps a script
            running until Ctrl-C is pressed.

        Raises
        ------
        InputError
            If `q` does not have shape (nq,), or if an option is out of range.
        ModelError
            If viser or trimesh is not installed.

        Notes
        -----
        The viewer needs `pip install 'chasles[view]'`. To save a picture or a video, call
        `chasles.view.record(viewer, "robot.png")`; Chromium or Chrome must be installed.

        Examples
        --------
        >>> import chasles
        >>> viewer = chasles.robots.puma560().show()  # doctest: +SKIP
        """
        return entry_point("show")(self, q, **options)


for _room in Robot.__mro__[:-1]:  # tracebacks and help show Robot instead of its base classes
    for _name, _member in list(vars(_room).items()):
        if isinstance(_member, FunctionType) and (
            _room is not Robot or _member.__module__ == __name__
        ):
            _member.__qualname__, _member.__module__ = f"Robot.{_name}", __name__
            if issubclass(_room, Identity) and (_name == "__init__" or not _name.startswith("_")):
                setattr(_room, _name, with_suggestions(_member))

for _name in ("simulate", "rollout", "rollout_pullback"):
    setattr(Robot, _name, with_suggestions(vars(Robot)[_name], f"Robot.{_name}"))
