"""Effects: what the conversion of a program does because of a finding.

`outcomes.py` holds what is told, `asking.py` asks the conversion, and loads its rules.
"""
