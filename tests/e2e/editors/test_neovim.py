"""The language server in Neovim, configured by the lines in `server/docs/editors.md`."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from e2e.editors.contract import Contract
from e2e.editors.session import Editor, configurations

pytestmark = pytest.mark.editors
DRIVER = Path(__file__).with_name("driver.lua")


def configuration() -> str:
    """The page's lines: the first block is for Neovim 0.11 and later, the second one for earlier ones."""
    new, old = configurations("Neovim")
    banner = subprocess.run(["nvim", "--version"], capture_output=True, text=True, check=True).stdout
    version = re.match(r"NVIM v(\d+)\.(\d+)", banner)
    assert version is not None, banner
    return new if (int(version[1]), int(version[2])) >= (0, 11) else old


class Neovim(Editor):
    """Neovim without a terminal, which listens on a socket."""

    def configure(self) -> None:
        """Write the page's lines as its init.lua."""
        settings = self.home / "config" / "nvim" / "init.lua"
        settings.parent.mkdir(parents=True)
        settings.write_text(configuration(), encoding="utf-8")

    def command(self) -> list[str | Path]:
        """It loads the driver after the file."""
        return ["nvim", "--headless", "--listen", self.socket, "-c", f"luafile {DRIVER}", self.path]

    def remote(self) -> list[str]:
        """It evaluates in the running Neovim."""
        return ["nvim", "--server", self.socket, "--remote-expr", "v:lua.driver.call()"]

    def log(self) -> str:
        """Its messages, and the log of its client."""
        logs = [path.read_text(errors="replace") for path in self.home.rglob("lsp.log")]
        return "\n".join([*logs, self.ask("messages")])


class TestNeovim(Contract):
    """The contract, in Neovim."""

    editor = Neovim
