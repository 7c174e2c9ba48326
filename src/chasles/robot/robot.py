"""The public robot: one mechanism, with its functions compiled on first use."""

from types import FunctionType
from typing import TYPE_CHECKING, Any

from chasles.algorithms import that_runs
from chasles.entry_points import entry_point
from chasles.functions.cost import Explanation, explain
from chasles.model.given import a_name
from chasles.motion.simulation import rollout, rollout_pullback, simulate
from chasles.robot.identity import Array
from chasles.robot.sensing import Sensing

if TYPE_CHECKING:  # leaves, loaded by their entry points
    from chasles.checks import Verification
    from chasles.distances import Distances
    from chasles.motion.geometry.closed_forms import Capsule, Sphere
    from chasles.plots import Plots


class Robot(Sensing):
    """A mechanism and everything that can be computed of it.

    Arrays have the coordinates last: q is (..., nq), velocities, accelerations and
    forces are (..., nv), with any leading shapes that broadcast together. SI units and radians;
    6-vectors have the angular part first. Every function takes `out=`, an array for the result, and
    `threads=`, how many to use (by default all for large batches). The first call of a function
    compiles it for this robot.

    A robot with loops or couplings is a tree that these constrain: q, qd, tau are those of the
    tree. `assemble` and `complete` give positions and rates that keep the loops closed, and
    `forward_dynamics`, `linearize` and whatever else follows from forces keep them so, or say that
    they cannot. Functions of a motion (kinematics, energy, momentum) and the terms of the equation
    of motion (`mass_matrix`, `bias_forces`, `gravity_forces`, ...) are those of the tree, which are
    true of its closed motions too: M qdd + h = tau + A' multipliers, with A = `loop_matrix`.

    A robot that depends on time, because joints are driven (`drive`) or couplings change, is asked
    at a time: `robot.at_time(t).mass_matrix(q)`.
    """

    # Motion in time -----------------------------------------------------------------------------

    simulate = simulate
    rollout = rollout
    rollout_pullback = rollout_pullback

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
            One posture, or any batch of postures.
        pairs
            Pairs of names: of links with collision shapes, and of obstacles. By default
            `collision_pairs()`, and every moving link with every obstacle.
        obstacles
            {name: shape}: shapes of `chasles.contact` whose frame is None (`Sphere`, `Capsule`,
            `Box`, `Cylinder`, `ConvexMesh`, `Plane`), (shape, pose) with a pose (4, 4) in the
            world, or a list of such.
        shapes
            Shapes of `chasles.contact` on frames of the robot, in place of those of its file, such
            as `enclosing_shapes()`.
        meshes
            "hull": each mesh of the file stands for its convex hull, which contains it.
            "triangles": the surface of its triangles, which has no inside: of overlapping meshes
            the distance is not the depth of penetration.
        threads
            The number of threads of the compiled program; by default all, for large batches.

        Returns
        -------
        Distances
            `distance` (..., P), `points` (..., P, 2, 3) in the world, `normals`, `gradient` (...,
            P, nv), `least` (...) and the pair that has it, `nearest`.

        Raises
        ------
        ModelError
            The robot has no collision shapes, or mesh files are not found.

        Notes
        -----
        Pairs of spheres and capsules are one compiled program, with threads and SIMD; so are pairs
        of these and planes, and of spheres and boxes of the world. All others are computed by coal
        (`pip install 'chasles[contact]'`), one after the other.

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
            The path of an SRDF file; None for the one beside the URDF file, if there is one, and
            False for none.

        Returns
        -------
        tuple of (str, str)
            Every two links with collision shapes that move relative to each other, but for links
            that one joint connects and pairs that the file excludes: `<disable_collisions>` of
            SRDF, `<exclude>`, contype and conaffinity of MJCF.

        Notes
        -----
        An SRDF file is found in the folder of the URDF file, in `srdf` there, or in `../srdf` and
        `../config`, under the name of the URDF file or of the robot. As in MuJoCo, a body of an
        MJCF file that is connected to the world may collide with shapes of the world.
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
            The distance in m by which a shape may reach beyond what it encloses.
        count
            The largest number of shapes for each collision shape of the file; it takes precedence
            over `excess`.

        Returns
        -------
        tuple of Sphere or Capsule
            In the frames of their links, as `distance(shapes=)` and `inverse_kinematics(avoid=)`
            take them.

        Notes
        -----
        Their union contains the convex hull of every collision shape, to rounding. So a positive
        distance between them is at most that of the shapes of the file: it proves that these are
        apart. Where they overlap, the shapes of the file may be apart or not.
        """
        return entry_point("enclosing_shapes")(self, kind, excess=excess, count=count)

    # Pictures ---------------------------------------------------------------------------------

    @property
    def plot(self) -> "Plots":
        """Pictures of this robot, by name: `robot.plot.torque(q, qd, qdd, t=t)`."""
        return entry_point("plots")(self)

    # Trust ------------------------------------------------------------------------------------

    def verify(self, *, seed: int = 0, states: int = 2, full: bool = False) -> "Verification":
        """Check this robot's functions against each other and against physics, at random states.

        Every method of each function against the others, backends against `interpret`, Newton's and
        Euler's laws link by link, energy and power, derivatives against differences, loops closed:
        `.ok`, `.failures`, `.results` with the worst error, tolerance and seed of each. full: also
        what takes long (docs/verify.md).
        """
        return entry_point("verify")(self, seed=seed, states=states, full=full)

    def explain(self, function: str, **options: Any) -> Explanation:
        """Explain what runs when a function is called: method, passes, operations, source, program.

        options: `method`, `dissipation`, `f_ext`, and those of the function, e.g. frame="hand".
        `print` shows it with a long program shortened; `.text(full=True)` has every line.
        """
        runs = that_runs(self.model, a_name("a function", function, "explain"))
        self.mechanism.refuse_open("explain", runs)
        return explain(self.mechanism.chosen(runs), runs, **options)

    # Showing ----------------------------------------------------------------------------------

    def show(self, **options: Any) -> Any:
        """Show the robot in a browser: sliders, overlays, motions; returns the running view.

        beside: another robot. motion: a file of `chasles simulate`, or one as docs/motion.md says.
        host, port: where the page is; by default only this machine sees it. allow: further hosts,
        of a proxy for example. A notebook shows the result; its `url` is the page with the token
        that opens it, its `stop()` the end, and a script stays for it with `wait()`. Needs
        `pip install 'chasles[view]'`.
        """
        return entry_point("show")(self, **options)


for _room in Robot.__mro__[1:-1]:  # tracebacks and help name the robot, not the room
    for _name, _member in vars(_room).items():
        if isinstance(_member, FunctionType):
            _member.__qualname__, _member.__module__ = f"Robot.{_name}", __name__
