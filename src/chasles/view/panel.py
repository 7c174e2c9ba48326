"""The panel of a robot: a slider for each freedom, and a checkbox for each overlay."""

from functools import partial
from typing import Any

import numpy as np

from chasles.errors import said
from chasles.view.figure import Figure
from chasles.view.overlays import OVERLAYS, Manipulability, Overlay
from chasles.view.posture import displacement, freedoms, moved, start

RESOLUTION = 1000
"""Steps of a slider from end to end."""


class Panel:
    """Of one figure; `lock` is held while it moves.

    With loops only independent freedoms have sliders that can be dragged; the others follow.
    """

    def __init__(self, server: Any, figure: Figure, lock: Any) -> None:
        self.figure, self.lock = figure, lock
        robot = figure.robot
        self.freedoms = freedoms(robot)
        active = set(robot.independent)
        with server.gui.add_folder(figure.whole.name):
            self.message = server.gui.add_markdown("")
            reset = server.gui.add_button("Start position")
            with server.gui.add_folder("Show", expand_by_default=False):
                self.overlays = [self._overlay(server, kind(figure)) for kind in OVERLAYS]
            self.sliders = [
                server.gui.add_slider(
                    f"{freedom.name}, {freedom.unit}",
                    min=freedom.lower,
                    max=freedom.upper,
                    step=(freedom.upper - freedom.lower) / RESOLUTION,
                    initial_value=freedom.shown(0.0),
                    disabled=freedom.name not in active,
                )
                for freedom in self.freedoms
            ]
        for k, slider in enumerate(self.sliders):
            slider.on_update(partial(self._dragged, k))
        reset.on_click(lambda _: self.go(start(figure.robot)))
        self.refresh()

    def _overlay(self, server: Any, overlay: Overlay) -> Overlay:
        box = server.gui.add_checkbox(overlay.label, initial_value=False)
        if isinstance(overlay, Manipulability):
            names = self.figure.whole.frames
            menu = server.gui.add_dropdown("of frame", names, initial_value=overlay.frame)
            menu.on_update(lambda _: self._choose(overlay, menu.value))
        box.on_update(lambda _: self.show(overlay, box.value))
        self.figure.overlays.append(overlay)
        return overlay

    def show(self, overlay: Overlay, wanted: bool) -> None:
        """Draw an overlay, or no longer."""
        with self.lock:
            overlay.show(wanted)
            self.refresh()

    def _choose(self, overlay: Manipulability, frame: str) -> None:
        with self.lock:
            overlay.frame = frame
            overlay.draw(self.figure)
            self.refresh()

    def go(self, q: np.ndarray) -> None:
        """Put the figure into a configuration."""
        with self.lock:
            self.figure.move(q)
            self.refresh()

    def _dragged(self, k: int, event: Any) -> None:
        if event.client is None:  # set here, by `refresh`
            return
        with self.lock:
            figure, trouble = self.figure, ""
            try:
                q = moved(figure.robot, figure.q, k, float(self.sliders[k].value))
                figure.move(q)
            except ValueError as error:
                trouble = f"**It cannot go there:** {said(error)}"
            self.refresh(trouble)

    def refresh(self, trouble: str = "") -> None:
        """Sliders where the figure is, and what overlays say."""
        values = displacement(self.figure.robot, self.figure.q)
        for slider, freedom, value in zip(self.sliders, self.freedoms, values, strict=True):
            slider.value = freedom.shown(float(value))
        said = [f"{o.label}: {o.said}" for o in self.overlays if o.wanted and o.said]
        self.message.content = "\n\n".join(filter(None, [trouble, *said]))
