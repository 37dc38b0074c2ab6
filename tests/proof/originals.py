"""Cache the runs of originals, keyed by everything that decides them; `make clean` deletes them."""

from __future__ import annotations

import ast
import fcntl
import hashlib
import io
import os
import pickle
import shutil
import sys
import tokenize
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from importlib.metadata import distributions
from pathlib import Path

from proof.code import Code
from trainshift.proving import launch
from trainshift.proving.observed.record import Run

HERE = Path(__file__).parent
PROVING = Path(launch.__file__).parent
# Modules that only show results to a person, and are not part of these runs; and those that end a training.
FOR_PEOPLE = {"details", "links"}
# The code that decides how a script runs, and what is recorded.
OBSERVING = (
    *sorted(path for path in (PROVING / "observed").glob("*.py") if path.stem not in FOR_PEOPLE),
    PROVING / "launch.py",
    PROVING / "judging" / "runs.py",
)
SOURCES = (*OBSERVING, *(HERE / name for name in ("harness.py", "code.py", "forks.py", "zygote.py")))
KEPT = HERE.parents[1] / ".pytest_cache" / "originals"


def kept(
    code: Code, arguments: Sequence[str], *, single: bool, run: Callable[[], Run], data: bool = False
) -> Run:
    """The result of `run` for the code: cached from an earlier successful call, or computed now.

    Any process may call this at any time; of several with the same key, one runs the code.
    """
    folder = KEPT / surroundings()
    folder.mkdir(parents=True, exist_ok=True)
    for outdated in {*KEPT.iterdir()} - {folder}:
        shutil.rmtree(outdated, ignore_errors=True)
    path = folder / digest([*code.parts(), *map(os.fsencode, arguments), bytes([single, data])])
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if path.exists():
            known: Run = pickle.loads(path.read_bytes())
            return known
        result = run()
        if result.exit_code == 0 and result.record:
            part = path.with_suffix(".part")
            part.write_bytes(pickle.dumps(result))
            part.replace(path)
        return result


@cache
def surroundings() -> str:
    """A digest of the harness, of Python, and of all installed packages."""
    installed = sorted(f"{package.name}=={package.version}" for package in distributions())
    return digest([*sources(SOURCES), sys.version.encode(), *map(str.encode, installed)])


def sources(paths: Iterable[Path]) -> list[bytes]:
    """The code of modules, without comments and docstrings, so that an edit of prose needs no new proof."""
    return [_code_alone(path.read_text(encoding="utf-8")) for path in paths]


@cache
def _code_alone(text: str) -> bytes:
    docstrings = {
        (node.body[0].lineno, node.body[0].col_offset)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        if node.body and isinstance(node.body[0], ast.Expr) and isinstance(node.body[0].value, ast.Constant)
    }
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    kept = [
        token.string if token.type != tokenize.INDENT else "\t"
        for token in tokens
        if token.type not in (tokenize.COMMENT, tokenize.NL) and token.start not in docstrings
    ]
    return "\n".join(kept).encode()


def digest(parts: Iterable[bytes]) -> str:
    """A digest, which is equal only for equal parts."""
    total = hashlib.blake2b(digest_size=16)
    for part in parts:
        total.update(len(part).to_bytes(8, "big") + part)
    return total.hexdigest()
