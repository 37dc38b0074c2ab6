"""What an interpreter has, as JSON on one line: its version, and whether the language server could run.

Run with any Python from 2.7 on, so that one which is too old can say so.
"""

import json
import sys

found = {"executable": sys.executable, "version": list(sys.version_info[:3])}
if sys.version_info >= (3, 8):
    from importlib.metadata import PackageNotFoundError, version
    from importlib.util import find_spec

    # What `python -m trainshift.lsp` imports; distributions that are half removed lack some of it.
    needed = ("libcst", "msgspec", "pygls", "lsprotocol", "click", "packaging", "pathspec")

    def distribution(name):
        try:
            return version(name)
        except PackageNotFoundError:
            return None

    found.update(
        # TensorFlow is distributed under many names.
        hasTensorflow=find_spec("tensorflow") is not None,
        hasHorovod=find_spec("horovod") is not None,
        trainshift=distribution("trainshift") if find_spec("trainshift") else None,
        missing=[name for name in needed if find_spec(name) is None],
        base=sys.base_prefix,
        packages={name: distribution(name) for name in needed + ("tensorflow", "horovod")},
    )
print(json.dumps(found))
