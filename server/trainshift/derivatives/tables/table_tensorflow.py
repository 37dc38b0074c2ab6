"""The rows of TensorFlow."""

from __future__ import annotations

from trainshift.derivatives.tables.table import Row, shared

ROWS: tuple[Row, ...] = (*shared("tensorflow.math", {}),)
