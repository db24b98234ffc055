"""``prodige``, also as ``python -m prodige``: what surrounds the commands.

Little is imported before Ctrl-C is taken care of.
"""

import os
import sys

from prodige.interrupts import LEAVING, handle


def main() -> None:
    """Run the command line, and leave."""
    handle(LEAVING)  # until a command begins, and again after its end
    occupy_descriptors()
    from prodige.cli import app
    from prodige.cli.errors import message, printable

    # Names need not fit into what a terminal or a pipe can take: better an escape than no answer.
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        app(prog_name="prodige")  # also as a module: completion is set up for this name
    except OSError as error:  # outside of a command, as where help does not fit on a disk
        sys.exit(f"Error: {printable(message(error))}")


def occupy_descriptors() -> None:
    """Open what is closed of the standard streams: a file in their place would get what others print."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest that is free


if __name__ == "__main__":
    main()
