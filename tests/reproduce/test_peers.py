"""Other representations in a given number of bits: budgets are kept, and rounding is what it should be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.spatial.distance import pdist

from prodige import baselines
from prodige.baselines.poincare import hyperbolic
from prodige.reproduce import families, peers, quantisers
from prodige.reproduce.bits import PEERS
from prodige.reproduce.judging import Judge
from prodige.reproduce.peers import Bench, Candidate, Codes, Residual, Rounded, Words

RNG = np.random.default_rng(8)


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fits of a fraction of a second."""
    monkeypatch.setattr(peers, "N_STEPS", 20)
    monkeypatch.setattr(peers, "DIMENSIONS", (2, 4, 8))
    monkeypatch.setattr(quantisers, "OPQ_ROUNDS", 2)
    monkeypatch.setattr(quantisers, "LSQ_ROUNDS", 2)
    grids = {"WIDTHS": (16,), "CODE_BITS": (4, 6), "WHOLE_WIDTHS": (6, 12), "WHOLE_CODE_BITS": (2, 4)}
    for name, sizes in grids.items():
        monkeypatch.setattr(peers, name, dict.fromkeys(quantisers.KINDS, sizes))


def make_bench(family: families.Family | None = None, most_bits: int = 32) -> Bench:
    family = family or families.manifold(200)
    return Bench(family, Judge(family.space(1)), most_bits, n_jobs=1)


def error(bench: Bench, candidate: Candidate) -> float:
    return bench.judge.glance(candidate.model).mse


def variance(bench: Bench) -> float:
    return float(bench.judge.true[~np.eye(bench.n_items, dtype=bool)].var())


@pytest.mark.parametrize("name", PEERS)
def test_budgets_are_kept(name: str) -> None:
    if name == "poincare":
        pytest.importorskip("geoopt")
    bench = make_bench()
    best = {}
    for budget in (16, 32):
        found = list(PEERS[name][1].candidates(bench, budget, 0))
        assert found
        assert all(0 < one.bits_per_item <= budget for one in found)
        assert len({one.split for one in found}) == len(found)
        best[budget] = min(error(bench, one) for one in found)
    assert best[32] < best[16]


@pytest.mark.parametrize("name", ["residual", "vivaldi", "mds", "pq-energy", "rq-codes"])
def test_any_metric(name: str) -> None:
    bench = make_bench(families.tree(150))
    found = list(PEERS[name][1].candidates(bench, 32, 0))
    assert min(error(bench, one) for one in found) < variance(bench)


def test_residual_coordinates() -> None:
    bench = make_bench()
    (one,) = Residual().candidates(bench, 24, 0)
    model = baselines.ResidualCoordinates(bits_per_item=24, random_state=0).fit(bench.family.X)
    np.testing.assert_array_equal(one.model.distances(np.arange(5)), model.distances(np.arange(5)))
    assert one.bits_per_item == model.bits_per_item_
    assert one.split.endswith(f"energy of {model.bits_[-1]}")


# -- coordinates -----------------------------------------------------------------------------------------------------


def levels(points: NDArray[Any]) -> list[int]:
    return [np.unique(column).size for column in points.T]


def test_coordinates_are_learned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    fits = []
    fit = baselines.MDS.fit

    def count(self: baselines.MDS, X: Any, y: Any = None) -> Any:
        fits.append(self.n_components)
        return fit(self, X)

    monkeypatch.setattr(baselines.MDS, "fit", count)
    bench = make_bench()
    method = Rounded(baselines.MDS)
    assert len(list(method.candidates(bench, 8, 0))) == 4
    assert fits == [2, 4]
    # Of 32 bits two coordinates cannot use all, so there are 4 and 8 of them, shared out in two ways.
    assert len(list(method.candidates(bench, 32, 0))) == 4
    assert fits == [2, 4, 8]


def test_rounded_coordinates_have_so_many_levels() -> None:
    bench = make_bench()
    for one in Rounded(baselines.MDS).candidates(bench, 16, 0):
        model: Any = one.model
        assert np.log2(levels(model.embedding_)).sum() <= 16
        # No factor makes them better.
        rows, true = model.distances(bench.judge.sources), bench.judge.true
        assert np.vdot(rows, true) / np.vdot(rows, rows) == pytest.approx(1, rel=1e-3)


def test_heights_are_those_of_rounded_coordinates() -> None:
    bench = make_bench()
    for one in Rounded(baselines.Vivaldi).candidates(bench, 24, 0):
        model: Any = one.model
        height_bits = int(one.split.split()[-1])
        assert np.unique(model.height_).size <= 2**height_bits
        assert np.log2(np.maximum(levels(model.embedding_), 1)).sum() + height_bits <= 24
        before = error(bench, one)
        model.height_ = model.height_ + np.float32(0.3 * model.height_.std())
        assert error(bench, one) > before


def test_axes_keep_distances() -> None:
    points = RNG.normal(size=(60, 4)).astype(np.float32) @ RNG.normal(size=(4, 4)).astype(np.float32) + 2
    for centred in (True, False):
        turned = peers.on_axes(points, centred)
        np.testing.assert_allclose(pdist(turned), pdist(points), rtol=1e-4)
        spread = (turned**2).sum(axis=0)
        assert (np.diff(spread) <= 0).all()
    np.testing.assert_allclose(np.linalg.norm(turned, axis=1), np.linalg.norm(points, axis=1), rtol=1e-4)


def test_the_tangent_space_of_the_ball() -> None:
    torch = pytest.importorskip("torch")
    points = RNG.uniform(-0.55, 0.55, size=(50, 3)).astype(np.float32)
    tangent = peers.to_tangent(points)
    np.testing.assert_allclose(peers.from_tangent(tangent.astype(np.float64)), points, rtol=1e-4)
    both = torch.cat([torch.zeros(1, 3), torch.from_numpy(points)])
    from_centre = hyperbolic(both, torch.tensor([0]))[0, 1:].numpy()
    np.testing.assert_allclose(np.linalg.norm(tangent, axis=1), from_centre, rtol=1e-4)
    far = peers.from_tangent(np.array([[80.0, 0.0], [0.0, 0.0]])).astype(np.float32)
    assert np.linalg.norm(far[0]) < 1
    assert (far[1] == 0).all()


def test_even_shares() -> None:
    assert peers.share_evenly(4, 8.3, 1000) == [2, 2, 2, 1]  # levels take their part
    assert peers.share_evenly(2, 100, 1000) == [8, 8]
    assert peers.share_evenly(2, 0.5, 1000) == [0, 0]


# -- codes -----------------------------------------------------------------------------------------------------------


def test_books_count_or_do_not() -> None:
    bench = make_bench()
    (free, *_), (whole, *_) = (list(Codes("pq", False, whole).candidates(bench, 32, 0)) for whole in (False, True))
    n_codes, size = int(free.split.split()[0]), int(free.split.split()[3])
    assert free.bits_per_item == n_codes * size
    n_codes, size, width = (int(whole.split.split()[place]) for place in (0, 3, 5))
    books = 8 * 2**size * width + 64 * n_codes
    assert whole.bits_per_item == pytest.approx(n_codes * size + books / 200)
    # As many codes as there is room for.
    assert whole.bits_per_item + size + 64 / 200 > 32 or n_codes == width


def test_kinds_of_energy() -> None:
    bench = make_bench()
    lost, fitted = list(Codes("rq", True, False).candidates(bench, 32, 0))[:2]
    assert "lost energy" in lost.split
    assert "fitted energy" in fitted.split
    (plain, *_) = Codes("rq", False, False).candidates(bench, 32, 0)
    assert error(bench, fitted) < error(bench, lost) < error(bench, plain)


def test_lost_energy_is_the_squared_distance_from_the_codeword() -> None:
    bench = make_bench(families.Family("few", RNG.normal(size=(300, 10)).astype(np.float32)))
    (one, *_) = Codes("pq", True, False).candidates(bench, 32, 0)
    model: Any = one.model
    # All ten directions are coded but those that do not divide by the codes; the basis is that of the coordinates.
    coordinates, _ = bench.coordinates(16, 0)
    width = model.points.shape[1]
    lost = ((coordinates[:, :width] - model.points) ** 2).sum(axis=1) + (coordinates[:, width:] ** 2).sum(axis=1)
    np.testing.assert_allclose(model.energy, lost, atol=0.05 * lost.mean())  # it is rounded


def test_words_answer_like_points() -> None:
    points = RNG.normal(size=(20, 3)).astype(np.float32)
    flat = Words(points, np.zeros(20, np.float32)).distances(np.arange(20))
    np.testing.assert_allclose(flat[np.triu_indices(20, 1)], pdist(points), rtol=1e-4)
    high = Words(points, np.full(20, 2.0, np.float32)).distances(np.arange(20))
    np.testing.assert_allclose(high[np.triu_indices(20, 1)], np.sqrt(pdist(points) ** 2 + 4), rtol=1e-4)


def test_nothing_fits() -> None:
    assert list(Codes("rq", True, True).candidates(make_bench(), 4, 0)) == []
    assert list(Rounded(baselines.MDS).candidates(make_bench(), 3, 0)) == []
