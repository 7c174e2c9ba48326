"""What the project asks of itself: one table of targets, and the counts it measures against."""

DYNAMICS = ("inverse_dynamics", "mass_matrix", "forward_dynamics")
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
}
"""(robot, function): at least so many times Pinocchio's fastest route, on batches of BATCH."""

OPERATIONS: dict[str, float] = {"ur5": 0.65, "panda": 0.65, "talos": 0.70}
"""At most this share of Pinocchio's multiplications and additions in inverse dynamics."""

COMPILE_SECONDS: dict[str, float] = {"panda": 0.5, "talos": 5.0}
"""At most this long to trace and compile each of the functions in DYNAMICS."""

TRACED_PINOCCHIO: dict[str, int] = {"ur5": 564, "panda": 1218, "talos": 6061}
"""Multiplications and additions of Pinocchio's inverse dynamics traced with CasADi and folded, as
the project's second issue gives them. Used where Pinocchio is built without CasADi."""
