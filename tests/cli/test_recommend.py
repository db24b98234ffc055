"""``prodige recommend``: what it asks of the library, what it prints, and how it fails."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from typer.testing import CliRunner

from prodige import Graph, GraphRecommender
from prodige.cli import app
from prodige.cli.pairs import Pairs, read_pairs
from prodige.cli.recommend import Edges, rows_of
from prodige.recommendation.distillation import ProductFit
from prodige.recommendation.lists import evaluate_lists
from prodige.recommendation.ranking import split_leave_one_out
from strategies import many

runner = CliRunner()

# Readers of two circles with ten books each, of which everybody has read all but one.
READERS = ["ada", "bob", "cy", *(f"reader {number}" for number in range(3, 40))]
BOOKS = [["Emma", "Dune", *(f"novel {n}" for n in range(8))], ["K2", "Etna", *(f"peak {n}" for n in range(8))]]
MISSING = {reader: BOOKS[place % 2][place // 2 % 10] for place, reader in enumerate(READERS)}
READ = [(reader, book) for place, reader in enumerate(READERS) for book in BOOKS[place % 2] if book != MISSING[reader]]
PAIRS = "user,item\n" + "".join(f"{reader},{book}\n" for reader, book in READ)


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table of pairs in an empty folder."""
    monkeypatch.chdir(tmp_path)
    Path("pairs.csv").write_text(PAIRS)


@pytest.fixture
def _no_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is fitted: what goes wrong is found before."""
    monkeypatch.setattr(GraphRecommender, "fit", lambda *_, **__: pytest.fail("a fit began"))


def fitted(**settings: Any) -> GraphRecommender:
    """What the command should fit, by the class."""
    pairs = read_pairs(Path("pairs.csv"))
    model = GraphRecommender(**{"random_state": 0, "n_jobs": 1} | settings)
    return model.fit(pairs.user_items, user_labels=pairs.users, item_labels=pairs.items)


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
    model = fitted(random_state=3, edges="normal")
    asked = figures.pop("recommendations")
    assert figures.pop("seconds") > 0
    assert figures == {
        "input": "pairs.csv",
        "output": "m.prodige",
        "bytes": Path("m.prodige").stat().st_size,
        "n_users": 40,
        "n_items": 20,
        "n_edges": getattr(model.graph_, "n_edges", None),
        "numbers_per_item": model.numbers_per_item_,
        "bits_per_item": model.bits_per_item_,
        "interrupted": False,
        "notes": [],
    }
    saved = GraphRecommender.load("m.prodige")
    assert saved.graph_ == model.graph_
    assert (saved.user_labels_, saved.item_labels_) == (model.user_labels_, model.item_labels_)
    pairs = read_pairs(Path("pairs.csv"))
    ids, scores = model.recommend([0, 1], pairs.user_items[[0, 1]])
    for entry, name, row, values in zip(asked, ["ada", "bob"], ids, scores, strict=True):
        assert entry["user"] == name
        assert [one["item"] for one in entry["items"]] == [pairs.items[item] for item in row if item >= 0]
        assert [one["score"] for one in entry["items"]] == [float(value) for value in values if value > -float("inf")]


def test_everybody_gets_the_book_that_is_missing() -> None:
    figures = answer("pairs.csv", *(f"-u{reader}" for reader in READERS), "-k", "1")
    assert [entry["user"] for entry in figures["recommendations"]] == READERS
    assert items(figures) == [[MISSING[reader]] for reader in READERS]


def test_options_reach_the_fit() -> None:
    for edges in Edges:
        answer("pairs.csv", "-o", "m.prodige", "-f", "--edges", edges.value, "--numbers-per-item", "5", "--seed", "7")
        assert (
            GraphRecommender.load("m.prodige").graph_
            == fitted(edges=edges.value, numbers_per_item=5, random_state=7).graph_
        )
    assert "max_time" in failure(2, "pairs.csv", "-u", "ada", "--max-time", "0").replace("-", "_")
    assert answer("pairs.csv", "-u", "ada", "--max-time", "0.2")["seconds"] > 0


def test_how_many() -> None:
    assert items(answer("pairs.csv", "-u", "cy", "-k", "1")) == [["Dune"]]
    (every,) = items(answer("pairs.csv", "-u", "cy", "-k", "1000"))
    assert every[0] == "Dune"
    assert set(every) == {"Dune", *BOOKS[1]}


@pytest.mark.parametrize("order", [("item", "user"), ("when", "user", "item"), ("when", "item", "UserId")])
def test_columns_are_known_by_their_names(order: tuple[str, ...]) -> None:
    cells = {"when": "0"}
    lines = [",".join((cells | {"user": u, "UserId": u, "item": x})[name] for name in order) for u, x in READ]
    Path("other.csv").write_text("\n".join([",".join(order), *lines]))
    figures = answer("other.csv", "-u", "ada", "-u", "bob", "-k", "1")
    assert (figures["n_users"], figures["n_items"]) == (40, 20)
    assert items(figures) == [["Emma"], ["K2"]]


def test_columns() -> None:
    Path("other.tsv").write_text("n\tbook\treader\n" + "".join(f"2\t{book}\t{reader}\n" for reader, book in READ))
    assert "do not say which has the users" in failure(1, "other.tsv", "-u", "bob")
    for options in (
        ("--user-column", "reader", "--item-column", "book", "--weight-column", "n"),
        ("--user-column", "3", "--item-column", "2", "--weight-column", "1"),
    ):
        figures = answer("other.tsv", *options, "-u", "bob", "-k", "1")
        assert items(figures) == [["K2"]]
        assert figures["notes"] == []
    Path("plain.csv").write_text(PAIRS.partition("\n")[2])
    assert answer("plain.csv", "-u", "ada")["notes"] == [
        "line 1 is taken for a pair; use --header if it has names of columns"
    ]
    assert answer("plain.csv", "-u", "ada", "--no-header")["notes"] == []
    assert "do not say which has the users: 1 ('ada')" in failure(1, "plain.csv", "-u", "bob", "--header")
    assert "different columns, got 2, 2" in failure(1, "pairs.csv", "-u", "bob", "--user-column", "item")


def test_tables() -> None:
    result = invoke("pairs.csv", "-u", "ada", "-o", "m.prodige")
    assert result.exit_code == 0, result.output
    for text in (
        "40 users, 20 items",
        "bits per user and item",
        "numbers per user and item",
        "m.prodige",
        "Emma",
        "score",
    ):
        assert text in result.stdout
    assert "ada" not in result.stdout  # one user needs no column
    result = invoke("pairs.csv", "-u", "ada", "-u", "bob", "--quiet")
    assert "edges" not in result.stdout
    assert re.search(r"ada\W+Emma", result.stdout)
    assert re.search(r"bob\W+K2", result.stdout)
    result = invoke("pairs.csv", "-o", "m.prodige", "--force", "--quiet")
    assert (result.exit_code, result.output) == (0, "")


def test_notes_go_to_stderr() -> None:
    Path("rated.csv").write_text("user,item,rating\n" + "".join(f"{reader},{book},5\n" for reader, book in READ))
    result = invoke("rated.csv", "-u", "ada")
    assert result.stderr == "Note: not read: column 3 ('rating'); --weight-column names one that counts\n"
    assert invoke("rated.csv", "-u", "ada", "--quiet").stderr == ""


def test_names_are_not_obeyed() -> None:
    Path("evil.csv").write_text(PAIRS.replace("Emma", "[red]\x1b[2J"))
    result = invoke("evil.csv", "-u", "ada", "-k", "1")
    assert "[red]\\x1b[2J" in result.stdout


def test_warnings_are_notes(monkeypatch: pytest.MonkeyPatch) -> None:
    freeze = ProductFit.freeze

    def warn(fit: ProductFit, *arguments: Any) -> Any:
        warnings.warn("one user has met everything", UserWarning, stacklevel=2)
        return freeze(fit, *arguments)

    monkeypatch.setattr(ProductFit, "freeze", warn)
    assert answer("pairs.csv", "-u", "ada")["notes"] == ["one user has met everything"]
    assert invoke("pairs.csv", "-u", "ada").stderr == "Note: one user has met everything\n"


def test_names_without_room_are_no_matter_unless_they_are_saved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prodige.graph.container.MAX_TEXTS", 4)
    assert "bytes in a file, at most 4 are possible" in failure(1, "pairs.csv", "-o", "m.prodige", "--quiet")
    assert items(answer("pairs.csv", "-u", "cy", "-k", "1")) == [["Dune"]]


# -- from a saved graph ----------------------------------------------------------------------------------------------


def test_a_saved_graph() -> None:
    answer("pairs.csv", "-o", "m.prodige")
    figures = answer("m.prodige", "-u", "ada", "-k", "3")
    assert items(figures)[0][0] == "Emma"  # what she has not read; that is in the file
    assert figures["notes"] == []
    assert "seconds" not in figures
    figures = answer("m.prodige", "-u", "ada", "-u", "bob", "--interacted", "pairs.csv", "-k", "1")
    assert items(figures) == [["Emma"], ["K2"]]
    fitted(keep_interactions=False).save("bare.prodige")
    figures = answer("bare.prodige", "-u", "ada", "-k", "3")
    assert set(items(figures)[0]) < set(BOOKS[0])
    assert figures["notes"] == [
        "this graph was saved without the pairs, so items that users interacted with are not left out; "
        "name the pairs with --interacted"
    ]
    assert "score" in invoke("m.prodige", "-u", "ada").stdout


def test_pairs_of_others_do_not_matter() -> None:
    answer("pairs.csv", "-o", "m.prodige")
    every = items(answer("m.prodige", "-u", "ada", "-u", "cy", "-k", "20"))
    Path("later.csv").write_text("user,item\nzoe,Emma\nada,Emma\nada,Alone\n")
    figures = answer("m.prodige", "-u", "ada", "-u", "cy", "--interacted", "later.csv", "-k", "20")
    assert items(figures) == [[book for book in every[0] if book != "Emma"], every[1]]


def test_rows_of() -> None:
    Path("few.csv").write_text("user,item\nada,Emma\nada,Dune\nbob,Dune\nbob,Ulysses\ncy,Emma\ncy,Dune\ncy,Lolita\n")
    pairs = read_pairs(Path("few.csv"))
    rows = rows_of(["bob", "nobody", "cy"], pairs, ["Lolita", "Dune", "Beloved"])
    assert rows.toarray().tolist() == [[0, 1, 0], [0, 0, 0], [1, 1, 0]]
    assert rows_of(["nobody"], pairs, ["Dune"]).shape == (1, 1)
    assert isinstance(pairs, Pairs)


def test_a_saved_graph_without_names() -> None:
    GraphRecommender(random_state=0).fit(read_pairs(Path("pairs.csv")).user_items).save("m.prodige")
    assert failure(1, "m.prodige", "-u", "ada").startswith("Error: m.prodige: it has no names of users and items")
    Graph.from_edges([0], [1], [1.0]).save("g.prodige")
    assert "it holds a graph, not a recommender; open it with prodige.load" in failure(1, "g.prodige", "-u", "ada")


# -- what goes wrong -------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("_no_fit")
def test_usage_errors() -> None:
    Path("m.prodige").touch()
    assert "name a user to recommend to, or a file to save the graph in" in failure(2, "pairs.csv")
    assert "name a user to recommend to" in failure(2, "m.prodige")
    assert "'--output'" in failure(2, "m.prodige", "-u", "ada", "-o", "n.prodige")
    assert "'--interacted'" in failure(2, "pairs.csv", "-u", "ada", "--interacted", "pairs.csv")
    failure(2, "pairs.csv", "-u", "ada", "-k", "0")
    for option in (("-n", "5"), ("--edges", "random"), ("--max-time", "9"), ("--seed", "0")):
        assert "a saved graph is asked, not fitted" in failure(2, "m.prodige", "-u", "ada", *option)
    failure(2, "pairs.csv", "-u", "ada", "--edges", "all")


@pytest.mark.usefixtures("_no_fit")
def test_unknown_users_are_found_before_the_fit() -> None:
    assert "'zoe' is not a user: there are 40, such as 'ada', 'bob', 'cy'" in failure(2, "pairs.csv", "-u", "zoe")


def test_unknown_users_of_a_saved_graph() -> None:
    fitted().save("m.prodige")
    assert "'zoe' is not a user" in failure(2, "m.prodige", "-u", "zoe", "--quiet")


@pytest.mark.usefixtures("_no_fit")
def test_files_that_cannot_be_read_or_written() -> None:
    assert failure(1, "nowhere.csv", "-u", "ada") == "Error: nowhere.csv: No such file or directory"
    assert "files ending in .txt are not read" in failure(1, "pairs.txt", "-u", "ada")
    Path("old.prodige").write_text("precious")
    assert "use --force to replace it" in failure(1, "pairs.csv", "-o", "old.prodige")
    assert "would replace the data" in failure(2, "pairs.csv", "-o", "pairs.csv", "--force")
    assert "nowhere" in failure(1, "pairs.csv", "-o", "nowhere/m.prodige")
    assert Path("old.prodige").read_text() == "precious"


def test_a_table_that_is_too_small() -> None:
    Path("few.csv").write_text("user,item\nada,Emma\nbob,Dune\n")
    assert "numbers_per_item = 1 is too little" in failure(1, "few.csv", "-u", "ada", "-n", "1")


def press_in(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Press Ctrl-C when a stage of the next fit begins, once."""
    real, pressed = getattr(ProductFit, name), False

    def press(*arguments: Any) -> Any:
        nonlocal pressed
        if not pressed:
            pressed = True
            raise KeyboardInterrupt
        return real(*arguments)

    monkeypatch.setattr(ProductFit, name, press)


def test_interrupted_with_a_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    press_in(monkeypatch, "_surprise")
    result = invoke("pairs.csv", "-u", "ada", "-o", "m.prodige")
    assert result.exit_code == 130
    assert result.stderr == "Interrupted: the best graph so far is in m.prodige\n"
    assert "Emma" in result.stdout
    assert GraphRecommender.load("m.prodige").n_users_ == 40
    press_in(monkeypatch, "freeze")
    assert answer("pairs.csv", "-u", "ada", code=130)["interrupted"] is True


def test_interrupted_before_there_is_a_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    def press(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("prodige.recommendation.distillation.hold_out", press)
    assert failure(130, "pairs.csv", "-o", "m.prodige").startswith("Interrupted before there was a graph")
    assert not Path("m.prodige").exists()


def test_ctrl_c_of_a_real_program() -> None:
    """A fit of a minute is interrupted as soon as it shows that it is under way."""
    pairs = many(2000, 500).tocoo()
    lines = (f"u{user},i{item}\n" for user, item in zip(pairs.row, pairs.col, strict=True))
    Path("many.csv").write_text("user,item\n" + "".join(lines))
    program = (
        "import sys, prodige.cli.progress as progress; progress.SECONDS_PER_LINE = 0.0\n"
        "from prodige.cli import app; sys.argv[0] = 'prodige'; app()"
    )
    command = [sys.executable, "-c", program, "recommend", "many.csv", "-o", "m.prodige", "-j", "1", "--max-time", "60"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ)
    ) as run:
        assert run.stderr is not None
        assert "fitting" in run.stderr.readline()
        began = time.monotonic()
        run.send_signal(signal.SIGINT)
        _, said = run.communicate(timeout=60)
    assert run.returncode == 130
    assert said.endswith("Interrupted: the best graph so far is in m.prodige\n")
    assert "Traceback" not in said
    assert time.monotonic() - began < 45  # not to the end
    assert GraphRecommender.load("m.prodige").n_users_ == 2000


# -- how good it is --------------------------------------------------------------------------------------------------


def held_out_pairs() -> str:
    """What everybody has not read yet of their circle."""
    return "user,item\n" + "".join(f"{reader},{book}\n" for reader, book in MISSING.items())


def test_evaluation_on_held_out_items() -> None:
    found = answer("pairs.csv", "--evaluate", "--seed", "4")["evaluation"]
    assert (found["n_users"], found["n_held_out"]) == (40, 40)
    pairs = read_pairs(Path("pairs.csv"))
    train, held = split_leave_one_out(pairs.user_items, random_state=4)
    wanted = csr_array((np.ones(40), (np.arange(40), held)), shape=train.shape)
    model = GraphRecommender(random_state=4, n_jobs=1).fit(train)
    report = evaluate_lists(model, train, wanted)
    assert found["figures"]["Recall@20"]["mean"] == report.recall[20].value == 1  # there are no more than 20 books
    assert found["figures"]["NDCG@10"]["mean"] == report.ndcg[10].value > 0.6
    low, high = found["figures"]["NDCG@10"]["interval"]
    assert 0 <= low < report.ndcg[10].value < high <= 1
    assert not any("sampled" in name for name in found["figures"])  # too few books to sample 99
    shown = invoke("pairs.csv", "--evaluate", "--seed", "4").stdout
    assert f"{low:.4f} to {high:.4f}" in shown
    assert "40 held-out items of 40 users" in shown


def test_evaluation_among_sampled_items() -> None:
    table = csr_array(many(60, 200))
    lines = [f"u{user},i{item}\n" for user, item in zip(*table.nonzero(), strict=True)]
    Path("many.csv").write_text("user,item\n" + "".join(lines))
    found = answer("many.csv", "--evaluate")["evaluation"]["figures"]
    low, high = found["HR@10 among 99 sampled"]["interval"]
    assert 0 <= low <= found["HR@5 among 99 sampled"]["mean"] <= found["HR@10 among 99 sampled"]["mean"] <= high <= 1


def test_evaluation_by_a_file() -> None:
    """Pairs that are known already, or of strangers, do not count."""
    Path("test.csv").write_text(held_out_pairs() + "ada,novel 3\nstranger,Dune\nada,unheard of\n")
    fresh = answer("pairs.csv", "-o", "m.prodige", "--evaluate", "--test", "test.csv")["evaluation"]
    assert (fresh["n_users"], fresh["n_held_out"]) == (40, 40)
    assert fresh["figures"]["NDCG@10"]["mean"] == pytest.approx(1)  # everybody gets the book that is missing
    assert answer("m.prodige", "--evaluate", "--test", "test.csv")["evaluation"] == fresh
    Path("old.csv").write_text(PAIRS)
    assert "--test has no pair" in failure(1, "m.prodige", "--evaluate", "--test", "old.csv")


@pytest.mark.usefixtures("_no_fit")
def test_evaluations_that_would_mislead() -> None:
    Path("test.csv").write_text(held_out_pairs())
    assert "--evaluate" in failure(2, "pairs.csv", "-u", "ada", "--test", "test.csv")
    assert "not to be saved" in failure(2, "pairs.csv", "--evaluate", "-o", "m.prodige")
    Path("m.prodige").write_bytes(b"")
    assert "has seen all items" in failure(2, "m.prodige", "--evaluate")
    Path("short.csv").write_text("user,item\nada,Emma\nbob,Dune\n")
    assert "two items" in failure(1, "short.csv", "--evaluate")


def test_budgets_in_bits_and_users_that_are_not_stored() -> None:
    figures = answer("pairs.csv", "-o", "m.prodige", "--bits-per-item", "400", "--items-only", "-u", "ada", "-k", "1")
    saved = GraphRecommender.load("m.prodige")
    assert (saved.bits_per_item, saved.store_users) == (400, False)
    assert saved.graph_.n_items == 20
    assert figures["bits_per_item"] == saved.bits_per_item_ <= 400
    assert items(figures) == items(answer("m.prodige", "-u", "ada", "-k", "1")) == [[MISSING["ada"]]]
    assert "not both" in failure(2, "pairs.csv", "-u", "ada", "-n", "4", "--bits-per-item", "64")


def test_a_saved_graph_repeats_nothing() -> None:
    answer("pairs.csv", "-o", "m.prodige")
    (found,) = items(answer("m.prodige", "-u", "ada", "-k", "20"))
    assert not {book for reader, book in READ if reader == "ada"} & set(found)
    assert len(found) == 11
