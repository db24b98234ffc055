"""What the pages show is true: their code runs, their pictures are made by commands, and links find their way."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import site_pages
from docstring_markdown import to_markdown
from prodige import fileformat

DOCS = site_pages.ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))


def programs(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(DOCS)) for page in PAGES])
def test_programs_compile(page: Path) -> None:
    for program in programs(page):
        compile(program, page.name, "exec")


@pytest.mark.parametrize("name", ["any-loss.md", "budget.md"])
def test_programs_run(name: str) -> None:
    found = programs(DOCS / name)
    assert found
    for program in found:
        exec(program, {})


def test_pictures_are_there() -> None:
    """The strict build checks it too, but takes longer and needs the extra ``docs``."""
    for page in PAGES:
        for picture in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / picture).exists(), f"{page.name} shows {picture}"


def test_links_to_the_repository_lead_to_pages() -> None:
    class File:
        src_uri = "results/search.md"

    class Page:
        file = File()

    text = "[a](../../CONTRIBUTING.md) [b](../../examples/wine.py#top) [c](../compression.md) [d](../../nothing.py)"
    assert site_pages.on_page_markdown(text, page=Page()) == (
        "[a](../contributing.md) [b](../source/examples/wine.py.md#top) [c](../compression.md) [d](../../nothing.py)"
    )


def test_a_file_is_shown_whole_within_a_fence_of_its_own() -> None:
    page = site_pages.show("tests/test_docs.py")  # this file has fences
    fence = re.search(r"^(`+) python$", page, re.MULTILINE)
    assert fence is not None
    assert page.count(fence[1]) == 2
    assert Path(__file__).read_text(encoding="utf-8").rstrip() in page


def test_table_of_the_file_format_becomes_markdown() -> None:
    text = to_markdown(fileformat.__doc__ or "")
    assert "| offset | bytes |  |" in text
    assert "| 16 + H | 4 E | `i`, int32: the smaller end of each edge |" in text
    assert "====" not in text


def test_formulas_become_blocks() -> None:
    text = to_markdown("So:\n\n    .. math:: a\n              + b\n\nEnd :math:`c`.")
    assert text == "So:\n\n    ```tex\n    a\n    + b\n    ```\n\nEnd `c`."
