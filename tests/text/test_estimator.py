from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.utils import get_tags

from prodige.text.estimator import TextEstimator


class Lengths(TextEstimator):
    """Long texts are likely of the second class."""

    def predict_proba(self, texts: Any) -> NDArray[Any]:
        self.classes_ = np.array(["short", "long"])
        long = np.array([min(len(text) / 10, 1.0) for text in texts])
        return np.stack([1 - long, long], axis=1)


def test_the_most_probable_class_is_predicted() -> None:
    assert Lengths().predict(["a", "a long text", "middling"]).tolist() == ["short", "long", "long"]
    assert Lengths().score(["a", "a long text"], ["short", "short"]) == 0.5


def test_scikit_learn_knows_what_it_is() -> None:
    tags = get_tags(Lengths())
    assert tags.estimator_type == "classifier"
    assert tags.input_tags.string
    assert not tags.input_tags.two_d_array


def test_a_new_kind_must_give_probabilities() -> None:
    with pytest.raises(TypeError, match="predict_proba"):
        TextEstimator()
