"""The configurations in `server/docs/editors.md` of editors that no test runs."""

from __future__ import annotations

import json

from e2e.editors.session import configurations
from trainshift.libraries import toml

COMMAND = ["trainshift", "server"]


def test_the_lines_for_helix_start_the_server() -> None:
    (block,) = configurations("Helix")
    settings = toml.loads(block)
    server = settings["language-server"]["trainshift"]
    assert [server["command"], *server["args"]] == COMMAND
    assert settings["language"] == [{"name": "python", "language-servers": ["trainshift"]}]


def test_the_lines_for_sublime_text_start_the_server() -> None:
    (block,) = configurations("Sublime Text")
    server = json.loads(block)["clients"]["trainshift"]
    assert server["enabled"] is True
    assert server["command"] == COMMAND
    assert server["selector"] == "source.python"
