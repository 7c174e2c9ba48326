"""The command `chasles reach`."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.progress import TaskProgressColumn, TimeRemainingColumn

from chasles.cli import command
from chasles.cli.options import Asked, Overwrite, listed, option, repeatable
from chasles.cli.wording import outside_limits
from chasles.errors import InputError
from chasles.formats import inputs
from chasles.formats.motion import columns, placed, read_poses
from chasles.formats.recorded import REACHED
from chasles.functions.targets import Pose, Position
from chasles.mechanisms.inverse_kinematics import Solution
from chasles.robot import Robot
from chasles.writing import check_target, whole

MOST_ROWS = 10
"""Maximum number of unreachable poses listed in the text output."""


def reach(
    asked: Asked,
    fixed: Annotated[
        list[str], repeatable("Joint that keeps its position; repeatable.", metavar="NAME,...")
    ],
    frame: Annotated[str, option("Frame to move to the pose. Default: the tool.")] = "",
    pose: Annotated[
        str,
        option(
            "Target x,y,z (m), optionally with roll,pitch,yaw (rad) or a quaternion w,x,y,z.",
            *("--pose", "--position"),
            metavar="NUMBERS",
        ),
    ] = "",
    poses: Annotated[
        Path | None,
        option(
            "Table (.csv, .npz, .parquet): x, y, z (m), optionally t (s) and an orientation.",
            metavar="FILE",
        ),
    ] = None,
    guess: Annotated[str, option("Initial joint positions (rad or m).", metavar="NUMBERS")] = "",
    every: Annotated[bool, option("Return all solutions for one pose.", "--all")] = False,
    tolerance: Annotated[float, option("Maximum error (m and rad).", min=0.0)] = 1e-6,
    output: Annotated[
        Path | None,
        option("Table of solutions to write (.csv, .npz, .parquet).", "--output", "-o"),
    ] = None,
    overwrite: Overwrite = False,
) -> command.Answer:
    """Find joint positions that move a frame to a pose, within the joint limits.

    A pose without an orientation constrains only the position.
    A table of poses with a column t is a path, and the search for each pose
    starts from the previous solution. Without t, poses are solved independently.
    The output is a motion file for `chasles motion`, `view` and `trajectory --to`
    or `--through`.

    The exit status is 1 if a pose is out of reach.

    Examples:
        chasles reach puma560 --pose 0.4,0.2,0.3
        chasles reach panda --frame panda_hand --pose 0.4,0,0.5,3.14,0,0 --all
        chasles reach robot.urdf --frame tool --poses path.csv -o postures.csv
    """
    if (not pose) == (poses is None):
        problem = "exactly one of --pose and --poses is required"
        raise InputError("E-CLI-070", problem, "give --pose or --poses")
    if every and poses is not None:
        raise InputError(
            "E-CLI-071", "--all cannot be combined with --poses", "give the pose with --pose"
        )
    if output is not None:
        command.check_new_table(output, overwrite=overwrite)
    robot = asked.robot()
    frame = frame or robot.tool
    t, goals = (None, _typed(pose)) if poses is None else read_poses(poses)
    if output is not None:
        read = [*inputs(robot.model.source), *([str(poses)] if poses else [])]
        check_target(output, overwrite=overwrite, inputs=read)
    options: dict[str, Any] = {"fixed": listed(fixed), "guess": None}
    if guess:
        options["guess"] = _numbers("--guess", guess, (robot.nq,))
        if outside := outside_limits(robot, options["guess"], "the guess"):
            command.note(f"note: {outside}")
    if t is None:
        target = {frame: _target(goals, tolerance)}
        found = robot.inverse_kinematics(target, solutions="all" if every else "first", **options)
    else:
        found = _followed(robot, frame, goals, tolerance, options)
    if output is not None:
        _write(robot, t, found, output, overwrite=overwrite)
    files = {} if output is None else {"table": output}
    solutions = vars(found) if not every else _only_solutions(found)
    data = {"robot": robot.name, "frame": frame, "t": t} | solutions | {"files": files}
    if found.hint and not found.solved.any():
        command.note(
            f"note: a pose has six degrees of freedom, but {robot.name!r} has only {robot.nv}; "
            "give only x,y,z to constrain the position alone"
        )
    reached = found.solved.any() if every else found.solved.all()
    show = partial(_show_table if poses else _show_pose, robot, frame, found, files)
    return command.Answer(data, show, 0 if reached else command.FOUND)


def _only_solutions(found: Solution) -> dict[str, Any]:
    """Return the fields of an inverse kinematics result, without missing solutions (q is NaN)."""
    used = ~np.isnan(found.q).any(axis=-1)
    return vars(found) | {n: getattr(found, n)[used] for n in ("q", "solved", "residual", "limits")}


def _typed(text: str) -> np.ndarray:
    """Parse --pose into a position (3,), or a position and a quaternion (7,)."""
    found = _numbers("--pose", text, (3, 6, 7))
    if len(found) == 6 and np.abs(found[3:]).max() > 2.0 * np.pi:
        command.note("note: roll, pitch and yaw of --pose exceed a full turn; angles are in rad")
    return placed(found)


def _numbers(name: str, text: str, counts: Sequence[int]) -> np.ndarray:
    """Parse numbers separated by commas or spaces."""
    words = text.replace(",", " ").split()
    try:
        found = np.array([float(word) for word in words])
    except ValueError:
        raise InputError("E-CLI-072", f"{text!r} is not a list of numbers", part=name) from None
    if len(found) not in counts or not np.isfinite(found).all():
        wanted = " or ".join(map(str, counts))
        problem = (
            f"{len(found)} numbers were given"
            if len(found) not in counts
            else "the list contains a number that is not finite"
        )
        raise InputError("E-CLI-073", problem, f"give {wanted} finite numbers", part=name)
    return found


def _target(goals: np.ndarray, tolerance: float) -> Pose | Position:
    """Return an inverse kinematics target for positions (..., 3) or for poses (..., 7).

    A pose consists of a position and a quaternion.
    """
    if goals.shape[-1] == 3:
        return Position(goals, tolerance=tolerance)
    return Pose((goals[..., :3], goals[..., 3:]), tolerance=tolerance)


def _followed(
    robot: Robot, frame: str, goals: np.ndarray, tolerance: float, options: dict[str, Any]
) -> Solution:
    """Solve inverse kinematics along a path, starting each pose from the previous solution."""
    found: list[Solution] = []
    with command.bar(len(goals), TaskProgressColumn(), TimeRemainingColumn()) as told:
        for goal in goals:
            target = {frame: _target(goal, tolerance)}
            found.append(robot.inverse_kinematics(target, **options))
            options = options | {"guess": found[-1].q}
            told(completed=len(found))
    fields = {name: np.stack([getattr(each, name) for each in found]) for name in vars(found[0])}
    return Solution(**fields)


def _write(
    robot: Robot, t: np.ndarray | None, found: Solution, output: Path, *, overwrite: bool
) -> None:
    """Write the solutions and their residuals to a motion file."""
    rows = [
        found.q.reshape(-1, robot.nq),
        found.solved.reshape(-1, 1),
        found.residual.reshape(-1, 2),
    ]
    table = np.column_stack(rows if t is None else [t, *rows]).astype(float)
    table = table[~np.isnan(table).any(axis=1)]  # drop missing solutions
    names = ([] if t is None else ["t"]) + columns(robot.model)["q"] + list(REACHED)
    with (
        whole(output, overwrite=overwrite) as part,
        command.TABLES[output.suffix.lower()](part, names) as add,
    ):
        add(table)


def _show_pose(
    robot: Robot, frame: str, found: Solution, files: Mapping[str, Path], console: Console
) -> None:
    """Print the joint positions for a pose, with one column per solution."""
    q = found.q.reshape(-1, robot.nq)
    solved = found.solved.reshape(-1)
    shown = q[solved] if solved.any() else q[:1]
    angle, distance = found.residual.reshape(-1, 2)[solved if solved.any() else slice(1)].max(
        axis=0
    )
    count = f"{len(shown)} solution{'s'[: len(shown) != 1]}"
    reached = count if found.solved.ndim else "reached"
    state = reached if solved.any() else "[bold red]not reached[/], nearest solution"
    name = f"[bold]{escape(robot.name)}[/], frame {escape(repr(frame))}"
    console.print(f"{name}: {state} (errors: {angle:.2g} rad, {distance:.2g} m)")
    heads = [str(k + 1) for k in range(len(shown))] if len(shown) > 1 else ["rad, m"]
    rows = command.table(["joint position"], heads)
    for k, joint in enumerate(columns(robot.model)["q"]):
        rows.add_row(f"[cyan]{escape(joint)}[/]", *(f"{x:.6f}" for x in shown[:, k] + 0.0))
    console.print(rows)
    command.write_saved(console, files)


def _show_table(
    robot: Robot, frame: str, found: Solution, files: Mapping[str, Path], console: Console
) -> None:
    """Print the number of reached poses, and list the poses that were not reached."""
    missed = np.flatnonzero(~found.solved)
    name = f"[bold]{escape(robot.name)}[/], frame {escape(repr(frame))}"
    console.print(f"{name}: {len(found.solved) - len(missed)} of {len(found.solved)} poses reached")
    if len(missed):
        rows = command.table([], ["pose not reached", "angle, rad", "distance, m"])
        for k in missed[:MOST_ROWS]:
            rows.add_row(str(k + 1), *(f"{x:.3g}" for x in found.residual[k]))
        console.print(rows)
    if len(missed) > MOST_ROWS:
        console.print(f"and {len(missed) - MOST_ROWS} more (--json lists all)")
    command.write_saved(console, files)
