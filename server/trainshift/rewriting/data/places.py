"""Places: the expressions at which data are divided."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from enum import Enum

from trainshift.python.names.occurrence import Occurrence
from trainshift.python.syntax.chunk_syntax import Statement
from trainshift.rewriting.datasets.remedies import Draw


class Form(Enum):
    """The kind of value that is divided: a dataset, an array or container of arrays, an iterable.

    IN_GRAPH is a dataset in the trace of a `tf.function`, where nothing has a length; ENDLESS one of which a
    loop takes a number of steps; GENERATOR what Python iterates once.  Of COUNT and STEPS each rank has its
    own: the number of a loop's turns, and a sequence of whose batches a `fit` takes fewer.  STRIDE is what a
    `while` compares that counts from slice to slice.
    """

    DATASET = "dataset"
    IN_GRAPH = "dataset in a graph"
    ENDLESS = "endless dataset"
    ARRAY = "array"
    LIST = "list of arrays"
    DICTIONARY = "dictionary of arrays"
    SEQUENCE = "sequence"
    GENERATOR = "generator"
    COUNT = "count"
    STEPS = "steps"
    STRIDE = "stride"


@dataclass(frozen=True, eq=False, slots=True)
class Place:
    """An expression whose value is divided, so that values computed from it are shares.

    `draws` are those of an order before, which all ranks must make alike.  `length` is another expression of
    the same length, if that can be asked more easily.  `counting` are what a stride begins with, and what is
    added to it.
    """

    at: Occurrence
    form: Form
    draws: tuple[Draw, ...] = ()
    length: ast.expr | None = None
    counting: tuple[Occurrence, ...] = ()

    @property
    def statement(self) -> Statement:
        """The statement of the expression."""
        assert self.at.statement is not None
        return self.at.statement
