"""Labels of texts: what is a class, what it weighs, and what a file makes of it."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.utils import compute_class_weight

from prodige.text.labels import check_class_weight, check_labels, decode_classes, encode_classes

# -- which classes there are -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        (["10", "9", "10"], ["10", "9"]),  # texts that look like numbers stay texts, and are in the order of texts
        (["1", "01", "1.0"], ["01", "1", "1.0"]),  # and those that are one number stay apart
        (["nan", "None", ""], ["", "None", "nan"]),  # words like any other
        ([10, 9, 10], [9, 10]),
        ([2.0, 1.0, 2.0], [1.0, 2.0]),  # whole numbers in floats, as tables are often read
        ([True, False], [False, True]),
        (np.array([3, 255], dtype=np.uint8), [3, 255]),
        (np.array(["2019-12-14", "2019-12-08"], dtype="datetime64[D]"), ["2019-12-08", "2019-12-14"]),
        (pd.Series(["b", "a"], dtype=object), ["a", "b"]),
        (pd.Series([5, 1], index=[7, 8]), [1, 5]),
        (np.array([[1], [0]]).ravel(), [0, 1]),
    ],
)
def test_classes(labels: Any, classes: list[Any]) -> None:
    found, numbers = check_labels(labels, len(labels))
    assert found.astype(str).tolist() == np.array(classes).astype(str).tolist()
    assert numbers.dtype == np.int64
    assert_array_equal(found[numbers].astype(str), np.asarray(labels).astype(str))


@pytest.mark.filterwarnings("ignore:The number of unique classes:UserWarning")
@given(st.lists(st.one_of(st.text(max_size=4), st.integers(-20, 20).map(str)), min_size=2, max_size=30))
def test_texts_stay_as_they_are(labels: list[str]) -> None:
    labels = [label.replace("\0", "0") for label in labels]  # NumPy drops these at the end
    if len(set(labels)) < 2:
        with pytest.raises(ValueError, match="one class only"):
            check_labels(labels, len(labels))
        return
    classes, numbers = check_labels(labels, len(labels))
    assert classes.tolist() == sorted(set(labels))
    assert classes[numbers].tolist() == labels


@pytest.mark.parametrize(
    ("labels", "error", "message"),
    [
        ([1, 1, 1], ValueError, "y has one class only, .*1.*: there is nothing to tell apart"),
        ([1, 2], ValueError, r"one label per text \(3\), got 2"),
        ([1.0, np.nan, 2.0], ValueError, r"y\[1\] = nan \(1 such labels\) is no class; drop the text"),
        (["a", None, "b"], ValueError, r"y\[1\] = None"),
        (np.array(["2019-01-01", "NaT", "2019-01-02"], dtype="M8[D]"), ValueError, r"y\[1\] = NaT"),
        (np.array(["a", 1, "b"], dtype=object), TypeError, r"different types \(int, str\); make them all strings"),
        (["a", 1, "1"], TypeError, r"different types \(int, str\); make them all strings"),
        ([0.5, 1.25, 2.0], ValueError, "continuous"),
        (np.array([1j, 2j, 1j]), (TypeError, ValueError), "complex|Complex"),
        (np.array([b"a", b"b", b"a"]), TypeError, "which a file cannot hold; make them texts, numbers or dates"),
        (np.array([(1,), (2,), (1,)], dtype="i4,"), (TypeError, ValueError), "."),
        (np.zeros((3, 2)), ValueError, "1d array|shape"),
    ],
)
def test_what_is_refused(labels: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        check_labels(labels, 3)


def test_one_long_label_among_many() -> None:
    """NumPy would give each of them its room."""
    with pytest.raises(ValueError, match=r"y has 2000 labels, one of 1000000 letters: together they take 7\.45 GiB"):
        check_labels(["a"] * 1999 + ["b" * 1_000_000], 2000)


# -- what classes weigh ------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 3), min_size=4, max_size=40).filter(lambda numbers: len(set(numbers)) > 1))
def test_balanced_weights_are_those_of_scikit_learn(values: list[int]) -> None:
    classes, numbers = check_labels(values, len(values))
    expected = compute_class_weight("balanced", classes=classes, y=np.array(values))
    weights = check_class_weight("balanced", classes, numbers)
    np.testing.assert_allclose(weights, expected)
    totals = np.bincount(numbers) * weights  # all classes count alike
    np.testing.assert_allclose(totals, totals[0])
    assert_array_equal(check_class_weight(None, classes, numbers), 1)


def test_weights_by_label() -> None:
    """Of the labels' own type: "1" is not 1."""
    numbers = np.array([0, 1, 1])
    for labels, one in (
        (np.array(["1", "2"]), "1"),
        (np.array(["1", "2"]), np.str_("1")),
        (np.array([1, 2]), np.int16(1)),
        (np.array([0.5, 0.75]), 0.5),
        (np.array([False, True]), False),
        (np.array(["2019", "2020"], dtype="M8[D]"), np.datetime64("2019-01-01")),
        (np.array(["2019", "2020"], dtype="M8[D]"), datetime.date(2019, 1, 1)),
    ):
        weights: dict[Any, Any] = {one: np.float32(4.5)}
        assert check_class_weight(weights, labels, numbers).tolist() == [4.5, 1.0]
    with pytest.raises(ValueError, match="class_weight has 1, a int, which is none of the 2 classes; the first is '1'"):
        check_class_weight({"2": 1, 1: 4}, np.array(["1", "2"]), numbers)


@pytest.mark.parametrize(
    ("weights", "error", "message"),
    [
        ([1, 2], TypeError, r"class_weight must be 'balanced', a dict or None, got \[1, 2\]"),
        ({"a": "3"}, TypeError, r"class_weight\['a'\] must be a number, got '3'"),
        ({"a": True}, TypeError, "must be a number, got True"),
        ({"a": 0}, ValueError, "must be a finite number above 0, got 0; leave out the texts"),
        ({"a": np.inf}, ValueError, "above 0, got inf"),
        ({"a": -1.0}, ValueError, "above 0, got -1.0"),
        ("even", ValueError, "balanced"),
    ],
)
def test_weights_that_are_refused(weights: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        check_class_weight(weights, np.array(["a", "b"]), np.array([0, 1]))


# -- in a file ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "labels",
    [
        ["01", "1", "1.0", "größer", "\ud800"],
        [-3, 7],
        [0.5, 1e300],
        [False, True],
        np.array([1, 2], dtype=np.uint8),
        np.array([1, 2], dtype=np.float16),
        np.array(["2019", "2020"], dtype="datetime64[Y]"),
        np.array(["2019-01-01T00:00:00.000000001", "2020-01-01"], dtype="datetime64[ns]"),
    ],
)
def test_files_keep_labels_and_their_type(labels: Any) -> None:
    classes = np.array(labels)
    kind, array = encode_classes(classes)
    found = decode_classes(kind, array, classes.size)
    assert found.dtype == classes.dtype
    assert_array_equal(found, classes)


@given(st.sets(st.text(st.characters(exclude_characters="\0"), max_size=6), min_size=1, max_size=20))
def test_any_texts_in_a_file(labels: set[str]) -> None:
    classes = np.unique(np.array(sorted(labels)))
    assert decode_classes(*encode_classes(classes), classes.size).tolist() == classes.tolist()


def test_what_a_file_cannot_hold() -> None:
    with pytest.raises(TypeError, match="labels of type complex128 cannot be saved; make them texts or numbers"):
        encode_classes(np.array([1j]))
    with pytest.raises(ValueError, match="2 different labels, the longest of 40000000 letters, take 320000000 bytes"):
        encode_classes(np.array(["a", "b" * 40_000_000]))


@pytest.mark.parametrize(
    ("kind", "array", "n", "message"),
    [
        ("O", np.array([1, 2]), 2, "classes of type .*O.* are not known"),
        (["U"], np.array([1, 2]), 2, "are not known"),
        ("i8", np.array([1, 2], dtype=np.int32), 2, "2 classes of type i8 are not an array of int32"),
        ("i8", np.array([1, 2]), 3, r"3 classes of type i8 are not an array of int64 of shape \(2,\)"),
        ("i8", np.array([2, 1]), 2, "not in order"),
        ("i8", np.array([1, 1]), 2, "not in order"),
        ("f8", np.array([1.0, np.nan]), 2, "not in order"),
        ("M8[D]", np.array([2.0, 3.0]), 2, "not an array of float64"),
    ],
)
def test_forged_files(kind: Any, array: Any, n: int, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        decode_classes(kind, array, n)
