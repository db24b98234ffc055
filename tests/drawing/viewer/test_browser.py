"""The viewer in a real browser: what is drawn, what pointers and keys do, what strange data do not do."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from selenium.webdriver.common.keys import Keys

from browser import Browser
from prodige import Graph
from prodige.drawing.viewer.inputs import MOST_GROUPS
from strategies import hub_graph

pytestmark = pytest.mark.browser

# A square whose corners 0 and 2 have a shortcut over hub 4 in the middle; corner 3 is alone.
SQUARE = [[0.0, 0.0], [10.0, 0.0], [10.0, 10.0], [0.0, 10.0], [5.0, 5.0]]


def square() -> Graph:
    return Graph.from_edges([0, 1, 0, 2], [1, 2, 4, 4], [1.5, 2.0, 1.0, 0.75], n_vertices=5, n_items=4)


def show(browser: Browser, path: Path, graph: Graph, **what: Any) -> None:
    """Write the page and open it; it must not complain."""
    window = {name: what.pop(name) for name in ("size", "dark") if name in what}
    graph.to_html(path / "graph.html", **what)
    browser.open(path / "graph.html", **window)
    browser.wait("window.prodige && window.prodige.firstPaint")
    assert browser.messages() == []


def click(browser: Browser, vertex: int) -> None:
    place = browser.run("prodige.screen(arguments[0])", vertex)
    browser.click(place["x"], place["y"])


def text(browser: Browser, selector: str) -> str:
    return str(browser.run("document.querySelector(arguments[0]).textContent", selector))


@pytest.fixture
def page(browser: Browser, tmp_path: Path) -> Browser:
    """The square with names and groups."""
    names = ["north", "east", "south", "west"]
    show(browser, tmp_path, square(), positions=SQUARE, labels=names, groups=["a", "a", "b", "b"], title="Four & one")
    return browser


# -- the picture -----------------------------------------------------------------------------------------------------


def test_page_shows_the_graph(page: Browser) -> None:
    assert page.driver.title == "Four & one"
    assert text(page, "h1") == "Four & one"
    assert text(page, "#counts").replace("\xa0", " ") == "4 items · 1 hub · 4 edges"
    assert [row.split() for row in page.run("[...document.querySelectorAll('#groups li')].map(e => e.innerText)")] == [
        ["a", "2"],
        ["b", "2"],
        ["hub"],
    ]
    place = page.run("prodige.screen(0)")
    x, y = int(place["x"]) - 10, int(place["y"]) - 10
    around = page.picture(x, y, 20, 20).reshape(-1, 3)
    blue = np.array([0x00, 0x72, 0xB2])
    assert (np.abs(around.astype(int) - blue).max(axis=1) < 12).sum() > 20


def test_colours_follow_the_system_and_the_button(browser: Browser, tmp_path: Path) -> None:
    show(browser, tmp_path, square(), positions=SQUARE, dark=True)
    assert browser.run("prodige.state.theme") == "dark"
    assert browser.picture(300, 4, 8, 8).mean() < 60
    browser.run("document.querySelector('[data-do=theme]').click()")
    browser.wait("!prodige.state.busy")
    assert browser.run("prodige.state.theme") == "light"
    assert browser.picture(300, 4, 8, 8).mean() > 200


def test_hubs_can_be_hidden(page: Browser) -> None:
    place = page.run("prodige.screen(4)")
    spot = int(place["x"]) - 12, int(place["y"]) - 12, 24, 24
    with_hub = page.picture(*spot)
    page.run("document.getElementById('hubs').click()")
    page.wait("!prodige.state.busy && !prodige.state.hubs")
    assert np.ptp(with_hub, axis=(0, 1)).max() > 40
    assert np.ptp(page.picture(*spot), axis=(0, 1)).max() == 0  # neither hub nor its edges
    page.move(place["x"], place["y"])
    assert page.run("prodige.state.hovered") == -1


def test_groups_can_be_hidden(page: Browser) -> None:
    page.run("document.querySelector('#groups button').click()")
    assert page.run("document.querySelector('#groups button').getAttribute('aria-pressed')") == "false"
    page.wait("!prodige.state.busy")
    click(page, 0)
    assert page.run("prodige.state.from") == -1
    click(page, 2)
    assert page.run("prodige.state.from") == 2


def test_thumbnails(browser: Browser, tmp_path: Path) -> None:
    images = np.zeros((4, 6, 8, 3), np.uint8)
    images[:, :, :4, 0] = 255  # left half red, right half green
    images[:, :, 4:, 1] = 255
    show(browser, tmp_path, square(), positions=SQUARE, images=images)
    browser.wait("viewer.marks.sheets[0] && !prodige.state.busy")
    place = browser.run("prodige.screen(1)")
    x, y = int(place["x"]), int(place["y"])
    np.testing.assert_allclose(browser.picture(x - 12, y - 2, 4, 4).reshape(-1, 3).mean(axis=0), [255, 0, 0], atol=3)
    np.testing.assert_allclose(browser.picture(x + 8, y - 2, 4, 4).reshape(-1, 3).mean(axis=0), [0, 255, 0], atol=3)


def test_phone(browser: Browser, tmp_path: Path) -> None:
    show(browser, tmp_path, square(), positions=SQUARE, size=(390, 780))
    assert browser.run("document.documentElement.scrollWidth") <= 390
    boxes = browser.run("['picture', 'panel'].map(id => document.getElementById(id).getBoundingClientRect().toJSON())")
    assert boxes[0]["bottom"] <= boxes[1]["top"] + 1
    click(browser, 0)
    click(browser, 2)
    assert browser.run("prodige.state.path") == [0, 4, 2]


# -- pointers --------------------------------------------------------------------------------------------------------


def test_hover_shows_label_degree_and_distance(page: Browser) -> None:
    place = page.run("prodige.screen(2)")
    page.move(place["x"], place["y"])
    page.wait("!document.getElementById('card').hidden")
    assert page.run("document.getElementById('card').innerText.split(/\\n+/)") == ["south", "degree 2", "b"]
    click(page, 1)
    page.move(place["x"], place["y"])
    assert "2 from east" in page.run("document.getElementById('card').innerText")
    page.move(place["x"] - 60, place["y"] + 60)
    assert page.run("document.getElementById('card').hidden")


def test_two_clicks_show_the_shortest_path(page: Browser) -> None:
    click(page, 0)
    assert page.run("prodige.state.from") == 0
    click(page, 2)
    assert page.run("prodige.state.path") == square().path(0, 2) == [0, 4, 2]
    assert page.run("prodige.state.length") == square().distance(0, 2) == 1.75
    assert text(page, "#length") == "1.75 over 2 edges"
    rows = page.run("[...document.querySelectorAll('#path li')].map(e => e.innerText.split(/\\n+/))")
    assert rows == [["north", "0"], ["hub 0", "1"], ["south", "1.75"]]
    a, b = (page.run("prodige.screen(arguments[0])", vertex) for vertex in (0, 4))
    middle = page.picture(round((a["x"] + b["x"]) / 2) - 2, round((a["y"] + b["y"]) / 2) - 2, 4, 4).reshape(-1, 3)
    assert np.abs(middle.astype(int) - [0xC2, 0x41, 0x0C]).max(axis=1).min() < 30  # the line is lit
    assert "1.75" in text(page, "#news")
    click(page, 3)  # a third click begins anew
    assert page.run("[prodige.state.from, prodige.state.to]") == [3, -1]
    click(page, 0)
    assert text(page, "#length") == "no path"


def test_lengths_are_those_of_the_graph(browser: Browser, tmp_path: Path) -> None:
    edges = hub_graph(60, 4)
    graph = Graph.from_edges(edges.i, edges.j, edges.weight, edges.n_vertices, edges.n_items)
    show(browser, tmp_path, graph)
    found = browser.run("(() => { const all = new Paths(viewer.graph, 7); return [...all.distances]; })()")
    np.testing.assert_allclose(found, graph.distances([7], np.arange(64))[0], rtol=1e-6)
    for target in range(0, 64, 9):
        path = browser.run("new Paths(viewer.graph, 7).to(arguments[0])", target)
        steps = [graph.distance(a, b) for a, b in pairwise(path)]
        assert path[0] == 7
        assert path[-1] == target
        assert sum(steps) == pytest.approx(graph.distance(7, target), rel=1e-6)


def test_dragging_and_wheel(page: Browser) -> None:
    before = page.run("prodige.screen(0)")
    page.drag(400, 300, 80, -40)
    page.wait("!prodige.state.busy")
    after = page.run("prodige.screen(0)")
    assert (after["x"] - before["x"], after["y"] - before["y"]) == pytest.approx((80, -40), abs=1)
    assert page.run("prodige.state.from") == -1  # a drag is no click
    scale, under = page.run("prodige.state.scale"), page.run("viewer.camera.toPlane(400, 300)")
    page.turn_wheel(400, 300, -240)
    page.wait("prodige.state.scale > arguments[0]", 1.2 * scale)
    assert page.run("viewer.camera.toPlane(400, 300)") == pytest.approx(under, abs=1e-6)


# -- search and keys -------------------------------------------------------------------------------------------------


def test_search(page: Browser) -> None:
    page.run("document.getElementById('query').focus()")
    page.press("th")
    assert page.run("[...document.querySelectorAll('#found li')].map(e => e.innerText)") == ["north", "south"]
    page.press(Keys.ARROW_DOWN, Keys.ENTER)
    assert page.run("prodige.state.from") == 2
    assert page.run("document.getElementById('found').hidden")
    place = page.run("prodige.screen(2)")
    box = page.run("document.getElementById('picture').getBoundingClientRect().toJSON()")
    assert (place["x"], place["y"]) == pytest.approx((box["width"] / 2, box["height"] / 2), abs=1)  # brought into sight
    page.press("1", Keys.ENTER)  # the number of a vertex
    assert page.run("prodige.state.to") == 1
    page.press("nowhere")
    assert text(page, "#found-count") == "nothing found"
    page.press(Keys.ESCAPE)
    assert page.run("document.getElementById('query').value") == ""


def test_keys(page: Browser) -> None:
    focused = []
    for _ in range(7):
        page.press(Keys.TAB)
        focused.append(page.run("document.activeElement.id || document.activeElement.dataset.do || 'skip'"))
    assert focused == ["skip", "picture", "in", "out", "fit", "theme", "query"]
    page.run("document.getElementById('picture').focus()")
    start = page.run("prodige.state")
    page.press(Keys.ARROW_RIGHT)
    assert page.run("prodige.state.x") > start["x"]
    page.press(Keys.ARROW_UP)
    assert page.run("prodige.state.y") > start["y"]
    page.press("+")
    assert page.run("prodige.state.scale") > start["scale"]
    page.press("-", "-")
    assert page.run("prodige.state.scale") < start["scale"]
    page.press("0")
    assert page.run("[prodige.state.x, prodige.state.y]") == pytest.approx([5, 5])
    page.press("h")
    assert not page.run("prodige.state.hubs")
    page.press("h", "t")
    assert page.run("prodige.state.theme") == "dark"
    page.press(Keys.ENTER)  # the hub is in the middle, under the cross
    assert page.run("prodige.state.from") == 4
    page.press(Keys.ESCAPE)
    assert page.run("prodige.state.from") == -1
    page.press("/")
    assert page.run("document.activeElement.id") == "query"


# -- strange data ----------------------------------------------------------------------------------------------------

ATTACKS = [
    "</script><script>window.broken = 1</script>",
    "<img src=x onerror='window.broken = 1'>",
    "javascript:window.broken=1",
    "@@script@@ &lt;b&gt; \u2028 \u2029 \x00 \ud800",
    "👩‍👩‍👧‍👦" * 40,
    "שלום עולם (1) \u202eabc",
    "x" * 10_000,
    "",
]


def test_labels_are_text(browser: Browser, tmp_path: Path) -> None:
    n = len(ATTACKS)
    graph = Graph.from_edges(np.arange(n - 1), np.arange(1, n), np.ones(n - 1))
    show(browser, tmp_path, graph, labels=ATTACKS, groups=ATTACKS, title=ATTACKS[0])
    for vertex in range(n):
        click(browser, vertex)
        browser.run("document.getElementById('in-words').open = true")
    browser.run("document.getElementById('query').focus()")
    browser.press("<img")
    assert browser.run("document.querySelector('#found li .row-label').textContent") == ATTACKS[1]
    assert browser.run("typeof window.broken") == "undefined"
    assert browser.run("document.querySelectorAll('script').length") == 2
    assert browser.run("document.querySelectorAll('img, b').length") == 0
    assert browser.run("viewer.graph.labels[6].length") == 10_000
    assert browser.run("document.documentElement.scrollWidth") <= 1200
    assert browser.run("[...document.querySelectorAll('.row-label')].every(e => e.dir === 'auto')")
    assert browser.messages() == []


def test_policy_stops_what_gets_in(page: Browser) -> None:
    """Should a label ever become markup, the browser would still not run it, nor ask any host for anything."""
    page.run("document.body.insertAdjacentHTML('beforeend', arguments[0])", "<img src=x onerror='window.broken = 1'>")
    page.run("document.body.append(Object.assign(document.createElement('script'), {text: 'window.broken = 1'}))")
    refused = "fetch('https://example.org/').then(() => false, () => true)"
    assert page.driver.execute_async_script(f"const done = arguments[0]; {refused}.then(done)")
    assert page.run("typeof window.broken") == "undefined"
    assert page.messages()


@pytest.mark.parametrize(
    "graph",
    [
        Graph.from_edges([], [], [], n_vertices=1),
        Graph.from_edges([], [], [], n_vertices=5, n_items=3),
        Graph.from_edges([0, 2, 3], [1, 3, 4], [0, 0, 1e38], n_vertices=7),
    ],
    ids=["one vertex", "no edges", "parts"],
)
def test_odd_graphs(browser: Browser, tmp_path: Path, graph: Graph) -> None:
    show(browser, tmp_path, graph)
    for vertex in {0, graph.n_vertices - 1}:
        click(browser, vertex)
    browser.press("+", "0", "h")
    browser.wait("!prodige.state.busy")
    assert browser.messages() == []


def test_many_groups(browser: Browser, tmp_path: Path) -> None:
    n = MOST_GROUPS
    graph = Graph.from_edges([], [], [], n_vertices=n)
    show(browser, tmp_path, graph, groups=np.arange(n))
    assert browser.run("document.querySelectorAll('#groups li').length") == n
    styles = browser.run("viewer.graph.groupNames.map((_, g) => JSON.stringify(styleOf(g)))")
    assert len(set(styles)) == 28


# -- speed -----------------------------------------------------------------------------------------------------------


def test_large_graph_is_quick(browser: Browser, tmp_path: Path) -> None:
    """10,000 vertices and 35,000 edges, on a machine that may be busy; benchmarks/viewer.py measures."""
    rng = np.random.default_rng(0)
    positions = rng.normal(size=(10_000, 2))
    i, j = rng.integers(0, 10_000, (2, 36_000))
    graph = Graph.from_edges(i[i != j], j[i != j], rng.random((i != j).sum()), n_vertices=10_000)
    assert graph.n_edges >= 35_000
    show(browser, tmp_path, graph, positions=positions)
    script = "const done = arguments[0]; prodige.benchmark(1).then(done)"
    frames = browser.driver.execute_async_script(script)["framesPerSecond"]
    slowness = browser.slowness()
    assert browser.run("prodige.firstPaint") < 2000 * slowness
    assert frames > 20 / slowness
    browser.wait("!prodige.state.busy")
    assert browser.picture(350, 300, 200, 200).std(axis=(0, 1)).max() > 10
