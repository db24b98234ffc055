"""PCA: the distances between rows projected on their principal components.

It keeps squared distances best among all projections, which is not what is asked here: a projection only shrinks, so
most distances come out far too short. The paper compares with it all the same.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from prodige._validation import check_integer
from prodige.baselines.base import Items, Vectors
from prodige.metric.space import Metric, Space


class PCA(Vectors):
    """Euclidean distances between projected rows.

    The paper counts the coordinates. The basis is not counted anywhere, as distances between the fitted items do not
    need it.

    Parameters
    ----------
    n_components : int
        Coordinates of an item.
    metric : {"euclidean"}
        There is no choice; the rows must be dense.
    random_state : int, RandomState or None
        Seed of scikit-learn's solver for data with very many columns; the exact one is used otherwise. A seed
        gives the same result on the same machine, with any number of threads.
    n_jobs : int, optional
        Threads; all processors that this process may use when left out.

    Attributes
    ----------
    embedding_ : ndarray of float32, shape [N, n_components]

    Examples
    --------
    >>> from prodige.baselines import PCA
    >>> PCA(n_components=1).fit([[0.0, 0.0], [3.0, 0.0], [6.0, 0.0]]).distances([0])
    array([[0., 3., 6.]], dtype=float32)
    """

    def __init__(
        self,
        n_components: int = 4,
        metric: Metric = "euclidean",
        *,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.metric = metric
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _fit(self, space: Space) -> None:
        from sklearn.decomposition import PCA as Projection  # noqa: N811 - two PCAs need two names

        if space.metric != "euclidean" or scipy.sparse.issparse(space.X):
            raise ValueError(
                f"PCA needs dense rows and metric='euclidean', got {type(space.X).__name__} and {space.metric!r}; "
                "use MDS, which knows every metric"
            )
        k = check_integer("n_components", self.n_components, 1, min(space.X.shape))
        projection = Projection(k, random_state=self.random_state)
        with np.errstate(invalid="ignore"):  # shares of the variance, which may be 0 and are not used
            self.embedding_ = projection.fit_transform(space.X).astype(np.float32)

    def _distances(self, rows: Items, columns: Items) -> NDArray[np.float32]:
        return Space(self.embedding_, n_jobs=self.n_jobs).distances(rows, columns)
