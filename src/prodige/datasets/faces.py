"""CelebA10k: encodings of 10,000 faces, made from photographs by the network of ``face_recognition``.

The photographs may not be passed on, nor what is made of them: CelebA is for non-commercial research. So there is
nothing to download, and users encode their own copy.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prodige._validation import check_integer
from prodige.datasets.storage import write_arrays
from prodige.progress import Bar

_SUFFIXES = {".jpg", ".jpeg", ".png"}


def encode_faces(
    folder: Path, output: Path, limit: int | None = None, n_jobs: int | None = None, verbose: int = 0
) -> tuple[int, int]:
    """Encode the largest face of every photograph in a folder, and write them as a data set.

    Parameters
    ----------
    folder : Path
        Photographs, ``.jpg`` or ``.png``, taken in the order of their names.
    output : Path
        The ``.npz`` file to write: ``X``, float32 [N, 128], and ``image_id``, the names without suffix, as numbers if
        all are.
    limit : int, optional
        Stop after so many faces.
    n_jobs : int, optional
        Processes; all processors that this process may use when left out. A photograph takes a fraction of a second.
    verbose : int
        Above 0 shows a progress bar.

    Returns
    -------
    n_faces, n_without : int
        Faces encoded, and photographs left out because no face was found.

    Examples
    --------
    >>> from pathlib import Path
    >>> from prodige.datasets.faces import encode_faces
    >>> encode_faces(Path("img_align_celeba"), Path("celeba10k.npz"), limit=10_000)  # doctest: +SKIP
    (10000, 31)
    """
    import joblib

    from prodige.threads import count_threads

    most = None if limit is None else check_integer("limit", limit, 1, 2**31)
    if not folder.is_dir():
        raise NotADirectoryError(f"folder must be an existing folder of photographs, got {str(folder)!r}")
    photographs = sorted(path for path in folder.iterdir() if path.suffix.lower() in _SUFFIXES)
    if not photographs:
        raise ValueError(f"folder must hold photographs ({', '.join(sorted(_SUFFIXES))}), found none in {folder}")
    import_face_recognition()
    # A few at a time: whoever asks for 10,000 of 200,000 photographs does not wait for all.
    jobs = joblib.Parallel(n_jobs=count_threads(n_jobs), return_as="generator", pre_dispatch="2*n_jobs")(
        joblib.delayed(encode)(path) for path in photographs
    )
    names: list[str] = []
    rows: list[NDArray[np.float32]] = []
    seen = 0
    with Bar(total=most or len(photographs), disable=verbose <= 0, unit="face") as bar:
        for path, row in zip(photographs, jobs, strict=True):
            seen += 1
            if row is not None:
                names.append(path.stem)
                rows.append(row)
                bar.update()
                if len(rows) == most:
                    break
        jobs.close()
    if not rows:
        raise ValueError(f"no face was found in any of the {seen} photographs in {folder}")
    write_arrays(output, X=np.stack(rows), image_id=image_ids(names))
    return len(rows), seen - len(rows)


def encode(path: Path) -> NDArray[np.float32] | None:
    """Return the 128 numbers of the largest face in a photograph, or nothing if there is none."""
    face_recognition = import_face_recognition()
    image = face_recognition.load_image_file(path)
    faces = face_recognition.face_locations(image)
    if not faces:
        return None
    largest = max(faces, key=lambda face: (face[2] - face[0]) * (face[1] - face[3]))  # top, right, bottom, left
    return np.asarray(face_recognition.face_encodings(image, [largest])[0], dtype=np.float32)


def image_ids(names: list[str]) -> NDArray[Any]:
    """Return names as numbers if all are.

    Examples
    --------
    >>> from prodige.datasets.faces import image_ids
    >>> image_ids(["000001", "000007"])
    array([1, 7], dtype=uint32)
    >>> image_ids(["ada", "000007"])
    array(['ada', '000007'], dtype='<U6')
    """
    if all(name.isdecimal() and len(name) < 10 for name in names):
        return np.array([int(name) for name in names], dtype=np.uint32)
    return np.array(names)


def import_face_recognition() -> Any:
    """Return face_recognition, or say how to get it."""
    try:
        import face_recognition
    except (ImportError, SystemExit) as error:  # it quits Python where its models are missing
        raise ImportError("encoding faces needs face_recognition; pip install 'prodige[faces]'") from error
    return face_recognition
