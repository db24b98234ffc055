"""Downloads: from a public source into a file, or an error that says what to do instead.

A file counts only if it is whole: its length must be as announced, and its checksum as published where one is known.
"""

from __future__ import annotations

import hashlib
import http.client
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from prodige.progress import Bar

_TIMEOUT = 30  # seconds without a byte
_CHUNK = 1 << 18  # bytes


@dataclass(frozen=True)
class Original:
    """A file as its authors publish it.

    Attributes
    ----------
    file : str
        Its name.
    urls : tuple of str
        Where it can be had, tried in this order.
    md5 : str, optional
        Its published checksum. It guards against damage and mix-ups; newer hashes were never published for these files.

    Examples
    --------
    >>> from prodige.datasets.download import Original
    >>> Original("data.gz", ("https://example.org/data.gz",)).md5 is None
    True
    """

    file: str
    urls: tuple[str, ...]
    md5: str | None = None


def fetch(original: Original, into: Path, folder: Path | None, advice: str) -> Path:
    """Return the path of an original: the user's own copy if there is one, else downloaded.

    Parameters
    ----------
    original : Original
        What to get.
    into : Path
        Folder for the download.
    folder : Path or None
        The user's folder.
    advice : str
        What to do if it cannot be had.

    Raises
    ------
    FileNotFoundError
        If no source gives the right file.
    """
    if folder is not None and (folder / original.file).exists():
        path = folder / original.file
        if reason := mismatch(path, original.md5):
            raise ValueError(f"{path} is not the published file: {reason}; get it anew or remove it")
        return path
    path = into / original.file
    failures = []
    for url in original.urls:
        try:
            download(url, path)
        except (OSError, http.client.HTTPException) as error:
            reason = str(getattr(error, "reason", "") or error) or type(error).__name__
        else:
            reason = mismatch(path, original.md5)
            if not reason:
                return path
        failures.append(f"{url}: {reason}")
    raise FileNotFoundError(f"cannot download {original.file} ({'; '.join(failures)}); {advice}")


def download(url: str, path: Path) -> None:
    """Write what an address gives to a file, with a progress bar where it takes long."""
    request = urllib.request.Request(url, headers={"User-Agent": "prodige"})
    with urllib.request.urlopen(request, timeout=_TIMEOUT) as response, open(path, "wb") as file:
        announced = response.headers.get("Content-Length")
        total = int(announced) if announced and announced.isdigit() else None
        with Bar(total=total, unit="B", unit_scale=True, desc=path.name, delay=2) as bar:
            while chunk := response.read(_CHUNK):
                file.write(chunk)
                bar.update(len(chunk))
        written = file.tell()
    # A connection that breaks looks like the end of the file.
    if total is not None and written != total:
        raise OSError(f"broke off after {written} of {total} bytes")


def mismatch(path: Path, md5: str | None) -> str:
    """Say how a file differs from its checksum; nothing if it does not."""
    if md5 is None:
        return ""
    digest = hashlib.md5(usedforsecurity=False)
    with open(path, "rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    found = digest.hexdigest()
    return "" if found == md5 else f"its md5 is {found} instead of {md5}"
