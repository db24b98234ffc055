"""Commands that ask the graph of any saved file: ``prodige info``, ``prodige distance`` and ``prodige neighbors``."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from prodige.cli import options
from prodige.cli.errors import clean_errors
from prodige.cli.options import AS_JSON
from prodige.cli.output import print_table
from prodige.interrupts import loading

if TYPE_CHECKING:
    from prodige.graph.container import Description
    from prodige.graph.graph import Graph
    from prodige.graph.product import ProductGraph
    from prodige.loading import Saved

FILE = typer.Argument(..., metavar="FILE", help="A graph or a model, saved as a .prodige file.", show_default=False)

# Taken for an option, a negative id would not be recognised as one; so it is refused for what it is.
NUMBERS = {"ignore_unknown_options": True}


def register(app: typer.Typer) -> None:
    """Add the commands to the main one."""
    app.command()(info)
    app.command(context_settings=NUMBERS)(distance)
    app.command(context_settings=NUMBERS)(neighbors)


@clean_errors()
def info(file: Path = FILE, as_json: bool = AS_JSON) -> None:
    """Show what a file holds: its kind, what its graph consists of and how much room it takes."""
    with loading():
        from prodige.loading import load_described

    model, description = load_described(file)
    graph, own = graph_of(model), figures_of(model)
    figures: dict[str, Any] = {
        "file": str(file),
        "kind": description.kind,
        "format_version": description.version,
        **own,
        "n_items": graph.n_items,
        "n_hubs": graph.n_hubs,
        **structure_of(graph, description),
        "numbers_per_item": graph.numbers_per_item,
        "bytes": description.n_bytes,
        "bits_per_item": 8 * description.n_bytes / graph.n_items,
        "metadata": description.metadata,
    }
    if as_json:
        typer.echo(json.dumps(figures))
    else:
        print_table([], list(rows_of(figures, own).items()))


def structure_of(graph: Graph | ProductGraph, description: Description) -> dict[str, Any]:
    """Return figures of edges, or of the factors of a product."""
    from prodige.graph.graph import Graph

    if not isinstance(graph, Graph):
        return figures_of_product(graph)
    degrees = graph.degrees()
    return {
        "n_edges": graph.n_edges,
        "weight_bits": None if description.kind == "text" else weight_bits(description.content),
        "degree": {"min": int(degrees.min()), "mean": float(degrees.mean()), "max": int(degrees.max())},
        "connected": graph.is_connected,
    }


def figures_of_product(product: ProductGraph) -> dict[str, Any]:
    """Return what a product of graphs consists of, and whether its distances are a metric."""
    return {
        "n_factors": product.n_factors,
        "power": product.power,
        "gauge": product.gauge,
        "pendant": product.pendant,
        "is_metric": product.is_metric,
    }


def is_metric_in_words(is_metric: bool) -> str:
    """Return whether distances are a metric, as commands show it."""
    return "yes" if is_metric else "no: the triangle inequality may not hold"


def rows_of(figures: dict[str, Any], own: dict[str, Any]) -> dict[str, str]:
    """Return what ``info`` shows of a file; ``own`` are the figures that only its kind has."""
    rows = {
        "kind": figures["kind"],
        **{key.removeprefix("n_").replace("_", " "): shown(value) for key, value in own.items()},
        "items": f"{figures['n_items']:,}",
        "hubs": f"{figures['n_hubs']:,}",
    }
    if "n_edges" in figures:
        rows["edges"] = f"{figures['n_edges']:,}"
    rows |= {
        "numbers per item": f"{figures['numbers_per_item']:.4g}",
        "file": f"{figures['file']}: {figures['bytes']:,} bytes, {figures['bits_per_item']:.4g} bits per item",
    }
    if "n_factors" in figures:
        rows |= {
            "factors": f"{figures['n_factors']:,}, power {figures['power']:g}, gauge {figures['gauge']:g}"
            + ", pendant lengths" * figures["pendant"],
            "is a metric": is_metric_in_words(figures["is_metric"]),
        }
        return rows | metadata_rows(figures)
    degree = figures["degree"]
    if figures["weight_bits"] is not None:
        rows["weights"] = f"of {figures['weight_bits']} bits"
    rows |= {
        "degree": f"{degree['min']} to {degree['max']}, {degree['mean']:.4g} on average",
        "connected": "yes" if figures["connected"] else "no: some items cannot be reached from others",
    }
    return rows | metadata_rows(figures)


def metadata_rows(figures: dict[str, Any]) -> dict[str, str]:
    """Return what ``info`` shows of what the writer of a file had to say."""
    return {f"metadata: {key}": shown(value) for key, value in figures["metadata"].items()}


def shown(value: Any) -> str:
    """Return a figure as ``info`` shows it.

    Examples
    --------
    >>> from prodige.cli.graphs import shown
    >>> shown("hubs"), shown(40), shown(["good", "bad"]), shown(True)
    ('hubs', '40', '["good", "bad"]', 'true')
    """
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


@clean_errors()
def distance(
    file: Path = FILE,
    i: int = typer.Argument(..., metavar="I", help="A vertex: an item or a hub.", show_default=False),
    j: int = typer.Argument(..., metavar="J", help="Another one.", show_default=False),
    as_json: bool = AS_JSON,
) -> None:
    """Print the length of the shortest path between two vertices; inf (null in JSON) if there is none."""
    with loading():
        from prodige.loading import load

    graph = graph_of(load(file))
    check_vertex(graph, "I", i)
    check_vertex(graph, "J", j)
    length = graph.distance(i, j)
    if as_json:
        typer.echo(json.dumps({"i": i, "j": j, "distance": length if math.isfinite(length) else None}))
    else:
        typer.echo(f"{length:.7g}")


@clean_errors()
def neighbors(
    file: Path = FILE,
    vertex: int = typer.Argument(..., metavar="I", help="A vertex: an item or a hub.", show_default=False),
    k: int = options.count("How many items; fewer are shown where fewer can be reached."),
    as_json: bool = AS_JSON,
) -> None:
    """Print the items nearest to a vertex, nearest first."""
    with loading():
        from prodige.loading import load

    model = load(file)
    graph, labels, sides = graph_of(model), labels_of(model), sides_of(model)
    check_vertex(graph, "I", vertex)
    found = nearest(graph, vertex, k)
    columns = {name: values for name, values in (("kind", sides), ("label", labels)) if values is not None}
    if as_json:
        entries = [
            {"item": item, **{name: values[item] for name, values in columns.items()}, "distance": length}
            for item, length in found
        ]
        typer.echo(json.dumps({"vertex": vertex, "k": k, "neighbors": entries}))
    else:
        rows = [(str(item), *(values[item] for values in columns.values()), f"{length:.7g}") for item, length in found]
        print_table(["item", *columns, "distance"], rows)


def nearest(graph: Graph | ProductGraph, vertex: int, k: int) -> list[tuple[int, float]]:
    """Return up to ``k`` items that can be reached, with their distances."""
    others = graph.n_items - (1 if vertex < graph.n_items else 0)
    if others == 0:
        return []
    distances, items = graph.kneighbors([vertex], k=min(k, others))
    reached = items[0] >= 0
    return list(zip(items[0][reached].tolist(), distances[0][reached].tolist(), strict=True))


def check_vertex(graph: Graph | ProductGraph, name: str, vertex: int) -> None:
    """Leave with a usage error if the graph has no such vertex."""
    last = getattr(graph, "n_vertices", graph.n_items) - 1  # hubs of a product have no numbers
    if not 0 <= vertex <= last:
        raise typer.BadParameter(
            f"{vertex} is not a vertex: the graph has vertices 0 to {last}", param_hint=f"'{name}'"
        )


def graph_of(model: Saved) -> Graph | ProductGraph:
    """Return the graph of whatever a file holds."""
    from prodige.graph.graph import Graph
    from prodige.graph.product import ProductGraph

    return model if isinstance(model, (Graph, ProductGraph)) else model.graph_


def labels_of(model: Saved) -> list[str] | None:
    """Return names of the items of a graph, where a file has any: users and items, or words."""
    if hasattr(model, "vertices_"):
        return list(model.vertices_)
    sides = sides_of(model)
    if sides is None:
        return None
    users, items = getattr(model, "user_labels_", None), getattr(model, "item_labels_", None)
    n_users, n_items = sides.count("user"), sides.count("item")
    users = users[:n_users] if users is not None else [f"user {u}" for u in range(n_users)]
    return [*users, *(items if items is not None else (f"item {x}" for x in range(n_items)))]


def sides_of(model: Saved) -> list[str] | None:
    """Return which items of a graph are users and which are items; None where all are of one kind.

    Users that are not stored are none of a graph's.
    """
    from prodige.recommendation.recommender import GraphRecommender

    if not isinstance(model, GraphRecommender):
        return None
    n_items = model.n_items_
    return ["user"] * (graph_of(model).n_items - n_items) + ["item"] * n_items


def figures_of(model: Saved) -> dict[str, Any]:
    """Return figures that only files of this kind have."""
    from prodige.loading import kind_of

    found: Any = model
    match kind_of(model):
        case "compressor":
            return {
                "metric": found.metric,
                "structure": found.structure_,
                "n_features": found.n_features_in_,
                "n_anchors": int(found.anchors_.size),
            }
        case "recommender":
            return {
                "n_users": found.n_users_,
                "n_recommended": found.n_items_,
                "edges": found.edges,
                "stores_users": sides_of(found) != ["item"] * found.n_items_,
                "labels": found.user_labels_ is not None or found.item_labels_ is not None,
                "n_interactions_kept": 0 if found.interactions_ is None else int(found.interactions_.nnz),
            }
        case "text":
            return {
                "architecture": "paper" if hasattr(found, "paper_") else "ngrams",
                "n_classes": int(found.classes_.size),
            }
    return {}


def weight_bits(content: dict[str, Any]) -> int:
    """Return the bits of a weight in a file with such a content."""
    bits: int = content.get("graph", content).get("weight_bits", 32)
    return bits
