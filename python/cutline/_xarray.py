"""Tables as data sets of xarray: the swept keys, the seed, the subject and the time are dimensions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .errors import ArgumentError

if TYPE_CHECKING:
    import numpy
    import xarray

    from .results import Table

# The columns that are dimensions beside the swept keys, in their order; the subject first.
_DIMENSIONS: Mapping[str, tuple[str, ...]] = {
    "flows": ("flow",),
    "queues": ("link",),
    "series": ("flow", "start_s"),
    "queue_series": ("link", "start_s"),
}
# Columns that the dimensions say.
_SAID = ("run", "point", "seed")


def dataset(name: str, table: Table, points: Table, attributes: Mapping[str, str]) -> xarray.Dataset:
    """Returns a table as a data set."""
    import numpy
    import xarray

    if name not in _DIMENSIONS:
        allowed = ", ".join(f'"{one}"' for one in _DIMENSIONS)
        raise ArgumentError(f"table: {name!r} is not allowed: expected one of {allowed}", "table")
    of_points, seeds = table._codes("point"), table._numbers("seed")
    dimensions: list[str] = []
    coordinates: dict[str, Any] = {}
    places: list[numpy.ndarray[Any, Any]] = []
    for dimension, (of_label, along) in _axes(points).items():
        places.append(numpy.array([of_label[label] for label in of_points[0]], dtype=numpy.int64)[of_points[1]])
        dimensions.append(dimension)
        coordinates.update({key: (dimension, _values(values)) for key, values in along.items()})
    for column in ("seed", *_DIMENSIONS[name]):
        values, place = _unique(table, column, seeds if column == "seed" else None)
        places.append(place)
        dimensions.append(column)
        coordinates[column] = (column, values)
    shape = [int(places[at].max()) + 1 if len(places[at]) else 0 for at in range(len(places))]
    for at, dimension in enumerate(dimensions):
        shape[at] = len(coordinates[dimension][1])
    flat = numpy.ravel_multi_index(places, shape) if len(table) else numpy.zeros(0, dtype=numpy.int64)
    is_full = len(table) == numpy.prod(shape)
    variables: dict[str, Any] = {}
    subject = _DIMENSIONS[name][0]
    for described in table.columns:
        column = described.name
        if column in _SAID or column in coordinates:
            continue
        about = {"long_name": described.meaning, **({} if described.unit == "-" else {"units": described.unit})}
        if table._has_texts(column):
            texts, codes = table._codes(column)
            cells = numpy.array([*texts, None], dtype=object)[codes]
            of_subject = _along(cells, places[dimensions.index(subject)], len(coordinates[subject][1]))
            if of_subject is not None:
                coordinates[column] = (subject, of_subject, about)
                continue
            values = numpy.full(shape, None, dtype=object)
        else:
            cells = table._numbers(column)
            is_whole = is_full and cells.dtype == numpy.int64
            values = numpy.zeros(shape, dtype=numpy.int64) if is_whole else numpy.full(shape, numpy.nan)
        values.reshape(-1)[flat] = cells
        variables[column] = (dimensions, values, about)
    if "end_s" in variables:
        _, values, about = variables.pop("end_s")
        ends = numpy.nanmax(values, axis=tuple(range(values.ndim - 1))) if values.size else values.reshape(0)
        coordinates["end_s"] = ("start_s", ends, about)
    return xarray.Dataset(variables, coordinates, dict(attributes))


def _axes(points: Table) -> dict[str, tuple[dict[str, int], dict[str, list[Any]]]]:
    """Returns the dimensions of a sweep: for each the place of every point along it, by label, and the values of the keys along it.

    Keys that vary together, so that the value of each tells that of the other, are along one dimension, which has the name of the first.
    """
    of_key: dict[str, dict[str, str]] = {}
    numbers: dict[str, dict[str, float | None]] = {}
    for row in points:
        of_key.setdefault(row["key"], {})[row["point"]] = row["value"]
        numbers.setdefault(row["key"], {})[row["value"]] = row["number"]
    axes: dict[str, tuple[dict[str, int], dict[str, list[Any]]]] = {}
    for key, of_label in of_key.items():
        values = list(dict.fromkeys(of_label.values()))
        of_label_at = {label: values.index(value) for label, value in of_label.items()}
        shown = _numbers([numbers[key][value] for value in values]) or values
        for of_label_there, along in axes.values():
            if len(values) > 1 and of_label_there == of_label_at:
                along[key] = shown
                break
        else:
            axes[key] = (of_label_at, {key: shown})
    return axes


def _numbers(values: Sequence[float | None]) -> list[Any] | None:
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return None
    return [int(value) for value in known] if all(value == int(value) for value in known) else list(known)


def _values(values: list[Any]) -> Any:
    import numpy

    return numpy.array(values, dtype=object if any(isinstance(value, str) for value in values) else None)


def _unique(table: Table, column: str, known: Any) -> tuple[Any, Any]:
    """Returns the different cells of a column, texts in the order of the table and numbers sorted, and the place of each row's."""
    import numpy

    if known is None and table._has_texts(column):
        texts, codes = table._codes(column)
        return numpy.array(texts, dtype=object), codes
    return numpy.unique(table._numbers(column) if known is None else known, return_inverse=True)


def _along(cells: Any, place: Any, count: int) -> Any:
    """Returns the cell of each subject, if it is the same in all rows."""
    import numpy

    found = numpy.full(count, None, dtype=object)
    found[place] = cells
    return found if bool((found[place] == cells).all()) else None
