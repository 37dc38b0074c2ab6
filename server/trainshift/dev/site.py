"""Build the documentation's site, static and searchable, from the Markdown in the repository.

    python -m trainshift.dev.site build/site [REPOSITORY]

Files outside the site are linked to the address REPOSITORY; without one they are only named. The page of a
code is `rules/TF03.html`, to which `docs-url` in the settings leads.
"""

from __future__ import annotations

import os
import posixpath
import re
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from trainshift.dev.messages import listed, messages, messages_page
from trainshift.dev.site_search import QUERY, SCRIPT, SETTINGS, Row, anchored, index_parts

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "server" / "docs"
# The menu, by readers: the pages by their names on the site.
_MENU = {
    "": {"index.md": "README.md"},
    "I have a script": {
        "proving.md": "server/docs/proving.md",
        "command-line.md": "server/docs/command-line.md",
        "editors.md": "server/docs/editors.md",
        "vscode.md": "vscode-extension/README.md",
        "clusters.md": "server/docs/clusters.md",
    },
    "I have a script for Horovod": {
        "checking.md": "server/docs/checking.md",
        "codes.md": "server/docs/codes.md",
    },
    "I have Paddle, or functions": {
        "static.md": "server/docs/static.md",
        "differentiate.md": "server/docs/differentiate.md",
    },
    "I work on it": {
        "contributing.md": "CONTRIBUTING.md",
        "architecture.md": "server/ARCHITECTURE.md",
        "conformance.md": "server/docs/conformance.md",
    },
    "Reference": {
        "glossary.md": "server/docs/glossary.md",
        "spec.md": "server/docs/spec.md",
        "changes.md": "CHANGELOG.md",
    },
}
_FAMILIES = ("TF", "TL", "HZ", "PD", "TS", "HV", "AD")
# Continuation lines of a numbered list: GitHub has them indented by 3, Python-Markdown by 4.
_NUMBERED = re.compile(r"^\d\. .*\n(?:(?: {3}.*)?\n)*", re.M)
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s#]+)(#[^)\s]*)?\)")
# The folders of pictures, which are in the same place below the site's own.
_PICTURE = re.compile("^(?:vscode-extension|server/docs)/")
_CODE = re.compile(r"^(?P<fence>`{3,}).*?^(?P=fence)$|`[^`\n]+`|^ {4}[^\n]*$", re.M | re.S)
_BLOCK = re.compile(r"^(?: {4}[^\n]*\n(?:\n(?= {4}))*)+", re.M)
# The first line of code that has code after a change beside it, in a column of its own.
_BESIDE = re.compile(r"(?P<left>\S.*?) {2,}(?P<right>\S.*)")
_LEAST_COLUMN = 24
_LABELS = ("before", "after"), ("wrong", "right")
_THEME = {
    "name": "material",
    "font": False,
    "logo": "media/icon.png",
    "favicon": "media/icon.png",
    "features": [
        "content.code.copy",
        "navigation.sections",
        "navigation.top",
        "search.highlight",
        "search.suggest",
        "toc.follow",
    ],
    "palette": [
        {
            "media": f"(prefers-color-scheme: {scheme})",
            "scheme": name,
            "primary": "teal",
            "toggle": {"icon": icon, "name": f"Switch to {other} mode"},
        }
        for scheme, name, icon, other in (
            ("light", "default", "material/weather-night", "dark"),
            ("dark", "slate", "material/weather-sunny", "light"),
        )
    ],
}


def main() -> None:
    """Build the site in the folder of the first argument."""
    build(Path(sys.argv[1]), "".join(sys.argv[2:3]))


def build(folder: Path, repository: str = "") -> None:
    """Build the site in a folder; raises if a page has a broken link."""
    from mkdocs.commands.build import build as build_site
    from mkdocs.config import load_config

    with TemporaryDirectory() as scratch:
        docs = Path(scratch) / "docs"
        found = messages()
        rows: dict[str, list[Row]] = {}
        menu = _gather(docs, repository.rstrip("/"), found, rows)
        (docs / SCRIPT).write_text(QUERY, encoding="utf-8")
        settings = Path(scratch) / "mkdocs.yml"
        settings.write_text("site_name: Trainshift\n", encoding="utf-8")
        config = load_config(
            str(settings),
            docs_dir=str(docs),
            site_dir=str(folder.absolute()),
            repo_url=repository or None,
            nav=menu,
            theme=_THEME,
            use_directory_urls=False,
            strict=True,
            validation={"links": {"anchors": "warn"}},
            plugins=[{"search": SETTINGS}],
            extra_javascript=[SCRIPT],
            markdown_extensions=["admonition", "pymdownx.highlight", "pymdownx.superfences", "toc"],
        )
        build_site(config)
        index_parts(folder, found, rows)


def _gather(
    docs: Path, repository: str, found: dict[str, list[str]], rows: dict[str, list[Row]]
) -> list[dict[str, Any]]:
    """Copy the pages and pictures into a folder, in the site's layout; return the menu.

    Codes' pages get their messages, and `rows` the questions and terms of each page.
    """
    rules = sorted(
        (path.name for path in (DOCS / "rules").glob("*.md")),
        key=lambda name: (_FAMILIES.index(name[:2]), name),
    )
    pages = {name: path for group in _MENU.values() for name, path in group.items()}
    places = pages | {f"rules/{name}": f"server/docs/rules/{name}" for name in rules}
    on_the_site = {path: name for name, path in places.items()} | {"server/docs/rules": "codes.md"}
    for name, path in places.items():
        text = (ROOT / path).read_text(encoding="utf-8")
        (docs / name).parent.mkdir(parents=True, exist_ok=True)
        said = listed(Path(name).stem, found)
        moved = _moved(text, path, name, on_the_site, repository) + (
            f"\n## Messages\n\n{said}" if said else ""
        )
        whole, rows[name.replace(".md", ".html")] = anchored(moved)
        (docs / name).write_text(whole, encoding="utf-8")
    (docs / "messages.md").write_text(messages_page(found), encoding="utf-8")
    shutil.copytree(ROOT / "vscode-extension" / "media", docs / "media")
    for picture in DOCS.glob("*.png"):
        shutil.copy(picture, docs)
    menu: list[dict[str, Any]] = []
    for reader, group in _MENU.items():
        entries: list[dict[str, Any]] = [{_heading(docs / name): name} for name in group]
        menu += [{reader: entries}] if reader else entries
    reference: list[dict[str, Any]] = menu[-1]["Reference"]
    reference.append({"Messages": "messages.md"})
    reference.append(
        {"Pages of all codes": [{_heading(docs / "rules" / name): f"rules/{name}"} for name in rules]}
    )
    return menu


def _moved(text: str, path: str, name: str, on_the_site: dict[str, str], repository: str) -> str:
    """The text of a file with links for the site, on which it is called `name`."""
    home, new_home = posixpath.dirname(path), posixpath.dirname(name)

    def link(match: re.Match[str]) -> str:
        mark, words, target, anchor = match[1], match[2], match[3], match[4] or ""
        if ":" in target:
            return match[0]
        whole = posixpath.normpath(posixpath.join(home, target))
        place = _PICTURE.sub("", whole) if mark else on_the_site.get(whole)
        if place:
            return f"{mark}[{words}]({posixpath.relpath(place, new_home or '.')}{anchor})"
        return f"[{words}]({repository}/blob/HEAD/{whole}{anchor})" if repository else words

    found, at = [], 0
    for code in _CODE.finditer(text):
        found += [_LINK.sub(link, text[at : code.start()]), code[0]]
        at = code.end()
    moved = _BLOCK.sub(_one_below_the_other, "".join([*found, _LINK.sub(link, text[at:])]))
    return _NUMBERED.sub(lambda item: re.sub("^ {3}", "    ", item[0], flags=re.M), moved)


def _one_below_the_other(block: re.Match[str]) -> str:
    """The code of a block in two blocks, if it has code after a change beside that before it.

    A page of the site is too narrow for both.
    """
    lines = [line.removeprefix("    ") for line in block[0].rstrip().splitlines()]
    first = _BESIDE.fullmatch(lines[0])
    column = first.start("right") if first else 0
    longer = [line for line in lines if len(line) > column]
    if column < _LEAST_COLUMN or not all(line[column - 2 : column].isspace() for line in longer):
        return block[0]
    halves = [[line[part].rstrip() for line in lines] for part in (slice(column), slice(column, None))]
    labels = next((each for each in _LABELS if halves[0][0] == f"# {each[0]}"), None)
    if labels is None:
        # Other columns hold comments, or something else than code.
        if halves[0][0].split()[0] != halves[1][0].split()[0]:
            return block[0]
        labels = _LABELS[0]
        halves = [[f"# {label}", *half] for label, half in zip(labels, halves, strict=True)]
    return "".join("```python\n" + "\n".join(half).rstrip() + "\n```\n\n" for half in halves)


def _heading(page: Path) -> str:
    """The first heading of a page."""
    return page.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")


if __name__ == "__main__":
    os.environ.setdefault("NO_MKDOCS_2_WARNING", "1")
    main()
