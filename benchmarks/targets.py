"""What the project asks of itself: one table of targets, and the counts it measures against."""

DYNAMICS = ("inverse_dynamics", "mass_matrix", "forward_dynamics")
DERIVATIVES = ("inverse_dynamics_derivatives", "forward_dynamics_derivatives")
"""The functions that have targets."""

BATCH = 4096
"""The number of states in the batches that SPEEDUP speaks of."""

SPEEDUP: dict[tuple[str, str], float] = {
    ("ur5", "inverse_dynamics"): 40.0,
    ("panda", "inverse_dynamics"): 40.0,
    ("talos", "inverse_dynamics"): 28.0,
    ("ur5", "mass_matrix"): 30.0,
    ("panda", "mass_matrix"): 30.0,
    ("talos", "mass_matrix"): 10.0,
    ("ur5", "forward_dynamics"): 30.0,
    ("panda", "forward_dynamics"): 30.0,
    ("talos", "forward_dynamics"): 25.0,
    ("ur5", "inverse_dynamics_derivatives"): 16.0,
    ("panda", "inverse_dynamics_derivatives"): 16.0,
    ("talos", "inverse_dynamics_derivatives"): 6.0,
    ("ur5", "forward_dynamics_derivatives"): 16.0,
    ("panda", "forward_dynamics_derivatives"): 16.0,
    ("talos", "forward_dynamics_derivatives"): 10.0,
    ("solo12", "forward_dynamics_derivatives"): 16.0,
    ("panda", "linearize"): 15.0,
    ("stewart", "forward_dynamics"): 10.0,
    ("standing_talos", "forward_dynamics"): 10.0,
    ("panda", "inverse_dynamics@homogeneous"): 12.0,
    ("panda", "inverse_dynamics@homogeneous-link"): 20.0,
}
"""(robot, function): at least so many times Pinocchio's fastest route, on batches of BATCH."""

SINGLE_CALL: dict[tuple[str, str], float] = {
    ("panda", "inverse_dynamics"): 5.0,
    ("talos", "inverse_dynamics"): 5.0,
    ("panda", "mass_matrix"): 4.0,
    ("talos", "mass_matrix"): 4.0,
    ("panda", "forward_dynamics"): 5.0,
    ("talos", "forward_dynamics"): 5.0,
    ("panda", "inverse_dynamics_derivatives"): 4.0,
    ("panda", "forward_dynamics_derivatives"): 4.0,
    ("talos", "inverse_dynamics_derivatives"): 2.0,
    ("talos", "forward_dynamics_derivatives"): 6.0,
    ("solo12", "forward_dynamics_derivatives"): 8.0,
    ("panda", "linearize"): 4.0,
    ("stewart", "forward_dynamics"): 4.0,
    ("standing_talos", "forward_dynamics"): 4.0,
}
"""(robot, function): one call into a new array, at least so many times Pinocchio's call."""

SINGLE_CALL_REUSED: dict[tuple[str, str], float] = {("panda", "inverse_dynamics"): 7.0}
"""The same with `out=`."""

MOTIONS: dict[str, float] = {"panda batch": 25.0, "panda one": 5.0, "quadruped batch": 30.0}
"""Rollouts on one core: at least so many times MuJoCo's, which has its constraints off for the
Panda and stands on the same feet otherwise."""

TRAJECTORIES = 10.0
"""Time-optimal paths on a grid of 1000 intervals: at least so many times TOPP-RA."""

DISTANCES = 1e6
"""Postures a second on one core whose sphere model is compared with itself, of the Panda."""

REACHING_ON_GPU: dict[str, float] = {"panda": 1e8}
"""Random reachable poses that an H200 solves in a second, 99.9 % of them, to 1e-6 rad and m."""

VIEW: dict[str, float] = {"first picture": 3.0, "updates": 30.0, "pictures": 10.0}
"""A robot of thirty joints in a browser without a graphics card: at most so many seconds to the
first picture; updates that the server applies, and pictures, at least so many in a second."""

IDENTIFICATION: dict[str, float] = {"inside": 0.99, "error": 1.2, "terms": 0.01}
"""Simulated robots with 1 % torque noise: at least this share of base parameters within three
standard deviations; at most this error on new motions, in units of the noise; at most this error of
friction and offsets, relative to the rms torque."""

NORMAL_EQUATIONS = 20.0
"""Normal equations of an arm's parameters on one core: at least so many times NumPy over
Pinocchio's regressor, state by state."""

LOGS: dict[str, float] = {"rate": 2e6, "memory": 400e6}
"""Torques of logs in Parquet files on two cores: at least so many states a second; at most so many
bytes of anonymous memory, however many states there are, also of identification."""

SCHEDULING = 0.05
"""Torques of files of 100,000 states on a local cluster: at most this share of the tasks' processor
time beside them."""

EXPORTED_C: dict[str, float] = {"libm": 7.5, "own sine": 9.0}
"""Exported C of the Panda's inverse dynamics, one state at a time: at least so many times
Pinocchio's own loop, on one thread."""

FLOAT32 = 1.6
"""Inverse dynamics of the Panda, batches of BATCH: at least so many times float64."""

THREADS, THREADED_BATCH = 1.7, 100_000
"""The same with two threads against one, on batches of that many."""

COLD_SECONDS = {"import": 0.15, "nothing cached": 0.6, "cached": 0.06}
"""At most this long: to import chasles; from `load` to the first torque of the Panda."""

CHAIN_SECONDS, CHAIN_GROWTH = 10.0, 1.3
"""Chains of up to 1000 bodies: seconds to the first answer, and the time of a body against that in
the shortest chain, at most."""

STORES = 0.8
"""Mass matrices of Talos in large batches: at least this share of what memory takes."""

OPERATIONS: dict[str, float] = {"ur5": 0.65, "panda": 0.65, "talos": 0.70}
"""At most this share of Pinocchio's multiplications and additions in inverse dynamics."""

COMPILE_SECONDS: dict[tuple[str, str], float] = {
    **{("panda", function): 0.5 for function in DYNAMICS},
    **{("talos", function): 4.0 for function in DYNAMICS},
    ("talos", "forward_dynamics_derivatives"): 10.0,
}
"""(robot, function): at most this long to trace and compile."""

TRACED_PINOCCHIO: dict[str, int] = {"ur5": 564, "panda": 1218, "talos": 6061}
"""Multiplications and additions of Pinocchio's inverse dynamics traced with CasADi and folded, as
the project's second issue gives them. Used where Pinocchio is built without CasADi."""
