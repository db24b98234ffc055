"""Texts into classes: short reviews, with words, pairs and triples of words as the vertices of a graph.

The reviews are made up here from praise, blame and negations, so that a word alone says little: "not dull" is praise.
The graph knows such pairs, and says which of them it decided by. Beside it a linear model over single words, which
cannot know what was negated.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from prodige import GraphTextClassifier
from prodige.baselines import TfidfClassifier

PRAISE = ["fine", "warm", "funny", "clever", "lovely", "moving", "fresh", "bright"]
BLAME = ["dull", "long", "cold", "clumsy", "boring", "silly", "flat", "stale"]
THINGS = ["film", "story", "cast", "plot", "music", "ending", "scene", "script"]


def write_reviews(n: int, seed: int) -> tuple[list[str], list[str]]:
    """Return reviews and what they are, "good" or "bad"."""
    random = np.random.default_rng(seed)
    texts, classes = [], []
    for _ in range(n):
        is_good = random.random() < 0.5
        clauses = []
        for thing in random.choice(THINGS, 3, replace=False):
            is_negated = random.random() < 0.4
            word = random.choice(PRAISE if is_good != is_negated else BLAME)
            clauses.append(f"the {thing} is {'not ' if is_negated else ''}{word}")
        texts.append(" and ".join(clauses))
        classes.append("good" if is_good else "bad")
    return texts, classes


def main(folder: Path = Path("demo")) -> None:
    """Train on some reviews, test on others, show how sure the model is."""
    # New reviews, never seen in training, tell how good a model is.
    texts, classes = write_reviews(500, seed=0)
    new_texts, new_classes = write_reviews(300, seed=1)

    # Two thousand bytes are enough for all that these reviews can say.
    model = GraphTextClassifier(max_bytes=2000, n_jobs=1)
    model.fit(texts, classes)
    single_words = TfidfClassifier(pairs=False).fit(texts, classes)
    print(f"example: {new_texts[0]} ({new_classes[0]})")
    classifiers: dict[str, Any] = {"single words": single_words, "graph": model}
    for name, classifier in classifiers.items():
        accuracy = np.mean(classifier.predict(new_texts) == np.array(new_classes))
        print(f"{name:>12}: {accuracy:.1%} of new reviews right")
    print(f"{model.graph_}; the whole model takes {model.size_bytes:,} bytes")
    for reason in model.explain(new_texts[0], N=3):
        print(f"{reason.vertex!r} says {reason.contribution:+.2f}, over {' - '.join(reason.path)}")

    # How sure the model is of praise, by what the reviews really are.
    praise = model.predict_proba(new_texts)[:, list(model.classes_).index("good")]
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    for name, color in {"bad": "#E69F00", "good": "#0072B2"}.items():
        own = praise[np.array(new_classes) == name]
        axes.hist(own, bins=20, range=(0, 1), color=color, alpha=0.75, label=f"{name} reviews")
    axes.set(xlabel="probability of praise", ylabel="reviews", title=f"{len(new_texts)} new reviews")
    axes.legend(frameon=False)
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "gallery-text_classification.png", dpi=110)


if __name__ == "__main__":
    main()
