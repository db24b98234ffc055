"""What all classifiers of texts are to scikit-learn, whatever they learn."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin


class TextEstimator(ClassifierMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """A classifier of texts that gives probabilities; a new kind says how it is fitted and what they are.

    Attributes
    ----------
    classes_ : ndarray, shape [C]
    """

    classes_: NDArray[Any]

    @abstractmethod
    def predict_proba(self, texts: Any) -> NDArray[Any]:
        """Return the probability of each class, in the order of ``classes_``, shape [N, C]."""

    def predict(self, texts: Any) -> NDArray[Any]:
        """Return the most probable class of each text, shape [N]."""
        best = self.predict_proba(texts).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags
