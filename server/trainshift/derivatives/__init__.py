"""Readable derivatives of Python functions: from a file's text to edits of it, or to refusals.

The one door is `derive`.  Nothing is run or imported of what is differentiated.
"""

from trainshift.derivatives.door import derive
from trainshift.derivatives.reading.result import Derived, Mode, NotFound, Refusal, Refused

__all__ = ["Derived", "Mode", "NotFound", "Refusal", "Refused", "derive"]
