"""Rows of an array under their keys: what one GPU holds of one tensor, and what its router picks for them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tracer.proof.replay.layer.maths import BoolArray, FloatArray, IntArray


class MissingRowError(LookupError):
    """A GPU was asked for a row that never reached it."""


class RowKeyError(MissingRowError):
    """A table of rows has none under ``key``."""

    def __init__(self, key: int) -> None:
        self.key = key
        super().__init__(f"no row under key {key}")


@dataclass(frozen=True, slots=True)
class Rows:
    """``values`` ``[rows, width]`` float64 under ``keys`` ``[rows]`` int64, ascending and distinct."""

    keys: IntArray
    values: FloatArray

    @classmethod
    def empty(cls, width: int) -> Rows:
        """No rows."""
        return cls(np.empty(0, np.int64), np.empty((0, width)))

    @classmethod
    def keyed(cls, keys: IntArray, values: FloatArray) -> Rows:
        """Rows under distinct keys in any order."""
        order = np.argsort(keys)
        return cls(keys[order], values[order])

    @property
    def width(self) -> int:
        """Elements of a row."""
        return int(self.values.shape[1])

    def find(self, keys: IntArray) -> IntArray:
        """Index of each key.

        Raises:
            RowKeyError: naming the first key that is not here.
        """
        places = np.searchsorted(self.keys, keys)
        found = places < len(self.keys)
        found[found] = self.keys[places[found]] == keys[found]
        if not found.all():
            raise RowKeyError(int(keys[~found][0]))
        return places

    def at(self, keys: IntArray) -> FloatArray:
        """Values ``[keys, width]`` of keys in any order, repeats allowed.

        Raises:
            RowKeyError: as :meth:`find`.
        """
        return self.values[self.find(keys)]

    def kept(self, mask: BoolArray) -> Rows:
        """The rows that a mask keeps."""
        return Rows(self.keys[mask], self.values[mask])

    def placed(self, keys: IntArray, values: FloatArray) -> Rows:
        """With rows put in, each in the place of an older one of its key."""
        all_keys = np.concatenate((keys, self.keys))
        distinct, first = np.unique(all_keys, return_index=True)
        return Rows(distinct, np.concatenate((values, self.values))[first])

    def added(self, keys: IntArray, values: FloatArray) -> Rows:
        """With rows summed in; a key that was not here starts from 0."""
        distinct, places = np.unique(np.concatenate((self.keys, keys)), return_inverse=True)
        sums = np.zeros((len(distinct), values.shape[1]))
        np.add.at(sums, places, np.concatenate((self.values, values)))
        return Rows(distinct, sums)


@dataclass(frozen=True, slots=True)
class Gates:
    """Picks of some rows on one GPU: ``keys`` ``[rows]``, ``experts`` and ``weights`` ``[rows, picks]``."""

    keys: IntArray
    experts: IntArray
    weights: FloatArray
