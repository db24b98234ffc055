"""The gallery: ``python tools/gallery.py`` runs every example, for its picture, and writes the notebooks anew."""

from __future__ import annotations

import runpy

import notebooks

FIGURES = notebooks.ROOT / "docs" / "figures"


def main() -> None:
    """Run the examples one after the other."""
    for script in sorted(notebooks.EXAMPLES.glob("*.py")):
        print(f"-- {script.stem}", flush=True)
        runpy.run_path(str(script))["main"](FIGURES)
    # What an example saves beside its picture is no part of the documentation.
    for file in FIGURES.glob("*.prodige"):
        file.unlink()
    notebooks.main()


if __name__ == "__main__":
    main()
