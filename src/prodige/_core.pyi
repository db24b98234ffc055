"""Types of the native core. The classes ending in 32 and 64 differ in their floating-point type only."""

from typing import Any, Generic, Self, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

_Int32 = NDArray[np.int32]
_Int64 = NDArray[np.int64]
_UInt8 = NDArray[np.uint8]
_UInt64 = NDArray[np.uint64]
_Float = NDArray[Any]
_AnyForest = TypeVar("_AnyForest", bound=_Forest)
_AnyNetwork = TypeVar("_AnyNetwork", bound=_Network[Any])

class Topology:
    def __init__(self, n_vertices: int, tails: _Int32, heads: _Int32) -> None: ...
    @property
    def n_vertices(self) -> int: ...
    @property
    def n_edges(self) -> int: ...
    @property
    def n_components(self) -> int: ...
    @property
    def components(self) -> _Int32: ...
    @property
    def degrees(self) -> _Int32: ...
    def choose_hubs(self, n_items: int) -> _UInt8 | None: ...

class HubLayout:
    def __init__(self, topology: Topology, is_hub: _UInt8) -> None: ...
    @property
    def n_hubs(self) -> int: ...
    @property
    def n_core(self) -> int: ...

class _Forest:
    @property
    def n_sources(self) -> int: ...
    @property
    def offsets(self) -> _Int64: ...
    @property
    def vertices(self) -> _Int32: ...
    @property
    def settled_distances(self) -> _Float: ...
    @property
    def parents(self) -> _Int32: ...
    @property
    def edges(self) -> _Int32: ...
    @property
    def asked_all(self) -> bool: ...
    @property
    def asked_offsets(self) -> _Int64: ...
    @property
    def asked(self) -> _Int32: ...
    @property
    def present(self) -> _UInt8: ...
    @property
    def nbytes(self) -> int: ...
    def distances(self, targets: _Int32 | None, n_columns: int, n_jobs: int) -> _Float: ...
    def backward(self, gradient: _Float, targets: _Int32 | None, n_jobs: int) -> _Float: ...
    def removal_cost(
        self, gradient: _Float, curvature: _Float, targets: _Int32 | None, unreachable: float, n_jobs: int
    ) -> _Float: ...
    def sum_answers(self, if_present: _Float, if_refused: _Float, n_jobs: int) -> _Float: ...
    def score(self, factors: _Float, n_jobs: int) -> _Float: ...
    def toggle(
        self, gradient: _Float, targets: _Int32 | None, unreachable: float, n_jobs: int
    ) -> tuple[_Float, _Float]: ...

class Forest32(_Forest): ...
class Forest64(_Forest): ...

class _Network(Generic[_AnyForest]):
    def __init__(self, topology: Topology, weights: _Float, n_jobs: int) -> None: ...
    @property
    def scratch_nbytes(self) -> int: ...
    def with_weights(self, weights: _Float, n_jobs: int) -> Self: ...
    def distances(self, sources: _Int32, targets: _Int32 | None, n_columns: int, n_jobs: int) -> _Float: ...
    def pair_distances(self, i: _Int32, j: _Int32, n_jobs: int) -> _Float: ...
    def neighbors(
        self, sources: _Int32, n_items: int, k: int | None, radius: float | None, n_jobs: int
    ) -> tuple[_Int64, _Int32, _Float]: ...
    def search(
        self,
        sources: _Int32,
        targets: _Int32 | None = None,
        k: int | None = None,
        radius: float | None = None,
        n_items: int = 0,
        probabilities: _Float | None = None,
        seed: int = 0,
        groups: _UInt64 | None = None,
        n_jobs: int = 1,
    ) -> _AnyForest: ...

class Network32(_Network[Forest32]): ...
class Network64(_Network[Forest64]): ...

class _HubNetwork(Generic[_AnyNetwork, _AnyForest]):
    def __init__(self, network: _AnyNetwork, layout: HubLayout) -> None: ...
    @property
    def n_shortcuts(self) -> int: ...
    @property
    def network(self) -> _AnyNetwork: ...
    def with_weights(self, weights: _Float, n_jobs: int) -> Self: ...
    def distances(self, sources: _Int32, targets: _Int32 | None, n_columns: int, n_jobs: int) -> _Float: ...
    def pair_distances(self, i: _Int32, j: _Int32, n_jobs: int) -> _Float: ...
    def neighbors(
        self, sources: _Int32, n_items: int, k: int | None, radius: float | None, n_jobs: int
    ) -> tuple[_Int64, _Int32, _Float]: ...
    def search(
        self,
        sources: _Int32,
        probabilities: _Float | None = None,
        seed: int = 0,
        groups: _UInt64 | None = None,
        n_jobs: int = 1,
    ) -> _AnyForest: ...

class HubNetwork32(_HubNetwork[Network32, Forest32]): ...
class HubNetwork64(_HubNetwork[Network64, Forest64]): ...

class Product:
    def __init__(
        self,
        n_hubs: NDArray[np.int32],
        tables: NDArray[np.float32],
        codes: NDArray[np.uint16],
        lengths: NDArray[np.float32],
        places: NDArray[np.int32] | None,
        gauge: float,
        pendant: bool,
    ) -> None: ...
    def distances(self, sources: _Int32, targets: _Int32 | None, n_jobs: int) -> NDArray[np.float32]: ...
    def pair_distances(self, i: _Int32, j: _Int32, n_jobs: int) -> NDArray[np.float32]: ...
    def neighbors(
        self, sources: _Int32, k: int | None, radius: float | None, n_jobs: int
    ) -> tuple[_Int64, _Int32, NDArray[np.float32]]: ...

LANES: int

def measure_stress(
    hubs: HubNetwork32,
    sources: NDArray[np.int32],
    target: NDArray[np.float32],
    blocks: NDArray[np.int32],
    longest: float,
    with_flows: bool,
    n_jobs: int,
) -> tuple[
    float,
    float,
    NDArray[np.float64],
    NDArray[np.float64],
    NDArray[np.float64],
    NDArray[np.float64],
    NDArray[np.float64],
]: ...
def attach(
    items: NDArray[np.int32],
    sources: NDArray[np.int32],
    target: NDArray[np.float32],
    distances: NDArray[np.float32],
    first_column: int,
    n_arcs: int,
    n_jobs: int,
) -> tuple[NDArray[np.int32], NDArray[np.float32], NDArray[np.float32]]: ...
def measure_flows(
    reach: NDArray[np.float32],
    first: NDArray[np.int32],
    first_weight: NDArray[np.float32],
    second: NDArray[np.int32],
    second_weight: NDArray[np.float32],
    target: NDArray[np.float32],
    n_jobs: int,
) -> tuple[float, NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]: ...
def choose_second(
    target: NDArray[np.float32],
    rate: NDArray[np.float32],
    reach: NDArray[np.float32],
    first: NDArray[np.int32],
    candidates: NDArray[np.int32],
    offsets: NDArray[np.float32],
    n_jobs: int,
) -> tuple[NDArray[np.int32], NDArray[np.float32], NDArray[np.float32]]: ...

class Alphabet:
    def __init__(self, kinds: NDArray[np.uint8], lower: NDArray[np.uint32]) -> None: ...

def tokenize(texts: list[str], alphabet: Alphabet) -> tuple[list[str], NDArray[np.int32], NDArray[np.int64]]: ...

class VertexLookup:
    def __init__(
        self,
        words: list[str],
        is_vertex: NDArray[np.bool_],
        beginnings: list[str],
        beginning: int,
        pairs: NDArray[np.int32],
        triples: NDArray[np.int32],
    ) -> None: ...
    def __len__(self) -> int: ...
    def find(self, text: list[str], alphabet: Alphabet) -> NDArray[np.int32]: ...
    def sum(
        self, texts: list[str], alphabet: Alphabet, values: NDArray[np.float64], n_jobs: int
    ) -> tuple[NDArray[np.float64], NDArray[np.int32]]: ...

def join_neighbors(
    parts: NDArray[np.int32], offsets: NDArray[np.int64], n_parts: int, min_texts: int, distance: int = 1
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]: ...
def distinct(
    lists: list[NDArray[np.int32]], sizes: NDArray[np.int32], offsets: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int32]]: ...
def transpose(
    offsets: NDArray[np.int64], columns: NDArray[np.int32], n_columns: int
) -> tuple[NDArray[np.int64], NDArray[np.int32]]: ...
def sum_rows(
    offsets: NDArray[np.int64], columns: NDArray[np.int32], table: NDArray[np.float64], n_jobs: int
) -> NDArray[np.float64]: ...

class Coder:
    @overload
    def __init__(self) -> None: ...
    @overload
    def __init__(self, data: bytes) -> None: ...
    def bit(self, context: int, value: bool = False) -> bool: ...
    def number(self, context: int, n: int, value: int = 0) -> int: ...
    def uniform(self, n: int, value: int = 0) -> int: ...
    def write_words(self, words: list[str]) -> None: ...
    def read_words(self, n: int) -> list[str]: ...
    @property
    def is_past_the_end(self) -> bool: ...
    def finish(self) -> bytes: ...

def count_cooccurrences(
    ids: NDArray[np.int32],
    offsets: NDArray[np.int64],
    n_tokens: int,
    n_skipped: int,
    window: int,
    harmonic: bool,
    n_jobs: int,
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]: ...

class Glove:
    def __init__(
        self,
        offsets: NDArray[np.int64],
        columns: NDArray[np.int32],
        values: NDArray[np.float32],
        n_components: int,
        x_max: float,
        alpha: float,
        seed: int,
        n_jobs: int,
    ) -> None: ...
    def run_epoch(self, learning_rate: float, n_jobs: int) -> float: ...
    def vectors(self) -> NDArray[np.float32]: ...

class AnchorTrees32:
    def __init__(self, hubs: HubNetwork32, anchors: NDArray[np.int32], n_jobs: int) -> None: ...
    def distances(self, targets: NDArray[np.int32], n_jobs: int) -> tuple[NDArray[np.float32], NDArray[np.int32]]: ...
    def backward(
        self, targets: NDArray[np.int32], gradient: NDArray[np.float32], arcs: NDArray[np.int32], n_jobs: int
    ) -> NDArray[np.float32]: ...

class AnchorTrees64:
    def __init__(self, hubs: HubNetwork64, anchors: NDArray[np.int32], n_jobs: int) -> None: ...
    def distances(self, targets: NDArray[np.int32], n_jobs: int) -> tuple[NDArray[np.float64], NDArray[np.int32]]: ...
    def backward(
        self, targets: NDArray[np.int32], gradient: NDArray[np.float64], arcs: NDArray[np.int32], n_jobs: int
    ) -> NDArray[np.float64]: ...

def pool(
    tokens: NDArray[np.int32], offsets: NDArray[np.int64], products: NDArray[np.float32], width: int, n_jobs: int
) -> tuple[NDArray[np.float32], NDArray[np.int32]]: ...
def pool_backward(
    tokens: NDArray[np.int32],
    offsets: NDArray[np.int64],
    gradient: NDArray[np.float32],
    best: NDArray[np.int32],
    width: int,
    n_rows: int,
) -> NDArray[np.float32]: ...

class RowFit:
    def __init__(
        self,
        offsets: NDArray[np.int64],
        partners: NDArray[np.int32],
        weights: NDArray[np.float32],
        n_partners: int,
    ) -> None: ...
    def solve(
        self,
        vectors: NDArray[np.float32],
        gram: NDArray[np.float32],
        targets: NDArray[np.float32] | None,
        ridge: NDArray[np.float32] | None,
        extra: NDArray[np.float32] | None,
        n_jobs: int,
    ) -> NDArray[np.float32]: ...
    def scores(self, rows: NDArray[np.float32], vectors: NDArray[np.float32], n_jobs: int) -> NDArray[np.float32]: ...
    def choose_words(
        self,
        vectors: NDArray[np.float32],
        gram: NDArray[np.float32],
        targets: NDArray[np.float32] | None,
        ridge: NDArray[np.float32] | None,
        extra: NDArray[np.float32] | None,
        sizes: NDArray[np.int32],
        n_words: NDArray[np.int32],
        words: NDArray[np.float32],
        prices: NDArray[np.float32] | None,
        codes: NDArray[np.uint16],
        n_sweeps: int,
        with_sums: bool,
        n_jobs: int,
    ) -> tuple[NDArray[np.uint16], float, NDArray[np.float64], NDArray[np.float64]]: ...

def find_best(
    scores: NDArray[np.float32],
    n: int,
    offsets: NDArray[np.int64] | None,
    left_out: NDArray[np.int32] | None,
    n_jobs: int,
) -> tuple[NDArray[np.int32], NDArray[np.float32]]: ...
def place(
    target: NDArray[np.float32],
    quarters: int,
    weights: NDArray[np.float32],
    offsets: NDArray[np.float32],
    n_hubs: NDArray[np.int32],
    n_dimensions: NDArray[np.int32],
    slopes: NDArray[np.float32],
    constants: NDArray[np.float32],
    shares: NDArray[np.float32],
    rest: float,
    n_jobs: int,
) -> tuple[NDArray[np.uint16], NDArray[np.float32]]: ...
def measure_rows(rows: NDArray[np.float32], anchors: NDArray[np.float32], n_jobs: int) -> NDArray[np.float32]: ...
def multiply_rows(rows: NDArray[np.float32], others: NDArray[np.float32], n_jobs: int) -> NDArray[np.float32]: ...
def write_rows(
    rows: NDArray[np.uint16], sizes: NDArray[np.int32], kinds: NDArray[np.uint16], n_kinds: int
) -> bytes: ...
def read_rows(data: bytes, n_rows: int, sizes: NDArray[np.int32], n_kinds: int) -> NDArray[np.uint16]: ...
def find_kinds(
    rows: NDArray[np.uint16], sizes: NDArray[np.int32], n_kinds: int, n_learned: int
) -> NDArray[np.uint16]: ...

class CodeFit:
    def __init__(
        self,
        sources: NDArray[np.int32],
        target: NDArray[np.float32],
        near: NDArray[np.int32],
        near_target: NDArray[np.float32],
        near_weight: NDArray[np.float32],
        first: int = 0,
    ) -> None: ...
    def choose_codes(
        self,
        n_hubs: NDArray[np.int32],
        tables: NDArray[np.float32],
        quarters: int,
        floor: float,
        codes: NDArray[np.uint16],
        lengths: NDArray[np.float32],
        source_codes: NDArray[np.uint16],
        source_lengths: NDArray[np.float32],
        items: NDArray[np.int32],
        least: float,
        step: float,
        n_levels: int,
        n_rounds: int,
        n_jobs: int,
        n_dimensions: NDArray[np.int32] | None = None,
        positions: NDArray[np.float32] | None = None,
    ) -> tuple[NDArray[np.uint16], NDArray[np.float32], float]: ...
    def measure_factor(
        self,
        n_hubs: NDArray[np.int32],
        tables: NDArray[np.float32],
        quarters: int,
        floor: float,
        codes: NDArray[np.uint16],
        lengths: NDArray[np.float32],
        source_codes: NDArray[np.uint16],
        source_lengths: NDArray[np.float32],
        items: NDArray[np.int32],
        factor: int,
        n_jobs: int,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], float]: ...
