"""Downloads from a server on this machine."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from prodige.datasets.download import Original, download, fetch

CONTENT = bytes(range(256)) * 5000
MD5 = hashlib.md5(CONTENT).hexdigest()


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *arguments: object) -> None:
        pass


class BreaksOff(BaseHTTPRequestHandler):
    """Announces more than it gives."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "1000")
        self.end_headers()
        self.wfile.write(b"x" * 10)

    def log_message(self, *arguments: object) -> None:
        pass


def serve(handler: object) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:  # type: ignore[arg-type]
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@pytest.fixture
def place(tmp_path: Path) -> Iterator[str]:
    folder = tmp_path / "served"
    folder.mkdir()
    (folder / "data.gz").write_bytes(CONTENT)
    yield from serve(partial(Quiet, directory=folder))


@pytest.fixture
def broken_place() -> Iterator[str]:
    yield from serve(BreaksOff)


def test_download(place: str, tmp_path: Path) -> None:
    path = fetch(Original("data.gz", (f"{place}/data.gz",), MD5), tmp_path, None, "")
    assert path == tmp_path / "data.gz"
    assert path.read_bytes() == CONTENT
    # Without a checksum, and from a file.
    (tmp_path / "data.gz").unlink()
    url = (tmp_path / "served" / "data.gz").as_uri()
    assert fetch(Original("data.gz", (url,)), tmp_path, None, "").read_bytes() == CONTENT


def test_the_next_place_is_tried(place: str, broken_place: str, tmp_path: Path) -> None:
    urls = (f"{place}/missing.gz", f"{broken_place}/data.gz", f"{place}/data.gz")
    assert fetch(Original("data.gz", urls, MD5), tmp_path, None, "").read_bytes() == CONTENT


def test_failures_say_what_to_do(place: str, broken_place: str, tmp_path: Path) -> None:
    def failure(url: str, md5: str | None = MD5) -> str:
        with pytest.raises(FileNotFoundError) as caught:
            fetch(Original("data.gz", (url,), md5), tmp_path, None, "put it there by hand")
        return str(caught.value)

    assert failure(f"{place}/missing.gz").startswith("cannot download data.gz (http://127.0.0.1:")
    assert "not found" in failure(f"{place}/missing.gz").lower()
    assert failure(f"{place}/missing.gz").endswith("; put it there by hand")
    assert "broke off after 10 of 1000 bytes" in failure(f"{broken_place}/data.gz", None)
    assert f"md5 is {MD5} instead of 0000" in failure(f"{place}/data.gz", "0000")
    assert "Connection refused" in failure("http://127.0.0.1:9/data.gz")  # nothing listens there


def test_own_copy_comes_first(tmp_path: Path) -> None:
    original = Original("data.gz", ("http://127.0.0.1:9/data.gz",), MD5)
    own = tmp_path / "own"
    own.mkdir()
    (own / "data.gz").write_bytes(CONTENT)
    assert fetch(original, tmp_path, own, "") == own / "data.gz"
    (own / "data.gz").write_bytes(CONTENT[1:])
    with pytest.raises(
        ValueError, match=r"own.data.gz is not the published file: its md5 is .* get it anew or remove it"
    ):
        fetch(original, tmp_path, own, "")


def test_short_downloads_show_no_bar(place: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    download(f"{place}/data.gz", tmp_path / "data.gz")
    assert capfd.readouterr().err == ""
