"""A real editor, started with the configuration in `server/docs/editors.md` and controlled remotely.

Each session has its own home, so that only the page's lines configure the editor.  A test queries the editor
through its own remote interface, and waits for the effects of the server.
"""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from difflib import unified_diff
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "server" / "docs" / "editors.md"
# The timeout of one wait; the machine may be busy with other tests.
TIME_LIMIT = 60.0
PAUSE = 0.05


class Shown(NamedTuple):
    """A diagnostic as the editor shows it: its code and its line, from 1."""

    code: str
    line: int


def configurations(editor: str) -> list[str]:
    """The code blocks of an editor's section of `server/docs/editors.md`, in order."""
    section = re.search(rf"^## {editor}\n(.*?)(?=^##|\Z)", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    assert section is not None, f"{PAGE.name} has no section {editor!r}"
    return re.findall(r"^```[a-z]+\n(.*?)^```$", section[1], re.M | re.S)


class Editor(ABC):
    """One run of an editor with one file open; a context manager that ends it with all child processes."""

    def __init__(self, path: Path, home: Path) -> None:
        """An editor of the file at `path`, with its settings and logs under `home`."""
        self.path = path
        self.home = home
        self.screen = bytearray()

    @abstractmethod
    def configure(self) -> None:
        """Write the page's lines to the editor's settings file."""

    @abstractmethod
    def command(self) -> list[str | Path]:
        """The command that starts the editor."""

    @abstractmethod
    def remote(self) -> list[str]:
        """The command that lets the running editor's driver answer the call in its home."""

    @abstractmethod
    def log(self) -> str:
        """The log of the editor and its client about the session."""

    @property
    def environment(self) -> dict[str, str]:
        """The environment: Trainshift first on the PATH, and all written files under the home."""
        return {
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "NVIM_LOG_FILE": str(self.home / "nvim.log"),
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
            "TERM": "linux",
            "TMPDIR": str(self.home),
            "XDG_CACHE_HOME": str(self.home / "cache"),
            "XDG_CONFIG_HOME": str(self.home / "config"),
            "XDG_DATA_HOME": str(self.home / "data"),
            "XDG_RUNTIME_DIR": str(self.home),
            "XDG_STATE_HOME": str(self.home / "state"),
        }

    @property
    def socket(self) -> str:
        """The address at which it listens."""
        return str(self.home / "socket")

    def ask(self, name: str, *arguments: object) -> Any:
        """Call a function of the driver, which is loaded next to the configuration."""
        answer = self.home / "answer"
        answer.unlink(missing_ok=True)
        (self.home / "call").write_text(json.dumps({"name": name, "arguments": arguments}), encoding="utf-8")
        try:
            done = subprocess.run(
                self.remote(),
                env=self.environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=TIME_LIMIT,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise RemoteError(f"{name}: no answer in {TIME_LIMIT:.0f} s") from error
        if not answer.exists():
            raise RemoteError(f"{name} failed: {done.stdout.decode(errors='replace')}")
        return json.loads(answer.read_text(encoding="utf-8"))["answer"]

    def answers(self) -> bool:
        """Return whether the editor is up; it stays down for good once its process has ended."""
        status = self.process.poll()
        assert status is None, f"the editor ended with status {status}\n{self.report()}"
        try:
            return self.ask("text") is not None
        except RemoteError:
            return False

    def until(self, what: str, holds: Callable[[], bool]) -> None:
        """Wait for a condition; fail with the editor's log on a timeout."""
        end = time.monotonic() + TIME_LIMIT
        while not holds():
            if time.monotonic() > end:
                raise AssertionError(f"waited {TIME_LIMIT:.0f} s in vain until {what}\n{self.report()}")
            time.sleep(PAUSE)

    def report(self) -> str:
        """The end of the log; without one, the screen."""
        try:
            return self.log()[-20_000:]
        except RemoteError as error:
            return f"no log: {error}\non the screen: {self.screen.decode(errors='replace')[-4_000:]!r}"

    @property
    def text(self) -> str:
        """The text of the buffer; its lines end with a line feed, and a byte order mark is not part of it."""
        return str(self.ask("text"))

    @property
    def diagnostics(self) -> set[Shown]:
        """The diagnostics of the server that the editor shows."""
        return {Shown(*each) for each in self.ask("diagnostics")}

    def wait_for(self, *wanted: Shown) -> None:
        """Wait until all these diagnostics are shown."""
        try:
            self.until(f"{wanted} are shown", lambda: self.diagnostics.issuperset(wanted))
        except AssertionError as error:
            shown = "\n".join(map(str, sorted(self.diagnostics)))
            raise AssertionError(f"{error}\nshown at last:\n{shown}") from None

    def apply(self, title: str, line: int, kind: str = "") -> None:
        """Apply the code action at a line whose title begins with a text, of some kinds or of all."""
        self.ask("apply", title, line, kind)

    def save(self) -> bytes:
        """Save the buffer; returns the content of the file."""
        self.ask("save")
        return self.path.read_bytes()

    def wait_for_text(self, wanted: str) -> None:
        """Wait until the buffer holds this text, line endings and byte order mark aside."""
        wanted = wanted.removeprefix("\ufeff").replace("\r\n", "\n")
        try:
            self.until("the buffer holds the expected text", lambda: self.text == wanted)
        except AssertionError as error:
            lines = unified_diff(
                wanted.splitlines(), self.text.splitlines(), "expected", "buffer", lineterm=""
            )
            raise AssertionError("\n".join([str(error), "offered:", *self.ask("offered"), *lines])) from None

    def __enter__(self) -> Editor:
        """Start the editor on its own terminal, and wait until it answers."""
        self.configure()
        self.terminal, terminal = pty.openpty()
        try:
            self.process = subprocess.Popen(
                ["setsid", "--ctty", *self.command()],
                cwd=self.path.parent,
                env=self.environment,
                stdin=terminal,
                stdout=terminal,
                stderr=terminal,
            )
        finally:
            os.close(terminal)
        threading.Thread(target=self.read, daemon=True).start()
        try:
            self.until("the editor answers", self.answers)
        except BaseException:
            self.kill()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Quit the editor like a user; none of its processes may survive."""
        try:
            if self.process.poll() is None:
                self.ask("quit")
                self.until("the editor and its server have ended", lambda: not self.alive())
        finally:
            self.kill()

    def read(self) -> None:
        """Read the editor's output to its terminal, until that closes."""
        with suppress(OSError):
            while part := os.read(self.terminal, 4096):
                self.screen += part
        os.close(self.terminal)

    def kill(self) -> None:
        """End the remaining processes of the session."""
        for process in self.alive():
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        self.process.wait()

    def alive(self) -> list[int]:
        """The processes of this session, including the server: those with its home."""
        self.process.poll()
        mark = f"HOME={self.home}".encode()
        found = []
        for path in Path("/proc").glob("[0-9]*/environ"):
            try:
                if mark in path.read_bytes().split(b"\0"):
                    found.append(int(path.parent.name))
            except OSError:
                continue  # It has ended, or belongs to someone else.
        return found


class RemoteError(Exception):
    """The running editor could not be asked."""
