"""Words as a graph: vectors from a small corpus, compressed to a few edges a word.

The texts are made up here, sentences about five subjects. Words that stand near the same words get similar vectors
(PPMI); the graph keeps the distances between these in six numbers a word instead of sixteen, and still knows which
words belong together.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from sklearn.manifold import MDS

from prodige import DistanceCompressor
from prodige.text.words import PPMI

SUBJECTS = {
    "kitchen": "bread butter salt soup oven pan knife onion garlic pepper plate spoon",
    "sea": "ship sail harbour wave tide anchor sailor storm island whale gull rope",
    "music": "violin piano song choir melody rhythm drum flute concert singer tune chord",
    "garden": "rose soil seed tree leaf spade bee grass hedge apple root flower",
    "town": "street bridge market tower square tram shop mayor lamp clock roof wall",
}
FILLERS = ["the", "a", "and", "with", "near", "some", "of", "in"]
COLORS = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00"]  # for all kinds of colour vision


def main(folder: Path = Path("demo")) -> None:
    """Write texts, learn vectors, compress them, show who is near whom."""
    # Each sentence takes four words of one subject and puts common words between them.
    random = np.random.default_rng(0)
    words = {subject: text.split() for subject, text in SUBJECTS.items()}
    texts = []
    for _ in range(3000):
        chosen = random.choice(words[str(random.choice(list(words)))], 4, replace=False)
        texts.append(" ".join(f"{random.choice(FILLERS)} {word}" for word in chosen))

    # Vectors say how much more often two words stand together than by chance; only directions matter: unit length.
    model = PPMI(n_components=16, random_state=0, n_jobs=1).fit(texts)
    names = [word for members in words.values() for word in members]
    vectors = model.vectors_[[model.vocabulary_.index(name) for name in names]]
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)

    # The graph replaces the vectors: from here on only its edges are used.
    graph = DistanceCompressor(numbers_per_item=6, structure="graph", random_state=0).fit(vectors).graph_
    print(graph)
    for name in ("bread", "whale", "violin"):
        near = graph.kneighbors([names.index(name)], k=4)[1][0]
        print(f"{name}: {', '.join(names[item] for item in near)}")

    # Drawn by multidimensional scaling of the distances in the graph: near words are near in the picture.
    places = MDS(2, metric="precomputed", init="classical_mds", n_init=1, random_state=0).fit_transform(
        graph.distances()
    )
    figure = Figure(figsize=(7.5, 5.5), layout="constrained")
    axes = figure.subplots()
    for subject, color in zip(words, COLORS, strict=True):
        own = [names.index(word) for word in words[subject]]
        axes.scatter(places[own, 0], places[own, 1], s=14, color=color, label=subject)
        for item in own:
            axes.annotate(names[item], places[item], xytext=(3, 2), textcoords="offset points", fontsize=8, color=color)
    axes.set_title(f"{graph.n_items} words in {graph.numbers_per_item:.1f} numbers each")
    axes.set_axis_off()
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "gallery-words.png", dpi=110)


if __name__ == "__main__":
    main()
