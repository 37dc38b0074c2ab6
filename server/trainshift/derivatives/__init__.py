"""Readable derivatives of Python functions: from a file's text to edits of it, or to refusals.

The entry point is `derive`.  Differentiated code is never run or imported.
"""

from trainshift.derivatives.door import derive
from trainshift.derivatives.reading.result import Derived, Mode, NotFound, Refusal, Refused

__all__ = ["Derived", "Mode", "NotFound", "Refusal", "Refused", "derive"]
