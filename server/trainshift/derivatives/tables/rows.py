"""The whole table: the rows of all libraries."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from trainshift.derivatives.tables.table import OF_MATH, Row
from trainshift.derivatives.tables.table_helpers import ROWS as OF_HELPERS
from trainshift.derivatives.tables.table_numpy import ROWS as OF_NUMPY
from trainshift.derivatives.tables.table_tensorflow import ROWS as OF_TENSORFLOW


@cache
def rows() -> Mapping[str, Row]:
    """Every row of functions, by full name."""
    return {row.name: row for row in (*OF_MATH, *OF_HELPERS, *OF_NUMPY, *OF_TENSORFLOW)}
