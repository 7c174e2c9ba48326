"""Viewer in a headless browser: Chromium, controlled by Playwright.

`python tests/view/test_browser.py` makes the pictures of docs/view.md and of the front page.
"""

import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import hostile
import numpy as np
import pytest
from support import raises

import chasles
from chasles.view import Viewer, record, show, video
from chasles.view.panel import RATE
from chasles.view.pictures import moving_picture
from chasles.view.posture import displacement
from chasles.view.video import check_video

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.browser import CHROMIUM, COUNT_PICTURES  # noqa: E402  the browser of benchmarks
from benchmarks.browser import chromium as started  # noqa: E402
from benchmarks.view import one_round, swaying  # noqa: E402

if CHROMIUM is None:
    pytest.skip(
        "no Chromium is installed (Debian: apt-get install chromium)", allow_module_level=True
    )
viser = pytest.importorskip("viser", reason="the viewer's packages are not installed")
pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")

REFUSED = "Evaluating a string as JavaScript violates the following Content Security Policy"
"""Message that viser's page prints once, for its sorter of Gaussian splats, which are not used."""

WAIT = 30.0
"""Timeout (s) for actions that take 1 to 2 s on an idle machine."""


@dataclass
class Page:
    """An open page, its console messages, and the hosts that it contacted."""

    tab: Any
    complaints: list[str] = field(default_factory=list)
    hosts: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.tab.on("console", self._heard)
        self.tab.on("pageerror", self._failed)
        self.tab.on("request", lambda request: self._asked(request.url))
        self.tab.on("websocket", lambda link: self._asked(link.url))
        self.tab.add_init_script(COUNT_PICTURES)

    def _heard(self, message: Any) -> None:
        if message.type == "error":
            self.complaints.append(message.text)

    def _failed(self, error: Any) -> None:
        if not str(error).startswith(REFUSED):
            self.complaints.append(str(error))

    def _asked(self, url: str) -> None:
        plain = url.removeprefix("blob:")
        if not plain.startswith("data:"):
            self.hosts.add(urlsplit(plain).hostname or plain)

    def until(self, holds: Callable[[], Any]) -> None:
        """Let the page run until a condition holds."""
        end = time.monotonic() + WAIT
        while not holds():
            assert time.monotonic() < end, f"not within {WAIT:g} s; the page says {self.complaints}"
            self.tab.wait_for_timeout(50)

    def dismiss(self) -> None:
        """Close the note about the missing graphics card, which covers a corner of the scene."""
        note = self.tab.locator(".mantine-Notification-root")
        self.until(lambda: note.count() > 0)
        note.locator("button").click()
        self.until(lambda: note.count() == 0)

    def picture(self) -> np.ndarray:
        """Return the image of the scene to the left of the panel, (height, width, 3)."""
        import imageio.v3 as imageio

        shot = self.tab.screenshot(clip={"x": 0, "y": 190, "width": 380, "height": 290})
        return np.asarray(imageio.imread(BytesIO(shot)))[..., :3].astype(int)

    def settled(self) -> np.ndarray:
        """Return the image of the scene when it no longer changes."""
        before = self.picture()
        for _ in range(40):
            self.tab.wait_for_timeout(300)
            now = self.picture()
            if np.array_equal(now, before):
                return now
            before = now
        raise AssertionError("the picture does not come to rest")

    def slider(self, label: str) -> Any:
        """Return the handle of the slider with a label."""
        self.until(lambda: label in self.names())
        return self.tab.get_by_role("slider").nth(self.names().index(label))

    def names(self) -> list[str]:
        """Return the names of the coordinates of all sliders, in order."""
        return [text.split(",")[0] for text in self.labels()]

    def labels(self) -> list[str]:
        """Return the labels of all sliders, in order."""
        texts = self.tab.locator("label").all_inner_texts()
        return [text for text in texts if re.search(r", (rad|m|s)$", text)]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with started("--host-resolver-rules=MAP rebind.test 127.0.0.1") as browser:
        yield browser


@contextmanager
def opened(browser: Any, viewer: Viewer, width: int = 720, height: int = 480) -> Iterator[Page]:
    """Open a viewer's page and wait for the first frame; console messages are errors."""
    tab = browser.new_page(viewport={"width": width, "height": height})
    page = Page(tab)
    with viewer:
        tab.goto(viewer.url)
        page.until(lambda: tab.evaluate("window.first") is not None)
        page.dismiss()
        yield page
        tab.close()
    assert page.complaints == []
    assert page.hosts == {"127.0.0.1"}


def differs(a: np.ndarray, b: np.ndarray) -> int:
    """Return the number of pixels in which two images differ."""
    return int(np.count_nonzero(np.abs(a - b).max(axis=-1) > 20))


def test_a_slider_moves_its_link_and_those_beyond(chromium: Any) -> None:
    robot = chasles.robots.puma560()
    viewer = show(robot, port=0)
    figure = viewer.figures[0]
    with opened(chromium, viewer) as page:
        before = page.settled()
        assert differs(before, np.full_like(before, 255)) > 1000  # the robot is visible
        places = [np.array([*node.wxyz, *node.position]) for node in figure.nodes.values()]
        thumb = page.slider("joint3")
        thumb.focus()
        for _ in range(6):
            thumb.press("ArrowLeft")
        page.until(lambda: figure.q[2] < -0.01)
        assert np.count_nonzero(figure.q) == 1
        page.until(lambda: differs(page.picture(), before) > 20)
        now = [np.array([*node.wxyz, *node.position]) for node in figure.nodes.values()]
        moved = [not np.allclose(a, b) for a, b in zip(places, now, strict=True)]
        assert moved == [False, False, True, True, True, True, False]  # the world's node is last


def test_loops_stay_closed_and_dependent_sliders_follow(chromium: Any) -> None:
    robot = chasles.robots.four_bar()
    viewer = show(robot, port=0)
    figure, panel = viewer.figures[0], viewer.panels[0]
    with opened(chromium, viewer) as page:
        follower = panel.sliders[1].value
        thumb = page.slider("crank")
        thumb.focus()
        thumb.press("Home")  # the lower limit, half a turn away
        page.until(lambda: abs(figure.q[0] + np.pi) < 1e-6)
        assert np.abs(robot.loop_residual(figure.q)).max() < 1e-9
        page.until(lambda: panel.sliders[1].value != follower)
        turns = (panel.sliders[1].value - displacement(robot, figure.q)[1]) / (2.0 * np.pi)
        assert turns == pytest.approx(round(turns), abs=1e-9)
        assert [slider.disabled for slider in panel.sliders] == [False, True, True]


@pytest.fixture
def swing(tmp_path: Path) -> Path:
    """Write a motion of the PUMA's first joint that takes 2 s."""
    t = np.linspace(0.0, 2.0, 61)
    q = np.zeros((61, 6))
    q[:, 0] = np.sin(np.pi * t)
    path = tmp_path / "motion.npz"
    np.savez(path, t=t, q=q, format=np.array("chasles-motion-1"))
    return path


def test_a_motion_plays_and_pauses(chromium: Any, swing: Path) -> None:
    viewer = show(chasles.robots.puma560(), motion=swing, beside=chasles.robots.planar(2), port=0)
    playback = viewer.playback
    assert playback is not None
    with opened(chromium, viewer) as page:
        before = page.settled()
        page.tab.get_by_role("button", name="Play").click()
        page.until(lambda: playback.frames > 5)
        page.until(lambda: differs(page.picture(), before) > 20)
        clock, first = playback.clock, viewer.figures[0].q[0]
        assert first == pytest.approx(np.sin(np.pi * clock), abs=0.01)
        assert not np.any(viewer.figures[1].q)  # another robot, which does not move
        page.tab.get_by_role("button", name="Pause").click()
        page.until(lambda: not playback.playing)
        stopped = playback.clock
        page.tab.wait_for_timeout(300)
        assert playback.clock == stopped
        thumb = page.slider("Time")
        thumb.focus()
        thumb.press("Home")
        page.until(lambda: playback.clock == 0.0)


def test_the_robot_follows_a_target_that_is_dragged(chromium: Any) -> None:
    """The mouse drags the center of the handle; the tool follows, and loops stay closed."""
    robot = chasles.robots.delta()
    viewer = show(robot, port=0)
    figure, panel = viewer.figures[0], viewer.panels[0]
    (target,) = (overlay for overlay in panel.overlays if overlay.label == "Drag target")
    with opened(chromium, viewer) as page:
        before = figure.q
        panel.show(target, True)
        page.settled()
        node = target.nodes[0]
        page.until(lambda: len(viewer.server.get_clients()) == 1)
        (client,) = viewer.server.get_clients().values()
        x, y = seen(client.camera, np.asarray(node.position), 720, 480)
        page.tab.mouse.move(x, y)
        page.tab.mouse.down()
        for k in range(1, 9):
            page.tab.mouse.move(x + 2 * k, y - 2 * k)
            page.tab.wait_for_timeout(50)
        page.until(lambda: np.abs(figure.q - before).max() > 0.01)
        assert target.held
        page.tab.mouse.up()
        page.until(lambda: not target.held)
        tool = robot.forward_kinematics(figure.q, frame=target.frame)
        np.testing.assert_allclose(node.position, tool[:3, 3], atol=1e-6)
        assert np.abs(robot.loop_residual(figure.q)).max() < 1e-9


def seen(camera: Any, point: np.ndarray, width: int, height: int) -> tuple[float, float]:
    """Return the pixel of a point, for the pinhole camera of a page (OpenCV's axes)."""
    from viser.transforms import SO3

    x, y, z = SO3(np.asarray(camera.wxyz)).as_matrix().T @ (point - camera.position)
    focal = 0.5 * height / np.tan(0.5 * camera.fov)
    return float(0.5 * width + focal * x / z), float(0.5 * height + focal * y / z)


def test_a_link_is_selected_by_a_click(chromium: Any) -> None:
    robot = chasles.robots.planar(2)
    viewer = show(robot, port=0)
    with opened(chromium, viewer) as page:
        page.settled()
        page.until(lambda: len(viewer.server.get_clients()) == 1)
        (client,) = viewer.server.get_clients().values()
        tip = robot.forward_kinematics(robot.neutral(), frame=robot.frames[-1])[:3, 3]
        elbow = robot.forward_kinematics(robot.neutral(), frame=robot.bodies[-1])[:3, 3]
        page.tab.mouse.click(*seen(client.camera, 0.5 * (tip + elbow), 720, 480))
        page.until(lambda: "kg, carried by revolute joint" in viewer.panels[0].message.value)
        assert "Frame " in viewer.panels[0].message.value


def test_keys_play_and_step(chromium: Any, swing: Path) -> None:
    viewer = show(chasles.robots.puma560(), motion=swing, port=0)
    playback = viewer.playback
    assert playback is not None
    with opened(chromium, viewer) as page:
        page.tab.keyboard.press("ArrowRight")
        page.until(lambda: playback.clock == pytest.approx(1.0 / RATE))
        page.tab.keyboard.press("ArrowLeft")
        page.until(lambda: playback.clock == 0.0)
        page.tab.keyboard.press("Space")
        page.until(lambda: playback.playing)


def test_keys_play_and_step_after_a_click_on_the_panel(chromium: Any, swing: Path) -> None:
    """A clicked control does not take the keys, and the arrow keys do not turn the camera."""
    viewer = show(chasles.robots.puma560(), motion=swing, port=0)
    playback = viewer.playback
    assert playback is not None
    with opened(chromium, viewer) as page:
        page.settled()
        (client,) = viewer.server.get_clients().values()
        place = client.camera.position
        page.tab.get_by_label("Repeat", exact=True).click()
        page.until(lambda: not playback.repeat.value)
        page.tab.keyboard.press("ArrowRight", delay=200)
        page.until(lambda: playback.clock == pytest.approx(1.0 / RATE))
        page.tab.wait_for_timeout(300)
        np.testing.assert_allclose(client.camera.position, place, atol=1e-3)
        page.tab.keyboard.press("Space")
        page.until(lambda: playback.playing)
        assert not playback.repeat.value
        page.tab.get_by_role("button", name="Pause").click()
        page.until(lambda: not playback.playing)
        page.tab.keyboard.press("Space")
        page.until(lambda: playback.playing)
        field = page.tab.locator("input[inputmode=decimal]").first
        field.click()
        assert field.evaluate("each => each === document.activeElement")


def test_a_narrow_page_starts_with_a_closed_panel_and_a_fitted_camera(chromium: Any) -> None:
    viewer = show(chasles.robots.puma560(), port=0)
    with opened(chromium, viewer, 390, 800) as page:
        button = page.tab.get_by_role("button", name="Screenshot")
        page.until(lambda: page.tab.get_by_text("puma560", exact=True).count() > 0)
        page.until(lambda: not button.is_visible())
        (client,) = viewer.server.get_clients().values()
        wanted = viewer.stage._fitted(390 / 800, 0.0)
        page.until(lambda: np.allclose(client.camera.position, wanted.position, atol=1e-3))
        page.tab.get_by_text("puma560", exact=True).first.click()
        page.until(button.is_visible)


CONTRAST = """
element => {
  const light = color => {
    const [r, g, b] = color.match(/[\\d.]+/g).map(Number).map(c => c / 255).map(
      c => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b
  }
  let behind = element
  const seen = e => getComputedStyle(e).backgroundColor
  while (seen(behind) === "rgba(0, 0, 0, 0)") behind = behind.parentElement
  const [a, b] = [light(getComputedStyle(element).color), light(seen(behind))]
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05)
}
"""
"""JavaScript for the luminance ratio of a text and its background (WCAG 2.1, 1.4.3)."""


def test_texts_of_the_panel_have_enough_contrast(chromium: Any) -> None:
    viewer = show(chasles.robots.planar(2), port=0)
    with opened(chromium, viewer) as page:
        page.slider("joint1")
        for dark in (False, True):
            if dark:
                page.tab.get_by_label("Dark", exact=True).click()
                scheme = "document.documentElement.dataset.mantineColorScheme"
                page.until(lambda scheme=scheme: page.tab.evaluate(scheme) == "dark")
                page.tab.wait_for_timeout(500)  # the colors fade
            kinds = (".mantine-Button-label:visible", ".mantine-Slider-markLabel", "label:visible")
            texts = [each for kind in kinds for each in page.tab.locator(kind).all()]
            assert len(texts) > 8
            assert min(each.evaluate(CONTRAST) for each in texts) >= 4.5


def test_labels_fit_on_one_line_and_tooltips_show_them_in_full(chromium: Any) -> None:
    """The marks at the ends of a slider do not overlap."""
    viewer = show(chasles.robots.quadruped(), port=0, triangles=500)
    with opened(chromium, viewer, 900, 900) as page:
        short = "front_le\N{HORIZONTAL ELLIPSIS}hip"
        handle = page.slider(short)
        labels = page.tab.locator("label:visible").all()
        assert len(labels) >= 18
        assert max(each.bounding_box()["height"] for each in labels) < 22.0
        marks = page.tab.locator(".mantine-Slider-markLabel").all()
        boxes = [each.bounding_box() for each in marks]
        for a, b in zip(boxes[::2], boxes[1::2], strict=True):
            assert a["x"] + a["width"] < b["x"]
        handle.hover()
        page.until(lambda: page.tab.get_by_text("front_left_hip, rad", exact=True).count() == 1)


def test_a_page_that_is_closed_ends_its_recording(
    chromium: Any, swing: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    viewer = show(chasles.robots.puma560(), motion=swing, port=0)
    playback = viewer.playback
    assert playback is not None
    with viewer:
        tab = chromium.new_page(viewport={"width": 720, "height": 480})
        page = Page(tab)
        tab.goto(viewer.url)
        page.until(lambda: tab.evaluate("window.first") is not None)
        tab.get_by_role("button", name="Save video").click()
        page.until(lambda: playback.film.disabled)
        tab.close()
        end = time.monotonic() + WAIT
        while playback.film.disabled:
            assert time.monotonic() < end
            time.sleep(0.05)
        with playback.filming:
            pass
        time.sleep(0.3)
    assert "Traceback" not in "".join(capfd.readouterr())


def test_graphs_and_video_of_a_motion(chromium: Any, swing: Path) -> None:
    """The page plots torques and energy next to the robot, and saves the motion as a video."""
    viewer = show(chasles.robots.puma560(), motion=swing, port=0)
    playback = viewer.playback
    assert playback is not None
    playback.speed.value = "10"  # ten times fewer frames
    with opened(chromium, viewer) as page:
        page.tab.get_by_label("Torques and energy", exact=True).click()
        page.until(lambda: page.tab.get_by_text("Energy, J").count() == 1)
        page.until(lambda: page.tab.locator(".uplot canvas").count() == 2)
        with page.tab.expect_download(timeout=3e3 * WAIT) as download:
            page.tab.get_by_role("button", name="Save video").click()
        film = Path(download.value.path()).read_bytes()
        assert download.value.suggested_filename == "puma560.mp4"
        assert film[4:8] == b"ftyp"
        playback.format.value = ".gif"
        with page.tab.expect_download(timeout=3e3 * WAIT) as download:
            page.tab.get_by_role("button", name="Save video").click()
        assert download.value.suggested_filename == "puma560.gif"
        assert Path(download.value.path()).read_bytes().startswith(b"GIF8")


def test_overlays_and_screenshot(chromium: Any) -> None:
    viewer = show(chasles.robots.planar(2), port=0)
    with opened(chromium, viewer) as page:
        before = page.settled()
        page.tab.get_by_text("Show", exact=True).click()
        for overlay in viewer.panels[0].overlays:
            if not overlay.wanted:  # a busy page ticks the box later than the timeout of check()
                page.tab.get_by_label(overlay.label, exact=True).click()
            page.until(lambda overlay=overlay: overlay.wanted)
        page.until(lambda: "Manipulability: " in viewer.panels[0].message.value)
        page.until(lambda: differs(page.picture(), before) > 200)
        with page.tab.expect_download(timeout=1e3 * WAIT) as download:
            page.tab.get_by_role("button", name="Screenshot").click()
        picture = Path(download.value.path()).read_bytes()
        assert download.value.suggested_filename == "planar.png"
        assert picture.startswith(b"\x89PNG")


# Hostile names and pages --------------------------------------------------------------------------


def test_names_that_are_scripts_are_shown_as_text(chromium: Any) -> None:
    viewer = show(hostile.robot(), port=0)
    panel = viewer.panels[0]
    with opened(chromium, viewer, 900, 900) as page:
        for overlay in panel.overlays:
            panel.show(overlay, True)
        thumb = page.tab.get_by_role("slider").first
        thumb.focus()
        thumb.press("Home")  # out of reach, as a message with the robot's name states
        page.until(lambda: hostile.SCRIPT in panel.message.value)
        page.until(lambda: hostile.SCRIPT in page.tab.locator("textarea").first.input_value())
        assert hostile.SCRIPT in page.tab.inner_text("body")
        assert page.tab.evaluate("window.owned") is None
        assert page.tab.locator("img[src=x]").count() == 0


def test_graphs_show_names_that_are_scripts_as_text(chromium: Any, tmp_path: Path) -> None:
    """Graphs are the only part of a page whose labels viser does not render itself."""
    robot = hostile.robot()
    with show(robot, port=0) as still:
        q = np.tile(still.figures[0].start, (5, 1))
    path = tmp_path / "motion.npz"
    np.savez(path, t=np.linspace(0.0, 1.0, 5), q=q, format=np.array("chasles-motion-1"))
    viewer = show(robot, motion=path, port=0)
    assert viewer.playback is not None
    with opened(chromium, viewer, 900, 900) as page:
        viewer.playback.graphs.show(True)
        page.until(lambda: page.tab.locator(".uplot canvas").count() == 2)
        page.until(lambda: hostile.SCRIPT in page.tab.locator(".uplot").first.inner_text())
        assert page.tab.evaluate("window.owned") is None
        assert page.tab.locator("img[src=x]").count() == 0


def test_a_page_of_another_origin_gets_nothing(chromium: Any) -> None:
    """Even with the token, the page cannot read, connect or move the robot."""
    with show(chasles.robots.puma560(), port=0) as viewer:
        port, token = viewer.server.get_port(), viewer.url.split("/")[3]
        attack = hostile.ATTACK % {"port": port, "token": token, "version": viser.__version__}
        with hostile.site(attack) as other:
            for host in ("127.0.0.1", "localhost", "rebind.test"):
                tab = chromium.new_page()
                tab.goto(f"http://{host}:{other}/")
                Page(tab).until(lambda tab=tab: tab.evaluate("window.done") is not None)
                assert set(tab.evaluate("window.done").values()) <= {"refused", "opaque"}
                assert tab.evaluate("window.done")["socket with the token"] == "refused"
                tab.close()
        assert viewer.server.get_clients() == {}
        assert not viewer.figures[0].q.any()


def test_a_rebound_name_is_refused(chromium: Any) -> None:
    """DNS rebinding gives a page whose name resolves to this machine the view's origin."""
    with show(chasles.robots.planar(1), port=0) as viewer:
        tab = chromium.new_page()
        for path in ("", urlsplit(viewer.url).path):
            answer = tab.goto(f"http://rebind.test:{viewer.server.get_port()}/{path.strip('/')}")
            assert answer.status == 403
            assert "not allowed" in tab.inner_text("body")
        tab.close()


def test_a_notebook_of_this_machine_frames_the_page(chromium: Any) -> None:
    with show(chasles.robots.planar(1), port=0) as viewer:
        frame = viewer._repr_html_()
        with hostile.site(f"document.body.innerHTML = {frame!r}") as notebook:
            tab = chromium.new_page()
            tab.goto(f"http://localhost:{notebook}/")
            Page(tab).until(lambda: viewer.server.get_clients())
            tab.goto(f"http://rebind.test:{notebook}/")  # neither this machine nor an allowed host
            Page(tab).until(lambda: not viewer.server.get_clients())
            tab.wait_for_timeout(500)
            assert not viewer.server.get_clients()
            tab.close()


@pytest.mark.parametrize("name", ["swing.mp4", "swing.gif"])
def test_a_motion_is_recorded_as_a_video(name: str, swing: Path, tmp_path: Path) -> None:
    """The video has the requested number and size of frames, and the robot moves."""
    ffmpeg = pytest.importorskip("imageio_ffmpeg").get_ffmpeg_exe()
    with show(chasles.robots.puma560(), motion=swing, port=0) as viewer:
        assert viewer.playback is not None
        length = viewer.playback.last - viewer.playback.first
        record(viewer, tmp_path / name, rate=3.0 / length, size=(320, 240))
    words = [
        ffmpeg,
        "-v",
        "error",
        "-i",
        str(tmp_path / name),
        "-f",
        "rawvideo",
        "-fps_mode",
        "passthrough",
    ]
    played = subprocess.run([*words, "-pix_fmt", "rgb24", "-"], capture_output=True, check=True)
    pictures = np.frombuffer(played.stdout, np.uint8).reshape(-1, 240, 320, 3)
    assert len(pictures) == 4
    change = np.abs(pictures[0].astype(float) - pictures[1].astype(float))
    assert change.max() > 50.0
    with pytest.raises(FileExistsError):
        check_video(tmp_path / name)
    with raises("E-VIEW-020"):
        check_video(tmp_path / "film.txt")


def test_a_picture_is_recorded_of_a_posture_or_of_the_start_of_a_motion(
    swing: Path, tmp_path: Path
) -> None:
    imageio = pytest.importorskip("imageio.v3")
    robot = chasles.robots.puma560()
    with show(robot, motion=swing, port=0) as viewer, show(robot, port=0) as still:
        record(viewer, tmp_path / "start.png", size=(320, 240))
        assert viewer.playback is not None
        middle = 0.7 * viewer.playback.first + 0.3 * viewer.playback.last
        record(viewer, tmp_path / "middle.png", size=(320, 240), at=middle)
        record(still, tmp_path / "posture.png", size=(320, 240))
        with raises("E-VIEW-022", "pass `motion`, or save a picture"):
            record(still, tmp_path / "film.mp4")
        for name, at in (("late.png", viewer.playback.last + 1.0), ("film.mp4", middle)):
            with raises("E-VIEW-033", "`at` must be between"):
                record(viewer, tmp_path / name, at=at)
    names = ("start.png", "middle.png", "posture.png")
    pictures = [imageio.imread(tmp_path / name) for name in names]
    assert {picture.shape for picture in pictures} == {(240, 320, 3)}
    assert np.abs(pictures[0].astype(float) - pictures[1].astype(float)).max() > 50.0
    for picture in pictures:
        assert np.ptp(picture[100:140, 100:220].astype(int)) > 50  # the robot, not only the floor


def test_the_benchmark_counts_updates_and_pictures(chromium: Any, tmp_path: Path) -> None:
    """The server sends no more updates than requested."""
    robot = chasles.robots.planar(2)
    found = one_round(chromium, robot, swaying(robot, tmp_path / "motion.npz"), 1.0)
    assert 0.0 < found.first < WAIT
    assert 1.0 < found.updates < 1.2 * RATE
    assert found.pictures > 1.0
    assert min(found.server, found.browser) > 0.0


# Pictures for the documentation ------------------------------------------------------------------


def document(browser: Any, folder: Path) -> None:
    """Make the pictures of docs/view.md: the Panda, and a humanoid next to a delta robot."""
    panda = chasles.load(chasles.robots.find("panda"))
    with opened(browser, show(panda, port=0, shadows=True), 1100, 700) as page:
        page.settled()
        save(page, folder / "view_panda.png")
    robot = chasles.robots.humanoid()
    viewer = show(robot, beside=chasles.robots.delta(), port=0, shadows=True)
    with opened(browser, viewer, 1100, 700) as page:
        panel = viewer.panels[0]
        panel.go(robot.state({"left_shoulder_pitch": 0.6, "right_elbow": 0.6}))
        for overlay in panel.overlays:
            if overlay.label in ("Center of mass", "See through", "Gravity torques"):
                panel.show(overlay, True)
        page.settled()
        save(page, folder / "view.png")


def front(file: Path) -> None:
    """Make the animation of the front page: the PUMA 560 on a spline with four waypoints."""
    from PIL import Image

    start = np.array([0.6, 0.35, -0.6, 0.0, 0.8, 0.0])
    away = [[0.8, 0.25, -0.5, 0.6, 0.3, 0.5], [-0.4, 0.65, -0.7, -0.5, 0.4, -0.8]]
    away += [[-1.0, 0.1, 0.25, 0.3, -0.5, 0.4]]
    postures = np.array([start, *(start + away), start])
    move = chasles.trajectory.spline(np.linspace(0.0, 4.0, 5), postures, ends="periodic")
    robot, size, step = chasles.robots.puma560(), (960, 480), 0.08
    with (
        show(robot, start, motion=move, port=0, shadows=True) as viewer,
        video.page(viewer, size) as client,
    ):
        assert viewer.playback is not None
        drawn = []
        for t in np.arange(0.0, 4.0 - 0.5 * step, step):
            viewer.playback.go(float(t))
            view = viewer.stage.view
            drawn.append(Image.fromarray(moving_picture(client, *size, view=view)))
    kept = {"duration": round(1e3 * step), "loop": 0, "quality": 72, "method": 6}
    drawn[0].save(file, save_all=True, append_images=drawn[1:], **kept)


def save(page: Page, file: Path) -> None:
    """Save an image of a page in 256 colors, which takes a third of the space."""
    from PIL import Image

    picture = Image.open(BytesIO(page.tab.screenshot())).convert("RGB")
    picture.quantize(256, dither=Image.Dither.NONE).save(file, optimize=True)


if __name__ == "__main__":
    with started() as browser:
        document(browser, ROOT / "docs" / "images")
    front(ROOT / "docs" / "images" / "arm.webp")
