"""Performance targets of the project, and reference values for operation counts."""

DYNAMICS = ("inverse_dynamics", "mass_matrix", "forward_dynamics")
DERIVATIVES = ("inverse_dynamics_derivatives", "forward_dynamics_derivatives")
"""Functions that have targets."""

BATCH = 4096
"""Number of states in the batches for which the targets SPEEDUP and FLOAT32 hold."""

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
"""Minimum speed relative to Pinocchio's fastest route, for batches of BATCH states."""

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
"""Minimum speed of single calls that return a new array, relative to Pinocchio's call."""

SINGLE_CALL_REUSED: dict[tuple[str, str], float] = {("panda", "inverse_dynamics"): 7.0}
"""Minimum speed of single calls with `out=`, relative to Pinocchio's call."""

MOTIONS: dict[str, float] = {"panda batch": 25.0, "panda one": 5.0, "quadruped batch": 30.0}
"""Minimum speed of rollouts on one core, relative to MuJoCo. Constraints are disabled in MuJoCo for
the Panda. The quadruped has the same feet in both libraries."""

TRAJECTORIES = 10.0
"""Minimum speed of time-optimal paths with 1000 grid intervals, relative to TOPP-RA."""

DISTANCES = 1e6
"""Minimum rate (postures/s) of self-collision distances of the Panda, on one core."""

REACHING_ON_GPU: dict[str, float] = {"panda": 1e8}
"""Minimum rate (poses/s) of inverse kinematics on an H200, with 99.9 % solved to 1e-6 rad and m."""

VIEW: dict[str, float] = {"first picture": 3.0, "updates": 30.0, "pictures": 10.0}
"""Targets for the viewer, for a robot with thirty joints and a browser without a graphics card:
maximum time (s) to the first frame, and minimum numbers of updates and frames per second."""

IDENTIFICATION: dict[str, float] = {"inside": 0.99, "error": 1.2, "terms": 0.01}
"""Accuracy targets for the identification of simulated robots with 1 % torque noise.

- inside: minimum fraction of base parameters within three standard deviations.
- error: maximum rms error of torques on new motions, relative to the noise.
- terms: maximum error of damping, friction and offset torques, relative to the rms torque.
"""

NORMAL_EQUATIONS = 20.0
"""Minimum speed of the normal equations of an arm on one core, relative to NumPy with Pinocchio's
regressor for one state at a time."""

LOGS: dict[str, float] = {"rate": 2e6, "memory": 400e6}
"""Targets for torques of logs in Parquet files, on two cores: minimum rate (states/s), and maximum
anonymous memory (bytes), for any number of states. Memory is limited for identification too."""

SCHEDULING = 0.05
"""Maximum overhead of a local cluster, relative to the processor time of the tasks, for torques of
files with 100,000 states."""

EXPORTED_C: dict[str, float] = {"libm": 7.5, "own sine": 9.0}
"""Minimum speed of exported C code for the Panda's inverse dynamics, one state at a time, relative
to Pinocchio's own loop on one thread."""

FLOAT32 = 1.6
"""Minimum speed of float32 relative to float64, for the Panda's inverse dynamics in batches."""

THREADS, THREADED_BATCH = 1.7, 100_000
"""Minimum speed of two threads relative to one for the Panda's inverse dynamics, and batch size."""

COLD_SECONDS = {"import": 0.15, "nothing cached": 0.6, "cached": 0.06}
"""Maximum times (s) to import chasles, and from `load` to the first torques of the Panda, with an
empty cache and with cached code."""

CHAIN_SECONDS, CHAIN_GROWTH = 10.0, 1.3
"""Targets for chains of up to 1000 bodies: maximum time (s) of the first call, and maximum time per
body relative to the shortest chain."""

STORES = 0.8
"""Minimum speed of large batches of mass matrices of Talos, relative to filling their memory."""

OPERATIONS: dict[str, float] = {"ur5": 0.65, "panda": 0.65, "talos": 0.70}
"""Maximum number of operations in inverse dynamics, relative to Pinocchio."""

COMPILE_SECONDS: dict[tuple[str, str], float] = {
    **{("panda", function): 0.5 for function in DYNAMICS},
    **{("talos", function): 4.0 for function in DYNAMICS},
    ("talos", "forward_dynamics_derivatives"): 10.0,
}
"""Maximum processor time (s) to trace and compile a function."""

TRACED_PINOCCHIO: dict[str, int] = {"ur5": 564, "panda": 1218, "talos": 6061}
"""Multiplications and additions of Pinocchio's inverse dynamics, traced with CasADi with constants
folded, from issue 2 of the project. They are used if Pinocchio is built without CasADi."""
