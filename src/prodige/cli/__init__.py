"""The command line: thin over the library."""

from __future__ import annotations

import typer

from prodige.cli import classify, compress, explain, graphs, insert, recommend, reproduce, view
from prodige.cli.faces import encode_faces

app = typer.Typer(
    name="prodige",
    help="Data as learned weighted graphs.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
compress.register(app)
insert.register(app)
graphs.register(app)
recommend.register(app)
view.register(app)
classify.register(app)
explain.register(app)
app.command()(encode_faces)
app.add_typer(reproduce.app, name="reproduce")


def show_version(value: bool) -> None:
    """Print the version and leave."""
    if value:
        from prodige import __version__

        typer.echo(f"prodige {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: bool = typer.Option(
        False, "--version", callback=show_version, is_eager=True, metavar="", help="Show the version."
    ),
) -> None:
    """Run the command line."""
