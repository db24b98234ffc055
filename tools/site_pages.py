"""Pages of the site that are no files under docs/: a hook of mkdocs.

The Markdown files of this project link to source files next to them, as ``../src/prodige/graph/graph.py``, and so can
be read in the repository as they are. A site only has what lies under docs/. This hook adds a page for each such file,
and leads the links there. A link to a file that does not exist is left alone, and fails the strict build.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel

ROOT = Path(__file__).parents[1]

# Markdown that stands at the top of the repository and is part of the site as it is.
PAGES = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}

# A link up and out of its folder: ](../path) or ](../path#place).
_LINK = re.compile(r"\]\((?P<target>\.\./[^)#\s]+)(?P<place>#[^)\s]*)?\)")

_LANGUAGES = {".py": "python", ".cpp": "cpp", ".hpp": "cpp", ".toml": "toml"}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages."""
    for name, page in PAGES.items():
        text = from_top((ROOT / name).read_text(encoding="utf-8"))
        files.append(File.generated(config, page, content=text))
    linked: set[str] = set()
    for file in files.documentation_pages():
        for link in _LINK.finditer(file.content_string):
            target = repository_file(file.src_uri, link["target"])
            if target is not None and target not in PAGES:
                linked.add(target)
    for target in sorted(linked):
        shown = File.generated(config, page_of(target), content=show(target), inclusion=InclusionLevel.NOT_IN_NAV)
        files.append(shown)
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Lead links to files of the repository to their pages."""
    here: str = page.file.src_uri

    def lead(link: re.Match[str]) -> str:
        target = repository_file(here, link["target"])
        if target is None:
            return link[0]
        path = posixpath.relpath(page_of(target), posixpath.dirname(here) or ".")
        return f"]({path}{link['place'] or ''})"

    return _LINK.sub(lead, markdown)


def from_top(text: str) -> str:
    """Return a page of the top of the repository as it reads under docs/, where its links to docs/ begin.

    Examples
    --------
    >>> from site_pages import from_top
    >>> from_top("[the idea](docs/idea.md)")
    '[the idea](idea.md)'
    """
    return text.replace("](docs/", "](")


def repository_file(page: str, target: str) -> str | None:
    """Return the file of the repository that a page links to; None if it is under docs/ or not there.

    Examples
    --------
    >>> from site_pages import repository_file
    >>> repository_file("recommendation.md", "../src/prodige/graph/graph.py")
    'src/prodige/graph/graph.py'
    >>> repository_file("results/search.md", "../compression.md") is None
    True
    """
    path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page), target))
    is_outside = not path.startswith(("docs/", "../"))
    return path if is_outside and (ROOT / path).is_file() else None


def page_of(target: str) -> str:
    """Return where the page about a file of the repository is.

    Examples
    --------
    >>> from site_pages import page_of
    >>> page_of("examples/wine.py"), page_of("CONTRIBUTING.md")
    ('source/examples/wine.py.md', 'contributing.md')
    """
    return PAGES.get(target, f"source/{target}.md")


def show(target: str) -> str:
    """Return a page that shows a file."""
    text = (ROOT / target).read_text(encoding="utf-8").rstrip()
    if target.endswith(".md"):
        return text
    # Longer than any fence within the file.
    fence = "`" * (max((len(ticks) for ticks in re.findall("`{3,}", text)), default=3) + 1)
    return f"# {target}\n\n{fence} {_LANGUAGES.get(Path(target).suffix, 'text')}\n{text}\n{fence}\n"
