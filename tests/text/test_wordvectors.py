"""Word vectors and their text format, with the traps of published files."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from prodige.text.vocabulary import Vocabulary
from prodige.text.wordvectors import WordVectors, load_vectors

TEXT = "the 0.5 1 -2\n, 1e-3 2 3\n1990 4 5 6\n. . . 7 8 9\n"
ROWS = [[0.5, 1, -2], [1e-3, 2, 3], [4, 5, 6], [7, 8, 9]]


def write(folder: Path, text: str | bytes) -> Path:
    path = folder / "words.txt"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize(
    "content",
    [
        TEXT,
        "4 3\n" + TEXT,
        TEXT.rstrip("\n"),
        TEXT.replace("\n", " \n"),
        TEXT.replace("\n", "\r\n"),
        gzip.compress(TEXT.encode(), mtime=0),
        gzip.compress(("4 3\n" + TEXT).encode(), mtime=0),
    ],
    ids=["plain", "header", "no end", "spaces", "crlf", "gzip", "gzip with header"],
)
def test_every_form_of_file(tmp_path: Path, content: str | bytes) -> None:
    words = load_vectors(write(tmp_path, content))
    assert words.vocabulary.tokens == ("<pad>", "<unk>", "the", ",", "1990", ". . .")
    np.testing.assert_array_equal(words.vectors[2:], np.array(ROWS, dtype=np.float32))
    assert words.vectors.dtype == np.float32
    assert not words.vectors[0].any()
    np.testing.assert_array_equal(words.vectors[1], [7, 8, 9])  # the last tenth, so the last one
    assert not words.vocabulary.counts.any()
    assert load_vectors(write(tmp_path, content), max_words=2).vocabulary.tokens[2:] == ("the", ",")


def test_odd_lines(tmp_path: Path) -> None:
    text = "at name@domain.com 1 2\n\u00a0 3 4\nx\u2028y 5 6\n\x85 7 8\nthe 9 9\nthe 0 0\n"
    words = load_vectors(write(tmp_path, text))
    assert words.vocabulary.tokens[2:] == ("at name@domain.com", "\u00a0", "x\u2028y", "\x85", "the")
    np.testing.assert_array_equal(words.vectors[2:], [[1, 2], [3, 4], [5, 6], [7, 8], [9, 9]])


def test_unknown_and_padding_of_the_file(tmp_path: Path) -> None:
    words = load_vectors(write(tmp_path, "<pad> 9 9\na 1 2\n<unk> 3 4\nb 5 6\n"))
    assert words.vocabulary.tokens == ("<pad>", "<unk>", "a", "b")
    np.testing.assert_array_equal(words.vectors, [[0, 0], [3, 4], [1, 2], [5, 6]])


def test_one_dimension_and_what_looks_like_a_header(tmp_path: Path) -> None:
    for text in ("2 1\na 5\nb 6\n", "a 5\nb 6\n"):
        assert load_vectors(write(tmp_path, text)).vectors[2:].tolist() == [[5], [6]]
    words = load_vectors(write(tmp_path, "12 3\n13 4\n"))  # promises more numbers than the line has: two words
    assert words.vocabulary.tokens[2:] == ("12", "13")
    assert load_vectors(write(tmp_path, "12 3\n")).vectors[2:].tolist() == [[3]]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "it is empty"),
        (TEXT + "short 1 2\n", "line 5 has 2 numbers, 3 were expected"),
        (TEXT + "long 1 2 3 4\n", "line 5 has 4 numbers, 3 were expected"),
        ("4 3\n" + TEXT.replace("4 5 6", "4 5"), "line 4 has 2 numbers, 3 were expected"),
        (TEXT + "\n", "line 5 has 0 numbers, 3 were expected"),
        (TEXT + "bad 1 x 3\n", "line 5 has 'x' in the place of a finite number"),
        (TEXT + "bad 1 nan 3\n", "line 5 has 'nan' in the place of a finite number"),
        (TEXT + "bad 1 1e99 3\n", "line 5 has '1e99' in the place of a finite number"),
        ("no numbers\n", "line 1 has no numbers"),
        ("5 3\n" + TEXT, "it broke off: its first line promises 5 words, there are 4"),
        (TEXT.encode() + b"\xff 1 2 3\n", "line 5 is not UTF-8"),
        (gzip.compress(TEXT.encode() * 50, mtime=0)[:60], "end-of-stream"),
        (b"\x1f\x8bplainly none", "Unknown compression method"),
        (gzip.compress(TEXT.encode(), mtime=0)[:10] + b"\xff" * 99, "invalid block type"),
    ],
)
def test_bad_files(tmp_path: Path, content: str | bytes, message: str) -> None:
    path = write(tmp_path, content)
    with pytest.raises(ValueError, match=f"words.txt cannot be read as word vectors: .*{message}"):
        load_vectors(path)


def test_lines_are_counted_over_blocks(tmp_path: Path) -> None:
    lines = [f"w{number} 1 2" for number in range(10_000)]
    assert len(load_vectors(write(tmp_path, "\n".join(lines))).vocabulary) == 10_002
    lines[9_000] = "w 1"
    with pytest.raises(ValueError, match="line 9001 has 1 numbers, 2 were expected"):
        load_vectors(write(tmp_path, "\n".join(lines)))


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        load_vectors(tmp_path / "none.txt")
    with pytest.raises(ValueError, match="max_words must be between 1"):
        load_vectors(write(tmp_path, TEXT), max_words=0)


@given(
    data=st.data(),
    tokens=st.lists(st.text(alphabet="ab é'.", min_size=1, max_size=4).filter(lambda t: t.strip() == t), unique=True),
    suffix=st.sampled_from([".txt", ".gz"]),
)
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_save_and_load(tmp_path: Path, data: st.DataObject, tokens: list[str], suffix: str) -> None:
    finite = st.floats(allow_nan=False, allow_infinity=False, width=32)
    vectors = data.draw(hnp.arrays(np.float32, (len(tokens) + 2, data.draw(st.integers(1, 4))), elements=finite))
    vectors[0] = 0
    words = WordVectors(Vocabulary(tokens), vectors)
    path = tmp_path / f"words{suffix}"
    words.save(path)
    again = load_vectors(path)
    assert again.vocabulary == words.vocabulary
    np.testing.assert_array_equal(again.vectors, words.vectors)
    first = path.read_bytes()
    again.save(path)
    assert path.read_bytes() == first


@pytest.mark.parametrize("token", ["a\nb", " a", "a ", "a 1"])
def test_tokens_that_are_no_line(tmp_path: Path, token: str) -> None:
    words = WordVectors(Vocabulary([token]), np.zeros((3, 2), np.float32))
    with pytest.raises(ValueError, match=r"token 2, .* cannot be told from its numbers"):
        words.save(tmp_path / "words.txt")
    assert not list(tmp_path.iterdir())


def test_most_similar() -> None:
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(40, 6)).astype(np.float32)
    vectors[9] = 0
    words = WordVectors(Vocabulary([f"w{number}" for number in range(2, 40)]), vectors)
    for own in (2, 9, 17):
        with np.errstate(invalid="ignore"):
            cosines = vectors @ vectors[own] / (np.linalg.norm(vectors, axis=1) * np.linalg.norm(vectors[own]))
        target = sorted(
            (-cosine, place) for place, cosine in enumerate(np.nan_to_num(cosines)) if place not in (0, 1, own)
        )
        found = words.most_similar(f"w{own}", N=5)
        assert [token for token, _ in found] == [f"w{place}" for _, place in target[:5]]
        np.testing.assert_allclose([cosine for _, cosine in found], [-cosine for cosine, _ in target[:5]], atol=1e-6)
    assert len(words.most_similar("w2", N=1000)) == 37


def test_directions_of_very_long_and_short_vectors() -> None:
    vectors = np.array([[0, 0], [0, 0], [1e30, 0], [1e-30, 1e-31], [0, 1e30]], dtype=np.float32)
    found = WordVectors(Vocabulary(["a", "b", "c"]), vectors).most_similar("a")
    assert [token for token, _ in found] == ["b", "c"]
    np.testing.assert_allclose([cosine for _, cosine in found], [1 / np.hypot(1, 0.1), 0], rtol=1e-5)


def test_bad_arguments() -> None:
    words = WordVectors(Vocabulary(["a", "b"]), np.zeros((4, 2), np.float32))
    assert repr(words) == "WordVectors(4 tokens, 2 dimensions)"
    for token in ("x", "<unk>", "<pad>", "A"):
        with pytest.raises(ValueError, match=f"token '{token}' is not among the 2 words; tokens are in lower case"):
            words.most_similar(token)
    with pytest.raises(TypeError, match="token must be text, got 3"):
        words.most_similar(3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="N must be between 1"):
        words.most_similar("a", N=0)
    with pytest.raises(ValueError, match=r"a row for each of the 4 tokens, .* got shape \(2, 2\)"):
        WordVectors(Vocabulary(["a", "b"]), np.zeros((2, 2), np.float32))
    with pytest.raises(TypeError, match="vocabulary must be a Vocabulary, got list"):
        WordVectors(["a"], np.zeros((3, 2)))  # type: ignore[arg-type]
