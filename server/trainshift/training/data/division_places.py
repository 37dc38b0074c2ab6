"""Division places: the expressions at which data are divided."""

from __future__ import annotations

import ast
from enum import Enum

from msgspec import Struct

from trainshift.python.names.occurrence import Occurrence
from trainshift.python.syntax.chunk_syntax import Statement
from trainshift.training.datasets.draw_remedies import Draw


class Form(Enum):
    """The kind of value that is divided: a dataset, an array or container of arrays, an iterable.

    IN_GRAPH is a dataset in the trace of a `tf.function`, where nothing has a length; ENDLESS one of which a
    loop takes a number of steps; GENERATOR an iterable that Python consumes once.  COUNT and STEPS differ by
    rank: the number of a loop's iterations, and a sequence of which a `fit` takes fewer batches.  STRIDE is
    the index in the test of a `while` that advances from slice to slice.
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


class Place(Struct, frozen=True, eq=False):
    """An expression whose value is divided, so that values computed from it are shares.

    `draws` are the earlier draws of an order, which must be the same on all ranks.  `length` is another
    expression of the same length that is easier to evaluate.  `counting` are the start and the increment of a
    stride.
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
