"""Gallery (docs/gallery.md): `python docs/building/gallery.py` writes the page and its thumbnails.

A thumbnail shows a picture from docs/images, or a built-in robot drawn by the viewer in a headless
browser. Each thumbnail stores the digest of its source, and only outdated thumbnails are redrawn.
"""

import hashlib
from pathlib import Path
from typing import NamedTuple

import numpy as np

import chasles

DOCS = Path(__file__).parents[1]
PAGE, IMAGES = DOCS / "gallery.md", DOCS / "images"
FOLDER = IMAGES / "gallery"
SIZE = (320, 200)
"""Width and height of a thumbnail in pixels."""
MARGIN = 8
"""White border around a plot in pixels."""
COLUMNS = 3
"""Number of thumbnails per row of the page."""


class Row(NamedTuple):
    """A thumbnail: its source (a picture, or the name of a robot), title, page and script."""

    source: str
    title: str
    page: str
    script: str = ""

    @property
    def file(self) -> Path:
        """Path of the thumbnail."""
        return FOLDER / f"{Path(self.source).stem}.png"


GROUPS: dict[str, tuple[Row, ...]] = {
    "Robots": (
        Row("puma560", "PUMA 560", "api/robots.md", "computed_torque"),
        Row("stanford_arm", "Stanford arm", "api/robots.md"),
        Row("view_panda.png", "Franka Emika Panda", "view.md"),
        Row("humanoid", "Humanoid", "api/robots.md"),
        Row("quadruped", "Quadruped", "tutorials/quadruped.md", "quadruped_momentum"),
        Row("stewart", "Stewart platform", "mechanisms.md"),
    ),
    "Tutorials": (
        Row("top_arm.png", "Move an arm along a line", "tutorials/arm.md"),
        Row("top_reach.png", "Reach and move", "tutorials/reach.md"),
        Row("top_quadruped.png", "A quadruped", "tutorials/quadruped.md"),
        Row("top_closed-loop.png", "A closed loop", "tutorials/closed-loop.md"),
        Row("top_batch.png", "Batches and GPUs", "tutorials/batch.md", "million_states"),
        Row("top_c-export.png", "Export a controller to C", "tutorials/c-export.md"),
        Row("top_simulation.png", "Simulate a double pendulum", "tutorials/simulation.md"),
        Row("top_gradients.png", "Parameters and gradients", "tutorials/gradients.md"),
        Row("tutorial_identification.png", "Identify an arm", "tutorials/identification.md"),
        Row("measured_arm.png", "A measured arm", "identification.md", "measured_arm"),
    ),
    "Mechanisms": (
        Row("mechanism_delta.png", "Delta robot", "mechanisms.md", "mechanisms"),
        Row("mechanism_six_bar.png", "Six-bar linkage", "mechanisms.md", "mechanisms"),
        Row("mechanism_energy.png", "Energy of closed loops", "simulate.md", "mechanism_energy"),
        Row("slider_crank.png", "Slider crank", "loops.md", "slider_crank"),
    ),
    "Contact and impact": (
        Row("contact_in_time.png", "Rigid contact in motion", "contact.md", "contact_in_time"),
        Row("contact_laws.png", "Friction laws", "contact.md", "contact_laws"),
        Row("impact_laws.png", "Impact laws", "impact.md", "impact_laws"),
        Row("laws.png", "Comparison of contact laws", "laws.md", "laws"),
        Row("soft_contact.png", "Soft ground", "soft-contact.md", "soft_contact"),
        Row("soft_landing.png", "Soft landing", "rollouts.md", "soft_landing"),
        Row("dry_friction.png", "Dry friction in joints", "simulate.md", "dry_friction"),
    ),
    "Trajectories, plots and accuracy": (
        Row("trajectories.png", "Trajectories", "trajectories.md"),
        Row("plots.png", "Plots", "plots.md"),
        Row("microbot_jerk.png", "Jerk of a tool", "mitra.md", "microbot_jerk"),
        Row("convention_jacobian.png", "Conventions", "conventions.md", "conventions"),
        Row("long_runs.png", "Energy over a minute", "simulate.md", "long_runs"),
        Row("accuracy.png", "Rounding errors", "accuracy.md", "accuracy"),
        Row("crossover.png", "Methods of forward dynamics", "featherstone-counts.md", "crossover"),
        Row("operation_counts.png", "Operation counts", "operation-counts.md", "operation_counts"),
    ),
}
"""Thumbnails by heading of the page."""

POSTURES = {"puma560": [-0.7, 0.35, -0.6, 0.0, 0.8, 0.0]}
"""Configurations (rad) of robots that are not drawn in their start configuration."""


LOOK = 3
"""Version of the viewer's lights, floor and camera; increase it to redraw the robots."""


def digest(row: Row) -> str:
    """Return a digest of the data on which a thumbnail depends."""
    if row.source.endswith(".png"):
        seen = (IMAGES / row.source).read_bytes()
    else:
        source = getattr(chasles.robots, row.source)().model.source
        seen = repr((source.shapes, POSTURES.get(row.source), LOOK)).encode()
    return hashlib.sha256(seen).hexdigest()


def stored(row: Row) -> str:
    """Return the digest stored in a thumbnail, or an empty string if there is no thumbnail."""
    from PIL import Image

    if not row.file.exists():
        return ""
    with Image.open(row.file) as picture:
        return str(picture.info.get("source", ""))


def draw(row: Row) -> None:
    """Write a thumbnail."""
    from PIL import Image, ImageOps, PngImagePlugin

    if row.source.endswith(".png"):
        picture = Image.open(IMAGES / row.source).convert("RGB")
        picture = picture.crop(ImageOps.invert(picture).getbbox())  # without white margins
    else:
        picture = Image.fromarray(seen(row.source))
    inner = (SIZE[0] - 2 * MARGIN, SIZE[1] - 2 * MARGIN) if row.source.endswith(".png") else SIZE
    drawn = ImageOps.pad(picture, inner, Image.Resampling.LANCZOS, color="white")
    small = Image.new("RGB", SIZE, "white")
    small.paste(drawn, ((SIZE[0] - inner[0]) // 2, (SIZE[1] - inner[1]) // 2))
    text = PngImagePlugin.PngInfo()
    text.add_text("source", digest(row))
    FOLDER.mkdir(exist_ok=True)
    few = small.quantize(96, kmeans=4, dither=Image.Dither.NONE)
    few.save(row.file, optimize=True, pnginfo=text)


def seen(name: str) -> np.ndarray:
    """Return a picture (height, width, 3) of a built-in robot, drawn by the viewer."""
    from chasles.view import show
    from chasles.view.pictures import moving_picture
    from chasles.view.video import page

    size = (3 * SIZE[0], 3 * SIZE[1])
    robot = getattr(chasles.robots, name)()
    with (
        show(robot, POSTURES.get(name), port=0, shadows=True) as viewer,
        page(viewer, size) as client,
    ):
        moving_picture(client, *size)
        return moving_picture(client, *size, view=viewer.stage.view)


def text() -> str:
    """Return the page."""
    parts = ["# Gallery\n\nEach picture links to the page that explains it."]
    for heading, rows in GROUPS.items():
        lines = ["| | | |", "|---|---|---|"]
        for k in range(0, len(rows), COLUMNS):
            some = rows[k : k + COLUMNS]
            blank = [""] * (COLUMNS - len(some))
            lines += [
                f"| {' | '.join([*map(write, some), *blank])} |" for write in (_shown, _named)
            ]
        parts.append(f"## {heading}\n\n" + "\n".join(lines))
    return "\n\n".join(parts) + "\n"


def _shown(row: Row) -> str:
    return f"[![{row.title}](images/gallery/{row.file.name})]({row.page})"


def _named(row: Row) -> str:
    script = f" ([script](../examples/{row.script}.py))" if row.script else ""
    return f"[{row.title}]({row.page}){script}"


def main() -> None:
    """Write the page, and the thumbnails whose source has changed."""
    PAGE.write_text(text(), "utf-8")
    for row in (row for rows in GROUPS.values() for row in rows):
        if stored(row) != digest(row):
            draw(row)
            print(f"drawn: {row.file.name}")


if __name__ == "__main__":
    main()
