"""The site builds without warnings, its links are valid, and it has all public names."""

import importlib.util
import inspect
import json
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from building import equations
from fontTools.ttLib import TTFont
from lxml import html

import chasles

pytestmark = pytest.mark.skipif(
    not all(map(importlib.util.find_spec, ("sphinx", "furo"))),
    reason="the site needs Sphinx and furo (extra docs)",
)

ROOT = Path(__file__).parents[1]
MODULES = ("contact", "homogeneous", "model", "robots", "rollouts")
"""Modules whose public names are in `__all__`."""
OPEN = ("control", "conventions")
"""Modules in which all names without an underscore are public."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site as the documentation does, with warnings as errors and without downloads."""
    target = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-W", "-n", "-q", "docs", str(target)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert built.returncode == 0, built.stderr
    return target


@cache
def parsed(path: Path) -> Any:
    """Return a parsed page; several tests read each page."""
    return html.parse(path)


def test_links_and_pictures_lead_somewhere(site: Path) -> None:
    pages = {path: parsed(path) for path in sorted(site.rglob("*.html"))}
    anchors = {path: set(page.xpath("//@id")) for path, page in pages.items()}
    assert len(pages) > 60
    broken = []
    for path, page in pages.items():
        for link in [
            *page.xpath("//a/@href"),
            *page.xpath("//img/@src"),
            *page.xpath("//link/@href"),
        ]:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            file = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not file.is_file() or (
                file in anchors and parts.fragment and unquote(parts.fragment) not in anchors[file]
            ):
                broken.append(f"{path.relative_to(site)}: {link}")
    assert not broken


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    for path in site.rglob("*.html"):
        page = parsed(path)
        loaded = [*page.xpath("//script/@src"), *page.xpath("//link[@rel='stylesheet']/@href")]
        assert not [link for link in [*loaded, *page.xpath("//img/@src")] if urlsplit(link).netloc]


def test_styles_request_nothing_from_elsewhere(site: Path) -> None:
    """Style sheets import no file and load no font or picture from another server."""
    sheets = sorted(site.rglob("*.css"))
    assert sheets
    wanted = re.compile(r"(?:url\(|@import)\s*['\"]?(?:https?:)?//[^)\s]+")
    assert not [sheet.name for sheet in sheets if wanted.search(sheet.read_text("utf-8"))]


def test_equations_are_mathml(site: Path) -> None:
    """Browsers show MathML without a script; equation numbers are those of the sources."""
    pages = {path: parsed(path) for path in sorted(site.rglob("*.html"))}
    scripts = [link for page in pages.values() for link in page.xpath("//script/@src")]
    assert not [link for link in scripts if "mathjax" in link.lower()]
    theory = pages[site / "theory/featherstone.html"]
    assert len(theory.xpath("//div[@class='equation']//math")) >= 8
    assert "(5.18)" in theory.xpath("//span[@class='number']/text()")
    for path, page in pages.items():
        words = " ".join(page.xpath("//article//text()[not(ancestor::pre or ancestor::code)]"))
        assert not re.search(r"\$\$|\\begin{", words), path


@pytest.mark.parametrize(
    ("tex", "mathml"),
    [
        (r"\dot q_i", "<msub><mover accent='true'>q˙</mover>i</msub>"),
        (r"\ddot{r}_i^2", "<msup><msub><mover accent='true'>r¨</mover>i</msub><mn>2</mn></msup>"),
        (r"\sum_j a", "<munder>∑j</munder>a"),
        (
            r"\tfrac12 m",
            "<mfrac displaystyle='false' scriptlevel='0'><mn>1</mn><mn>2</mn></mfrac>m",
        ),
        (r"E_1'", "<msubsup>E<mn>1</mn>′</msubsup>"),
        (r"2\sin x\cos^2 y", "<mn>2</mn>_sin()_x_<msup>cos<mn>2</mn></msup>_y"),
        (r"\operatorname{tr}(J)", "tr()(J)"),
    ],
)
def test_equations_look_like_latex(tex: str, mathml: str) -> None:
    """Indices follow accented letters, digits are not merged, and functions are separated."""
    found = re.sub(r">\s+<", "><", equations.converted(tex)).replace('"', "'")
    found = re.sub("<mspace[^>]*>", "_", found).replace(equations.APPLIED, "()")
    assert re.sub("</?(math|mi|mo|mrow)( [^>]*)?>| xmlns='[^']*'", "", found) == mathml


def test_the_font_of_equations_has_their_characters(site: Path) -> None:
    font = TTFont(site / "_static/equations.woff")
    assert "MATH" in font
    wanted = {"\N{MATHEMATICAL ITALIC SMALL Q}", "\N{MATHEMATICAL ITALIC SMALL TAU}"}
    for path in site.rglob("*.html"):
        wanted |= {
            c for text in parsed(path).xpath("//math//text()") for c in text if c.isprintable()
        }
    assert not [c for c in wanted if ord(c) not in font.getBestCmap()]
    assert (site / "_static/equations.woff").stat().st_size < 150_000


def test_screen_readers_find_headings_tables_and_lists(site: Path) -> None:
    """Lighthouse reports headings without level, empty header cells, and lists without terms."""
    for path in sorted(site.rglob("*.html")):
        page = parsed(path)
        assert not page.xpath("//*[@role='heading'][not(@aria-level)]"), path
        assert not page.xpath("//table[thead][not(thead//th//text()[normalize-space()])]"), path
        assert not page.xpath("//dl[*][not(dt)]"), path
    gallery = parsed(site / "gallery.html").xpath("//table[@role='presentation']")
    assert len(gallery) >= 5
    assert parsed(site / "api/robot.html").xpath("//dt//div[@class='parameters']/div")


def test_every_page_has_one_heading_of_level_1(site: Path) -> None:
    """The search page has its heading without scripts."""
    pages = sorted(path for path in site.rglob("*.html") if "_static" not in path.parts)
    counts = {path.relative_to(site): len(parsed(path).xpath("//article//h1")) for path in pages}
    assert not {path: count for path, count in counts.items() if count != 1}
    assert parsed(site / "search.html").xpath("//article//h1/text()") == ["Search"]


def test_pictures_state_their_sizes(site: Path) -> None:
    """Otherwise texts move down when a picture has been loaded."""
    (arm,) = parsed(site / "index.html").xpath("//article//img")
    assert (arm.get("width"), arm.get("height")) == ("960", "480")
    for path in (site / "gallery.html", *sorted((site / "tutorials").glob("*.html"))):
        assert not parsed(path).xpath("//article//img[not(@width) or not(@height)]"), path


def test_pages_have_an_icon_and_a_description(site: Path) -> None:
    found = {}
    for path in sorted(site.rglob("*.html")):
        page = parsed(path)
        assert page.xpath("//link[contains(@rel, 'icon')]/@href"), path
        if page.xpath("//article//h1") and path.parent.name != "_modules":
            found[path] = page.xpath("//meta[@name='description']/@content")
    missing = [path.name for path, said in found.items() if not said]
    assert set(missing) <= {"genindex.html", "py-modindex.html", "search.html"}
    assert all(len(said) <= 210 for (said, *_) in filter(None, found.values()))
    assert found[site / "index.html"][0].startswith("chasles computes the kinematics")


def test_tutorials_begin_with_a_picture(site: Path) -> None:
    pages = sorted((site / "tutorials").glob("*.html"))
    assert len(pages) == 9
    for path in pages:
        first = parsed(path).xpath("//article//*[self::img or self::pre]")[0]
        assert first.tag == "img", path
        assert first.get("alt"), path


def test_pages_are_small(site: Path) -> None:
    assert not [path for path in site.rglob("*.html") if path.stat().st_size > 1_000_000]


CHECKED = ("index", "start", "gallery", "tutorials/reach", "theory/featherstone", "api/robot")
CHECKED += ("errors",)
"""Pages that are opened in a browser."""

CONTRAST = """
() => {
  const light = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map(c => c / 255).map(
      c => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const numbers = text => text.match(/[\\d.]+/g).map(Number);
  const behind = element => {
    for (let e = element; e; e = e.parentElement) {
      const color = numbers(getComputedStyle(e).backgroundColor);
      if (color.length < 4 || color[3] === 1) return color;
    }
    return [255, 255, 255];
  };
  return [...document.querySelectorAll("article p, article li, article td, article a, article h1")]
    .filter(e => e.innerText.trim()).map(e => {
      const [a, b] = [light(numbers(getComputedStyle(e).color)), light(behind(e))];
      return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    });
}
"""
"""JavaScript for the luminance ratio of texts and their background (WCAG 2.1, 1.4.3)."""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_in_a_browser(site: Path, scheme: str) -> None:
    """Pages cause no errors, external requests or overflow.

    Texts have sufficient contrast, and images have descriptions.
    """
    pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    sys.path.insert(0, str(ROOT))
    from benchmarks.browser import CHROMIUM, chromium

    if CHROMIUM is None:
        pytest.skip("no Chromium is installed")
    api = sorted((site / "api").glob("*.html"))
    with chromium() as browser:
        tab = browser.new_page(viewport={"width": 390, "height": 844}, color_scheme=scheme)
        troubles, asked = [], []
        tab.on("console", lambda m: troubles.append(m.text) if m.type == "error" else None)
        tab.on("pageerror", lambda error: troubles.append(str(error)))
        tab.on("request", lambda request: asked.append(request.url))
        for name in CHECKED:
            path = site / f"{name}.html"
            path = path if path.is_file() else api[0]
            tab.goto(path.as_uri())
            assert tab.evaluate("document.documentElement.scrollWidth") <= 390, path
            assert min(tab.evaluate(CONTRAST)) >= 4.5, path
            assert tab.locator("img:not([alt]), img[alt='']").count() == 0, path
            assert tab.locator("article math").count() > 0 or "theory" not in name
        assert troubles == []
        assert not [url for url in asked if not url.startswith(("file:", "data:"))]


def documented(site: Path) -> set[str]:
    """Return every name that has its own entry, from the anchors of the pages."""
    found: set[str] = set()
    for path in (site / "api").glob("*.html"):
        found |= set(parsed(path).xpath("//dt/@id"))
    return found


def public(module: str) -> list[str]:
    """Return the dotted public names of a module."""
    space = importlib.import_module(f"chasles.{module}")
    if module in MODULES:
        names = list(space.__all__)
    else:
        names = [
            name
            for name, thing in vars(space).items()
            if not name.startswith("_") and getattr(thing, "__module__", "") == space.__name__
        ]
    return [f"chasles.{module}.{name}" for name in names]


def is_entry(dotted: str) -> bool:
    """Return True if a name is a function or a class, not a module or a plain value."""
    module, _, name = dotted.rpartition(".")
    thing = getattr(importlib.import_module(module), name)
    return inspect.isfunction(thing) or inspect.isclass(thing)


def test_every_public_name_has_an_entry(site: Path) -> None:
    entries = documented(site)
    names = [f"chasles.{name}" for name in chasles.__all__]
    for module in (*MODULES, *OPEN):
        names += public(module)
    elsewhere = {"chasles.model.ModelError", "chasles.rollouts.Trajectory"}
    assert all(
        name.replace(".model.", ".").replace(".rollouts.", ".") in entries for name in elsewhere
    )
    wanted = [name for name in names if is_entry(name) and name not in elsewhere]
    assert len(wanted) > 150
    assert not [name for name in wanted if name not in entries]


def test_every_method_of_a_robot_has_an_entry(site: Path) -> None:
    entries = documented(site)
    members = [name for name, _ in inspect.getmembers(chasles.Robot) if not name.startswith("_")]
    assert not [name for name in members if f"chasles.Robot.{name}" not in entries]


def test_docstrings_read_as_words(site: Path) -> None:
    text = (site / "api" / "robot.html").read_text("utf-8")
    assert "system-message" not in text
    assert not re.search(r"<em>[^<]{200,}", text)  # emphasis started by a stray asterisk


def test_tutorials_are_notebooks_with_results(site: Path) -> None:
    pages = sorted((ROOT / "docs/tutorials").glob("*.md"))
    assert len(pages) == 9
    for page in pages:
        book = json.loads((site / "tutorials" / f"{page.stem}.ipynb").read_text("utf-8"))
        cells = [cell for cell in book["cells"] if cell["cell_type"] == "code"]
        text = page.read_text("utf-8")
        code = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
        files = [cell["source"] for cell in cells if cell["source"].startswith("%%writefile ")]
        assert [c["source"] + "\n" for c in cells if c["source"] not in files] == code
        assert len(files) == text.count("<!-- file: ")
        assert any(cell["outputs"] for cell in cells)
        assert not any("```python" in "".join(cell["source"]) for cell in book["cells"])


def test_links_to_elsewhere_are_listed(site: Path) -> None:
    listed = (site / "external-links.txt").read_text("utf-8")
    assert "https://github.com/coal-library/coal contact\n" in listed


def test_every_page_has_its_version(site: Path) -> None:
    pages = [path for path in site.rglob("*.html") if "_static" not in path.parts]
    for path in pages:
        text = " ".join(parsed(path).xpath("//div[@aria-label='Versions']//text()"))
        assert text.split() == ["Version", chasles.__version__], path


def test_releases_side_by_side(tmp_path: Path) -> None:
    """Two tags of a small repository are built with this repository's template and program."""
    building = ROOT / "docs/building"
    docs, site = tmp_path / "docs", tmp_path / "site"
    (docs / "part").mkdir(parents=True)
    shutil.copytree(building / "templates", docs / "templates")
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c"]
    for number in ("1", "2"):
        (docs / "conf.py").write_text(
            f"project, release, html_theme = 'small', '{number}.0', 'furo'\n"
            "templates_path, html_sidebars = ['templates'], {'**': ['versions.html']}\n"
        )
        (docs / "index.rst").write_text("Small\n=====\n\n.. toctree::\n\n   part/page\n")
        (docs / "part/page.rst").write_text(f"Page\n====\n\nOf {number}.\n")
        for command in (["init", "-q"], ["add", "docs"], ["commit", "-qm", "a"], ["tag", number]):
            subprocess.run([*git, *command], cwd=tmp_path, check=True)
    sys.path.insert(0, str(building.parent))
    try:
        versions = importlib.import_module("building.versions")
    finally:
        sys.path.pop(0)
    versions.build(site, ["2", "1"], tmp_path)
    page = site / "1/part/page.html"
    links = parsed(page).xpath("//div[@aria-label='Versions']//a/@href")
    assert [(page.parent / link).resolve() for link in links] == [
        site / "2/index.html",
        site / "1/index.html",
    ]
    assert all((page.parent / link).is_file() for link in links)
    assert "Of 2." in (site / "2/part/page.html").read_text("utf-8")
    assert "2/index.html" in (site / "index.html").read_text("utf-8")
