"""The language server in Emacs with Eglot, configured by the lines in `server/docs/editors.md`."""

from __future__ import annotations

from pathlib import Path

import pytest

from e2e.editors.contract import Contract
from e2e.editors.session import Editor, configurations

pytestmark = pytest.mark.editors
DRIVER = Path(__file__).with_name("driver.el")


class Emacs(Editor):
    """Emacs on a terminal, controlled by emacsclient."""

    def configure(self) -> None:
        """Write the page's lines as its init.el."""
        (settings,) = configurations("Emacs")
        directory = self.home / ".emacs.d"
        directory.mkdir()
        (directory / "init.el").write_text(settings, encoding="utf-8")

    def command(self) -> list[str | Path]:
        """It loads the driver before the file."""
        return ["emacs", "-nw", "--load", DRIVER, self.path]

    def remote(self) -> list[str]:
        """It evaluates in the running Emacs."""
        return ["emacsclient", f"--socket-name={self.socket}", "--eval", "(driver-call)"]

    def log(self) -> str:
        """The messages of Emacs, and the log of Eglot."""
        return str(self.ask("log"))


class TestEmacs(Contract):
    """The contract, in Emacs."""

    editor = Emacs
