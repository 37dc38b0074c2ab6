"""Effects: the consequences of a finding in the program's conversion.

`outcomes.py` has the data, `asking.py` runs the conversion, and imports its rules.
"""
