"""The engine: runs rules on a script.  What it logs is for programs that ask; it never prints by itself."""

import logging

logging.getLogger("trainshift").addHandler(logging.NullHandler())
