"""Search: the codes and pages that match words, best first (`trainshift explain learning rate`)."""

from __future__ import annotations

import math
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from trainshift.cli.rules import sections
from trainshift.cli.terminal import Printer, wants_colour
from trainshift.pages import guides, page

MOST_HITS = 10
# A hit contains at least this share of the words, weighted by their rarity.
_LEAST_SHARE = 0.5
_IN_NAME, _IN_TITLE = 8.0, 5.0
_SECTION = re.compile(r"^#{1,2} (.*)\n((?:(?!#{1,2} ).*\n?)*)", re.M)
_STOP_WORDS = frozenset(
    ["a", "an", "and", "are", "by", "do", "does", "for", "how", "i", "in", "is", "it", "my", "of", "on", "or",
    "the", "to", "what", "when", "which", "why", "with"]
)  # fmt: skip
# Words of a query, and their equivalents on the pages.
_SYNONYMS = {
    "checkpoint": "save", "crash": "fail", "deadlock": "hang", "desync": "apart", "diverg": "apart",
    "freez": "hang", "log": "print", "lr": "rate", "rng": "seed", "shard": "share", "stuck": "hang",
    "worker": "rank",
}  # fmt: skip
# Words on every page.
_BOILERPLATE = re.compile(r"^## How to silence it\n.*", re.M | re.S)
_FENCED = re.compile(r"^```[^\n]*\n.*?^```$", re.M | re.S)


class Document(Struct, frozen=True):
    """A code or a section of a guide: its label, title and text, and the guide with the section's anchor."""

    label: str
    title: str
    text: str
    guide: str = ""


def find(query: str) -> list[Document]:
    """Return the codes and the sections of guides that match the words of a query, best first."""
    wanted = list(dict.fromkeys(word for word in _words(query)))
    found = [(document, *(_counted(document))) for document in _documents()]
    weights = {
        word: math.log(1 + len(found) / (1 + sum(word in body for _, _, _, body in found))) for word in wanted
    }
    total = sum(weights.values())
    hits = []
    for document, name, title, body in found:
        matched = [word for word in wanted if word in body]
        share = sum(weights[word] for word in matched) / total if total else 0
        if share >= _LEAST_SHARE:
            score = sum(
                weights[word]
                * (1 + math.log(body[word]) + _IN_NAME * (word in name) + _IN_TITLE * (word in title))
                for word in matched
            )
            hits.append((share**3 * score, document))
    return [document for _, document in sorted(hits, key=lambda hit: -hit[0])[:MOST_HITS]]


def print_hits(hits: Sequence[Document], docs_url: str = "") -> None:
    """Print the hits, with the addresses of guides on the site at `docs_url`, if there is one."""
    printer = Printer(sys.stdout, wants_colour(sys.stdout))
    codes = [hit for hit in hits if not hit.guide]
    width = max((len(hit.label) for hit in codes), default=0)
    for hit in codes:
        printer.line((f"{hit.label:<{width}}", "bold cyan"), (f"  {hit.title}", ""))
    if codes:
        printer.line(("`trainshift explain CODE` says more.", "dim"))
    sections_ = [hit for hit in hits if hit.guide]
    if sections_:
        printer.line()
    for hit in sections_:
        printer.line((hit.label, "bold cyan"), (f"  {_address(hit, docs_url)}", ""))


def _address(hit: Document, docs_url: str) -> str:
    name, _, anchor = hit.guide.partition("#")
    path = guides()[name]
    return f"{docs_url.rstrip('/')}/{Path(name).stem}.html#{anchor}" if docs_url else str(path)


def _documents() -> Iterator[Document]:
    for rules in sections().values():
        for rule in rules:
            text = _BOILERPLATE.sub("", page(rule.code) or rule.doc)
            yield Document(f"{rule.code} {rule.name}", rule.title, text)
    for name, path in guides().items():
        text = _FENCED.sub(lambda code: code[0].replace("\n#", "\n"), path.read_text(encoding="utf-8"))
        whole = text.partition("\n")[0].removeprefix("# ")
        for heading, body in _SECTION.findall(text):
            anchor = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
            label = whole if heading == whole else f"{whole}: {heading}"
            yield Document(label, heading, body, f"{name}#{anchor}")


def _counted(document: Document) -> tuple[set[str], set[str], Counter[str]]:
    """Count the words in a document's label, in its title, and in all of it."""
    name, title = set(_words(document.label)), set(_words(document.title))
    return name, title, Counter([*_words(document.text), *name, *title])


def _words(text: str) -> Iterator[str]:
    """Yield the words of a text, stemmed, without stop words."""
    for word in re.findall(r"[a-z][a-z0-9]+|[a-z]{2}\d{2}", text.lower()):
        if word not in _STOP_WORDS:
            stem = re.sub(r"(?<=[a-z]{3})(?:ing|ed|es|s|e)$", "", word)
            yield _SYNONYMS.get(stem, stem)
