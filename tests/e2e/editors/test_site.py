"""The documentation's site: built from the repository's Markdown, and viewed in a browser."""

from __future__ import annotations

import html
import json
import re
import subprocess
from collections.abc import Iterator
from functools import cache, partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from trainshift.dev.docgen import pages
from trainshift.dev.messages import is_code, messages
from trainshift.dev.site import build
from trainshift.pages import page_url

pytestmark = pytest.mark.editors

LOOK = Path(__file__).parent / "site.mjs"
EXTENSION = Path(__file__).parents[3] / "vscode-extension" / "package.json"
README = EXTENSION.parent.parent / "README.md"


class Quiet(SimpleHTTPRequestHandler):
    """A file server without log output."""

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site; a broken link would have failed the build."""
    folder = tmp_path_factory.mktemp("site")
    build(folder)
    return folder


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    """The address at which the site is served."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_a_reader_finds_what_is_looked_for(address: str) -> None:
    """Search and links work, pictures load, and nothing comes from another site."""
    command = ["node", str(LOOK), address, str(EXTENSION)]
    looked = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert looked.returncode == 0, looked.stderr
    seen = json.loads(looked.stdout)
    assert seen["title"].startswith("Trainshift")
    assert len(seen["pictures"]) == len(re.findall(r"^!\[", README.read_text(encoding="utf-8"), re.M))
    assert all(width > 100 for width in seen["pictures"])
    assert seen["found"].endswith("/rules/HV02.html")
    # A message as it is printed, with names that no page has.
    assert [query for query, wanted, first in seen["asked"] if wanted not in first] == []
    assert "Why it matters" in seen["headings"]
    assert seen["steps"] >= 5
    assert (seen["outside"], seen["failed"]) == ([], [])


def test_each_code_has_its_page_where_findings_link_to(folder: Path) -> None:
    """The menu names each page."""
    listed = (folder / "codes.html").read_text(encoding="utf-8")
    for code in pages():
        place = page_url(code, "https://docs.example.org/").removeprefix("https://docs.example.org/")
        assert f"{code} " in (folder / place).read_text(encoding="utf-8")
        assert f'href="rules/{code}.html"' in listed


@cache
def _text(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def test_each_code_and_each_message_can_be_searched_for(folder: Path) -> None:
    index = json.loads((folder / "search" / "search_index.json").read_text(encoding="utf-8"))["docs"]
    titles = [entry["title"] for entry in index]
    assert all(any(title.startswith(f"{code} ") for title in titles) for code in pages())
    indexed: dict[str, set[str]] = {}
    for entry in index:
        page, _, anchor = entry["location"].partition("#")
        if "-message-" in anchor:
            topic = Path(page).stem if page.startswith("rules/") else entry["title"]
            indexed.setdefault(topic, set()).add(html.unescape(entry["text"]))
            assert f'id="{anchor}"' in _text(folder / page)
    wanted = messages()
    texts = {topic: {each.replace("`", "") for each in said} for topic, said in wanted.items()}
    assert texts == indexed
    assert [topic for topic in wanted if is_code(topic) and topic not in pages()] == []
    questions = {entry["title"] for entry in index if entry["location"].startswith("command-line.html#row-")}
    assert "How do I undo a conversion?" in questions


def test_what_is_not_on_the_site_is_linked_in_the_repository(tmp_path: Path, folder: Path) -> None:
    """It is linked if the repository's address is known; otherwise the file is only named."""
    build(tmp_path, "https://git.example.org/trainshift/")
    pattern = re.compile(r'href="([^"]*fixtures/restrictions/tf03[^"]*)"')
    with_repository = pattern.findall((tmp_path / "rules" / "TF03.html").read_text(encoding="utf-8"))
    assert with_repository
    assert {each.partition("/fixtures/")[0] for each in with_repository} == {
        "https://git.example.org/trainshift/blob/HEAD"
    }
    without = (folder / "rules" / "TF03.html").read_text(encoding="utf-8")
    assert "tf03_tensorflow_member_alias.md" in without
    assert pattern.findall(without) == []


def test_code_after_a_change_stands_below_that_before_it(folder: Path) -> None:
    for page in sorted((folder / "rules").glob("*.html")):
        text = html.unescape(re.sub(r"<[^>]*>", "", page.read_text(encoding="utf-8")))
        assert not re.search(r"# before +# after|# wrong +# right", text), page.name
    text = (folder / "rules" / "HV02.html").read_text(encoding="utf-8")
    assert "# before" in text
    assert "# after" in text
