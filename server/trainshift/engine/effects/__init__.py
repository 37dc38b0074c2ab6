"""Effects: the consequences of a finding in the program's conversion.

`outcomes.py` holds what is told, `asking.py` asks the conversion, and loads its rules.
"""
