"""``prodige recommend``: what it asks of the library, what it prints, and how it fails."""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from typer.testing import CliRunner

from prodige import Graph
from prodige.cli import app
from prodige.cli.pairs import Pairs, read_pairs
from prodige.cli.recommend import Edges, rows_of
from prodige.interactions import Recommender, check_interactions
from prodige.pace import Status

runner = CliRunner()

PAIRS = "user,item\nada,Emma\nada,Dune\nbob,Dune\nbob,Ulysses\ncy,Emma\ncy,Dune\ncy,Lolita\n"


class Stub(Recommender):
    """Stands for the graph: likes popular items, and keeps what was asked of it."""

    asked: list[dict[str, Any]] = []  # noqa: RUF012 - shared on purpose
    during: Any = None

    def __init__(self, **parameters: Any) -> None:
        self.asked.append(parameters)
        self.callbacks = parameters.get("callbacks", [])

    def fit(self, user_items: Any, y: Any = None, user_labels: Any = None, item_labels: Any = None) -> Stub:
        table = check_interactions(user_items)
        for callback in self.callbacks:
            callback(Status(step=0, progress=0.5, loss=1.0, n_edges=3, numbers_per_item=4.0, seconds=0.1))
        if Stub.during is not None:
            Stub.during(self)
        self.popularity_ = table.sum(axis=0)
        self.user_labels_, self.item_labels_ = user_labels, item_labels
        self._complete(*table.shape)
        return self

    def _complete(self, n_users: int, n_items: int) -> None:
        self.n_users_, self.n_items_ = n_users, n_items
        self.graph_ = Graph.from_edges([0], [1], [1.0])
        self.numbers_per_item_ = 3.5

    def _scores(self, users: Any) -> Any:
        return np.tile(self.popularity_, (users.size, 1))

    def save(self, path: Path) -> None:
        kept = {"users": self.user_labels_, "items": self.item_labels_, "popularity": self.popularity_.tolist()}
        Path(path).write_text(json.dumps(kept))

    @classmethod
    def load(cls, path: Path) -> Stub:
        kept = json.loads(Path(path).read_text())
        model = cls()
        model.user_labels_, model.item_labels_ = kept["users"], kept["items"]
        model.popularity_ = np.array(kept["popularity"])
        model._complete(3, len(model.popularity_))
        return model


@pytest.fixture(autouse=True)
def _stub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table of pairs in an empty folder, and no graph to wait for."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Stub, "asked", [])
    monkeypatch.setattr(Stub, "during", None)
    monkeypatch.setitem(sys.modules, "prodige.recommendation", SimpleNamespace(GraphRecommender=Stub))
    Path("pairs.csv").write_text(PAIRS)


def invoke(*arguments: str) -> Any:
    return runner.invoke(app, ["recommend", "--jobs", "1", *arguments])


def answer(*arguments: str, code: int = 0) -> dict[str, Any]:
    """Run with --json; return what is printed, which must be one JSON object and nothing else."""
    result = invoke(*arguments, "--json")
    assert result.exit_code == code, result.output
    assert result.stdout.count("\n") == 1
    assert code == 130 or result.stderr == ""
    figures: dict[str, Any] = json.loads(result.stdout, parse_constant=pytest.fail)
    return figures


def failure(code: int, *arguments: str) -> str:
    """Run a command that leaves with this code; return what it says on stderr, without decoration."""
    result = invoke(*arguments)
    assert result.exit_code == code, result.output
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    assert code != 1 or result.stderr.count("\n") == 1
    return " ".join(result.stderr.replace("│", " ").split())


def items(figures: dict[str, Any]) -> list[list[str]]:
    return [[one["item"] for one in entry["items"]] for entry in figures["recommendations"]]


# -- from pairs ------------------------------------------------------------------------------------------------------


def test_json_and_file() -> None:
    figures = answer("pairs.csv", "--user", "ada", "-u", "bob", "-o", "m.prodige", "--seed", "3", "--edges", "normal")
    assert figures.pop("seconds") >= 0
    assert figures == {
        "input": "pairs.csv",
        "output": "m.prodige",
        "bytes": Path("m.prodige").stat().st_size,
        "n_users": 3,
        "n_items": 4,
        "n_edges": 1,
        "numbers_per_item": 3.5,
        "interrupted": False,
        "notes": [],
        "recommendations": [
            {"user": "ada", "items": [{"item": "Ulysses", "score": 1}, {"item": "Lolita", "score": 1}]},
            {"user": "bob", "items": [{"item": "Emma", "score": 2}, {"item": "Lolita", "score": 1}]},
        ],
    }
    (asked,) = Stub.asked
    del asked["callbacks"]
    assert asked == {"edges": "normal", "numbers_per_item": 4, "random_state": 3, "n_jobs": 1, "max_time": None}


def test_options_reach_the_fit() -> None:
    answer("pairs.csv", "-u", "ada", "--numbers-per-item", "8", "--max-time", "2.5")
    assert (Stub.asked[0]["numbers_per_item"], Stub.asked[0]["max_time"]) == (8, 2.5)
    assert [edges.value for edges in Edges] == ["hubs", "normal", "bipartite", "random"]


def test_how_many() -> None:
    assert items(answer("pairs.csv", "-u", "ada", "-n", "1")) == [["Ulysses"]]
    assert items(answer("pairs.csv", "-u", "cy", "-n", "1000")) == [["Ulysses"]]


def test_columns() -> None:
    Path("other.tsv").write_text("n\tbook\treader\n3\tEmma\tada\n1\tDune\tbob\n")
    options = ("--user-column", "reader", "--item-column", "book", "--count-column", "n")
    assert answer("other.tsv", *options, "-u", "bob")["recommendations"][0]["items"] == [{"item": "Emma", "score": 3}]
    Path("plain.csv").write_text("ada,Emma\nbob,Dune\n")
    assert answer("plain.csv", "-u", "ada")["notes"] == [
        "line 1 is taken for a pair; use --header if it has names of columns"
    ]
    assert answer("plain.csv", "-u", "bob", "--header")["n_users"] == 1
    assert answer("plain.csv", "-u", "bob", "--no-header")["notes"] == []


def test_tables() -> None:
    result = invoke("pairs.csv", "-u", "ada", "-o", "m.prodige")
    assert result.exit_code == 0, result.output
    for text in ("3 users, 4 items, 1 edges", "numbers per user and item", "m.prodige", "Ulysses", "Lolita", "score"):
        assert text in result.stdout
    assert "ada" not in result.stdout  # one user needs no column
    result = invoke("pairs.csv", "-u", "ada", "-u", "bob", "--quiet")
    assert "edges" not in result.stdout
    assert "ada" in result.stdout
    assert "bob" in result.stdout
    result = invoke("pairs.csv", "-o", "m.prodige", "--force", "--quiet")
    assert (result.exit_code, result.output) == (0, "")


def test_notes_go_to_stderr() -> None:
    Path("rated.csv").write_text("user,item,rating\nada,Emma,5\nbob,Dune,3\n")
    result = invoke("rated.csv", "-u", "ada")
    assert result.stderr == "Note: not read: column 3 ('rating'); --count-column names one that counts\n"
    assert invoke("rated.csv", "-u", "ada", "--quiet").stderr == ""


def test_names_are_not_obeyed() -> None:
    Path("evil.csv").write_text("user,item\nada,Emma\nbob,[red]\x1b[2J\n")
    result = invoke("evil.csv", "-u", "ada")
    assert "[red]\\x1b[2J" in result.stdout


def test_warnings_are_notes() -> None:
    def warn(model: Stub) -> None:
        warnings.warn("one user has met everything", UserWarning, stacklevel=2)

    Stub.during = warn
    assert answer("pairs.csv", "-u", "ada")["notes"] == ["one user has met everything"]
    assert invoke("pairs.csv", "-u", "ada").stderr == "Note: one user has met everything\n"


# -- from a saved graph ----------------------------------------------------------------------------------------------


def test_a_saved_graph() -> None:
    answer("pairs.csv", "-o", "m.prodige")
    figures = answer("m.prodige", "-u", "ada", "-n", "3")
    assert items(figures) == [["Dune", "Emma", "Ulysses"]]
    assert figures["notes"] == [
        "what users have met is not in a saved graph, so it is not left out; --met names the pairs"
    ]
    assert "seconds" not in figures
    figures = answer("m.prodige", "-u", "ada", "-u", "bob", "--met", "pairs.csv")
    assert items(figures) == [["Ulysses", "Lolita"], ["Emma", "Lolita"]]
    assert figures["notes"] == []
    assert "Ulysses" in invoke("m.prodige", "-u", "ada").stdout


def test_pairs_of_others_do_not_matter() -> None:
    answer("pairs.csv", "-o", "m.prodige")
    Path("later.csv").write_text("user,item\nzoe,Emma\nada,Dune\nada,Beloved\n")
    assert items(answer("m.prodige", "-u", "ada", "-u", "cy", "--met", "later.csv", "-n", "2")) == [
        ["Emma", "Ulysses"],
        ["Dune", "Emma"],
    ]


def test_rows_of() -> None:
    pairs = read_pairs(Path("pairs.csv"))
    rows = rows_of(["bob", "nobody", "cy"], pairs, ["Lolita", "Dune", "Beloved"])
    assert rows.toarray().tolist() == [[0, 1, 0], [0, 0, 0], [1, 1, 0]]
    assert rows_of(["nobody"], pairs, ["Dune"]).shape == (1, 1)
    assert isinstance(pairs, Pairs)


def test_a_saved_graph_without_names() -> None:
    answer("pairs.csv", "-o", "m.prodige")
    kept = json.loads(Path("m.prodige").read_text()) | {"users": None}
    Path("m.prodige").write_text(json.dumps(kept))
    assert failure(1, "m.prodige", "-u", "ada").startswith("Error: m.prodige: it has no names of users and items")


# -- what goes wrong -------------------------------------------------------------------------------------------------


def test_usage_errors() -> None:
    Path("m.prodige").touch()
    assert "name a user to recommend to, or a file to save the graph in" in failure(2, "pairs.csv")
    assert "name a user to recommend to" in failure(2, "m.prodige")
    assert "'--output'" in failure(2, "m.prodige", "-u", "ada", "-o", "n.prodige")
    assert "'--met'" in failure(2, "pairs.csv", "-u", "ada", "--met", "pairs.csv")
    failure(2, "pairs.csv", "-u", "ada", "-n", "0")
    failure(2, "pairs.csv", "-u", "ada", "--edges", "all")
    assert Stub.asked == []


def test_unknown_users_are_found_before_the_fit() -> None:
    assert "'zoe' is not a user: there are 3, such as 'ada', 'bob', 'cy'" in failure(2, "pairs.csv", "-u", "zoe")
    assert Stub.asked == []
    answer("pairs.csv", "-o", "m.prodige")
    assert "'zoe' is not a user" in failure(2, "m.prodige", "-u", "zoe", "--quiet")


def test_files_that_cannot_be_read_or_written() -> None:
    assert failure(1, "nowhere.csv", "-u", "ada") == "Error: nowhere.csv: No such file or directory"
    assert "files ending in .txt are not read" in failure(1, "pairs.txt", "-u", "ada")
    Path("old.prodige").write_text("precious")
    assert "use --force to replace it" in failure(1, "pairs.csv", "-o", "old.prodige")
    assert "would replace the data" in failure(2, "pairs.csv", "-o", "pairs.csv", "--force")
    assert "nowhere" in failure(1, "pairs.csv", "-o", "nowhere/m.prodige")
    assert Path("old.prodige").read_text() == "precious"
    assert Stub.asked == []


def test_interrupted_with_a_graph() -> None:
    def interrupt(model: Stub) -> None:
        model.stopped_ = "interrupt"
        warnings.warn("interrupted", ConvergenceWarning, stacklevel=2)

    Stub.during = interrupt
    result = invoke("pairs.csv", "-u", "ada", "-o", "m.prodige")
    assert result.exit_code == 130
    assert result.stderr == "Interrupted: the best graph so far is in m.prodige\n"
    assert "Ulysses" in result.stdout
    assert Path("m.prodige").exists()
    assert answer("pairs.csv", "-u", "ada", code=130)["interrupted"] is True


def test_interrupted_before_there_is_a_graph() -> None:
    def interrupt(model: Stub) -> None:
        raise KeyboardInterrupt

    Stub.during = interrupt
    assert failure(130, "pairs.csv", "-o", "m.prodige").startswith("Interrupted before there was a graph")
    assert not Path("m.prodige").exists()
