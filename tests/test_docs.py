"""What the pages show is true: their code runs, their pictures are made by commands, and links find their way."""

from __future__ import annotations

import ast
import re
import shlex
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import typer.main
from matplotlib import pyplot

import site_pages
from docstring_markdown import to_markdown
from prodige.cli import app
from prodige.compression import selection
from prodige.graph import container, legacy

DOCS = site_pages.ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))


README = site_pages.ROOT / "README.md"
CONTRIBUTING = site_pages.ROOT / "CONTRIBUTING.md"


def programs(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


WITH_PROGRAMS = [page for page in (README, *PAGES) if programs(page)]


def run(program: str, namespace: dict[str, Any]) -> None:
    """Run a program statement by statement; where a comment is what an expression is to give, it has to give that."""
    lines = program.splitlines()
    for statement in ast.parse(program).body:
        if not isinstance(statement, ast.Expr):
            exec(compile(ast.Module([statement], []), "page", "exec"), namespace)
            continue
        value = eval(compile(ast.Expression(statement.value), "page", "eval"), namespace)
        comment = lines[(statement.end_lineno or 0) - 1][statement.end_col_offset :].strip().removeprefix("# ")
        try:
            promised = ast.literal_eval(comment.split(":")[0])
        except (SyntaxError, ValueError):
            continue  # words
        assert np.array_equal(value, promised), f"{ast.unparse(statement)} gives {value}, not {promised}"


@pytest.mark.parametrize("page", WITH_PROGRAMS, ids=[page.name for page in WITH_PROGRAMS])
def test_programs_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each in its order: what one has made, the next may use. Fits are short; how good they are is told elsewhere."""
    for name, n_steps in (("N_STEPS", 8), ("N_LOCAL_STEPS", 8), ("N_SWEEPS", 2)):
        monkeypatch.setattr(selection, name, n_steps)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    namespace: dict[str, Any] = {}
    for program in programs(page):
        run(program, namespace)
    pyplot.close("all")


def test_every_page_with_a_program_is_known() -> None:
    """All of them are run; a fence that is written otherwise would not be found."""
    assert {page.name for page in WITH_PROGRAMS} >= {"README.md", "start.md", "text.md", "viewer.md", "any-loss.md"}
    for page in (README, *PAGES):
        fences = re.findall(r"^[ \t]*```[ \t]*(?:py|python)\b.*$", page.read_text(encoding="utf-8"), re.MULTILINE)
        assert fences == ["```python"] * len(programs(page)), page.name


def test_wrong_promises_are_noticed() -> None:
    run("x = 3\nx + 1  # 4: one more\nx  # three", {})
    with pytest.raises(AssertionError, match=r"x \+ 1 gives 4, not 5"):
        run("x = 3\nx + 1  # 5", {})


# -- commands --------------------------------------------------------------------------------------------------------


def commands(page: Path) -> list[list[str]]:
    """Return the words of every call of prodige on a page, in blocks and in the midst of text."""
    text = page.read_text(encoding="utf-8")
    blocks = re.findall(r"^    (?:\$ )?(prodige .*)$", text, re.MULTILINE)
    inline = re.findall(r"`(prodige [^`]+)`", text)
    calls = [call.strip() for line in [*blocks, *inline] for call in line.split("&&")]
    return [shlex.split(call, comments=True)[1:] for call in calls]


def check_command(words: list[str]) -> None:
    """Make sure that a command is there and has such options and arguments."""
    command: Any = typer.main.get_command(app)
    while hasattr(command, "commands") and words and not words[0].startswith("-"):
        assert words[0] in command.commands, f"{command.name} has no command {words[0]}"
        command, words = command.commands[words[0]], words[1:]
    takes_value = {
        name: not option.is_flag
        for option in command.params
        if hasattr(option, "is_flag")
        for name in (*option.opts, *option.secondary_opts)
    }
    takes_value["--help"] = False
    n_most = sum(
        1e9 if argument.nargs < 0 else argument.nargs for argument in command.params if not hasattr(argument, "is_flag")
    )
    rest, n_arguments = iter(words), 0
    for word in rest:
        if word.startswith("-"):
            assert word in takes_value, f"{command.name} has no option {word}"
            if takes_value[word]:
                next(rest, None)  # `compress --report` in the midst of text names the option only
        else:
            n_arguments += 1
    assert n_arguments <= n_most, f"{command.name} takes no {n_arguments} arguments"


COMMANDS = {page: commands(page) for page in (README, CONTRIBUTING, *PAGES) if commands(page)}


@pytest.mark.parametrize("page", COMMANDS, ids=[page.name for page in COMMANDS])
def test_commands_exist(page: Path) -> None:
    for words in COMMANDS[page]:
        check_command(words)


def test_commands_are_found() -> None:
    assert ["compress", "digits.npy", "-n", "4", "--report", "run.html"] in COMMANDS[DOCS / "start.md"]
    assert ["recommend", "tastes.prodige", "--user", "alice"] in COMMANDS[DOCS / "recommendation.md"]
    assert ["reproduce", "table1"] in COMMANDS[README]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("shrink x.npy", "no command shrink"),
        ("compress x.npy --numbers 4", "no option --numbers"),
        ("compress x.npy y.npy", "takes no 2 arguments"),
        ("reproduce table9", "no command table9"),
    ],
)
def test_wrong_commands_are_noticed(call: str, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_command(call.split())


@pytest.mark.parametrize("page", [README, *PAGES], ids=lambda page: page.name)
def test_scripts_exist(page: Path) -> None:
    for script in re.findall(r"`python (\S+\.py)\b", page.read_text(encoding="utf-8")):
        assert (site_pages.ROOT / script).is_file(), f"{page.name} names {script}"


def test_pictures_are_there() -> None:
    """The strict build checks it too, but takes longer and needs the extra ``docs``."""
    for page in (README, CONTRIBUTING, *PAGES):
        for picture in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / picture).exists(), f"{page.name} shows {picture}"


def test_readme_and_docs_have_the_same_figures() -> None:
    """The table of the README stands on the page that compares, too."""
    rows = [line for line in README.read_text(encoding="utf-8").splitlines() if re.match(r"\| [A-Z]\w+10k \|", line)]
    assert len(rows) == 6
    assert set(rows) <= set((DOCS / "compare.md").read_text(encoding="utf-8").splitlines())


def test_every_room_is_shown() -> None:
    """In the picture, in the table of CONTRIBUTING, and with a page of the reference if it is for users."""
    rooms = {path.parent.name for path in (site_pages.ROOT / "src" / "prodige").glob("*/__init__.py")}
    picture = (DOCS / "figures" / "house.svg").read_text(encoding="utf-8")
    words = CONTRIBUTING.read_text(encoding="utf-8")
    for room in sorted(rooms | {"_core"}):
        assert f">{room}</text>" in picture, f"the picture has no room {room}"
        assert f"\n| `{room}` |" in words, f"CONTRIBUTING.md has no room {room}"
    pages = {page.stem for page in (DOCS / "api").glob("*.md")}
    assert pages == rooms - {"cli", "reproduce"} | {"index"}


def test_links_to_the_repository_lead_to_pages() -> None:
    class File:
        src_uri = "results/search.md"

    class Page:
        file = File()

    text = "[a](../../CONTRIBUTING.md) [b](../../examples/wine.py#top) [c](../compression.md) [d](../../nothing.py)"
    assert site_pages.on_page_markdown(text, page=Page()) == (
        "[a](../contributing.md) [b](../source/examples/wine.py.md#top) [c](../compression.md) [d](../../nothing.py)"
    )


def test_pages_from_the_top_find_what_is_under_docs() -> None:
    text = "![rooms](docs/figures/house.svg) [idea](docs/idea.md#glossary) [a word](documents.md)"
    assert site_pages.from_top(text) == "![rooms](figures/house.svg) [idea](idea.md#glossary) [a word](documents.md)"


def test_the_picture_of_the_rooms_is_well_formed_and_needs_no_network() -> None:
    picture = (DOCS / "figures" / "house.svg").read_text(encoding="utf-8")
    assert ElementTree.fromstring(picture).tag == "{http://www.w3.org/2000/svg}svg"
    assert re.findall(r"https?://\S+?\"", picture) == ['http://www.w3.org/2000/svg"']  # the name of the format
    assert "font-face" not in picture


def test_a_file_is_shown_whole_within_a_fence_of_its_own() -> None:
    page = site_pages.show("tests/test_docs.py")  # this file has fences
    fence = re.search(r"^(`+) python$", page, re.MULTILINE)
    assert fence is not None
    assert page.count(fence[1]) == 2
    assert Path(__file__).read_text(encoding="utf-8").rstrip() in page


def test_table_of_the_file_format_becomes_markdown() -> None:
    text = to_markdown(container.__doc__ or "")
    assert "| offset | bytes |  |" in text
    assert "| 16 + H | ... | arrays, one after the other |" in text
    assert '| `kind` | `"graph"`, `"product"`, `"compressor"`, `"recommender"`, `"text"` or `"checkpoint"` |' in text
    assert "====" not in text
    assert "====" not in to_markdown(legacy.__doc__ or "")


def test_formulas_become_blocks() -> None:
    text = to_markdown("So:\n\n    .. math:: a\n              + b\n\nEnd :math:`c`.")
    assert text == "So:\n\n    ```tex\n    a\n    + b\n    ```\n\nEnd `c`."
