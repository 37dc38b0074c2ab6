"""The engine: runs rules on a script. It logs for programs that ask, and never prints."""

import logging

logging.getLogger("trainshift").addHandler(logging.NullHandler())
