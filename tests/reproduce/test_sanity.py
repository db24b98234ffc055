"""The sanity check on a few graphs."""

from __future__ import annotations

import networkx
import numpy as np
import pytest

from prodige.reproduce import sanity


def test_needed_edges_match_networkx() -> None:
    for seed in range(5):
        graph, distances = sanity.random_graph(np.random.RandomState(seed))
        peer = graph.to_networkx()
        assert networkx.is_connected(peer)
        assert 10 <= graph.n_vertices <= 25
        expected = set()
        for i, j in peer.edges:
            paths = list(networkx.all_shortest_paths(peer, i, j, weight="weight"))
            if paths == [[i, j]]:
                expected.add((i, j))
        assert sanity.needed_edges(graph, distances) == expected


def test_graphs_are_found_again() -> None:
    figures = sanity.run(n_graphs=3, seed=1, n_jobs=1)
    assert figures["recovered"] == figures["within_1e-3"] == 3
    assert figures["largest_error"] < 1e-3
    # Next to nothing is kept that is not needed.
    assert figures["edges"] < figures["edges_needed"] + 1


# The lost edge may be a bridge.
@pytest.mark.filterwarnings("ignore:the edges leave the items in:UserWarning")
def test_a_lost_edge_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    learn = sanity.learn

    def lose_one(*arguments: object) -> object:
        embedding = learn(*arguments)  # type: ignore[arg-type]
        longest = embedding.weight.detach().numpy().argmax()
        embedding.keep(np.arange(embedding.n_edges) != longest)
        return embedding

    monkeypatch.setattr(sanity, "learn", lose_one)
    outcome = sanity.run_one(3, "distances")
    assert outcome.n_missing == 1
    assert outcome.largest_error > 1e-3
