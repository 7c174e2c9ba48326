"""The public robot: one mechanism, with its functions compiled on first use."""

from types import FunctionType
from typing import TYPE_CHECKING, Any

from chasles.algorithms import that_runs
from chasles.entry_points import entry_point
from chasles.functions.cost import Explanation, explain
from chasles.model.given import a_name
from chasles.motion.distances.distance import distance
from chasles.motion.distances.enclosing import enclosing_shapes
from chasles.motion.distances.pairs import collision_pairs
from chasles.motion.simulation import rollout, rollout_pullback, simulate
from chasles.robot.editing import Editing

if TYPE_CHECKING:  # leaves, loaded by their entry points
    from chasles.checks import Verification
    from chasles.plots import Plots


class Robot(Editing):
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

    distance = distance
    collision_pairs = collision_pairs
    enclosing_shapes = enclosing_shapes

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
