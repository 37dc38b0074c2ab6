"""The search of the site: an entry for each message and question, and what queries ask for."""

from __future__ import annotations

import html
import json
import re
from dataclasses import dataclass
from pathlib import Path

from trainshift.dev.messages import anchor, is_code

# Words end at anything that is not part of a name. Without a pipeline, `else` and `while` are words.
SETTINGS = {
    "separator": r"[^\w]+",
    "pipeline": [],
    "fields": {"title": {"boost": 3.0}, "text": {"boost": 1.0}, "tags": {"boost": 1.0}},
}
# The worker does not weigh by length, and counts the beginning of a page up to five times, a section twice.
# The specification and pages for those who work on Trainshift have every word, and come last.
_BOOSTS = {"spec.html": 0.4, "architecture.html": 0.4, "conformance.html": 0.4, "changes.html": 0.3}
_OF_MESSAGES, _OF_BEGINNINGS = 1.5, 0.5
_SHORT, _BY_LENGTH = 30, 0.3
SCRIPT = "search.js"
# The worker of Material's search takes each word for the beginning of one, so that `of` finds `offset`. In a
# message, only the last word may be unfinished; in a few words, each may be, and small ones do not count.
QUERY = """\
const small = new Set(
  [
    "a an and are as at be by can do does for from have how i if in is it me my of on or",
    "so that the this to was we what when where which why will with you",
  ].flatMap((words) => words.split(" ")),
);
const asks = 2;
const few = 4;

function asked(text) {
  const words = [...new Set(text.toLowerCase().match(/[\\p{L}\\p{N}_]+/gu) ?? [])];
  if (words.length >= few) return [...words.map((word) => `${word}^1`), words.at(-1)].join(" ");
  const telling = words.filter((word) => !small.has(word));
  return (telling.length ? telling : words).join(" ");
}

const post = Worker.prototype.postMessage;
Worker.prototype.postMessage = function (message, ...rest) {
  const query = message?.type === asks && typeof message.data === "string";
  return post.call(this, query ? { ...message, data: asked(message.data) } : message, ...rest);
};
"""


# Tables whose rows are looked for one by one, such as questions with their answers.
_TABLE = re.compile(r"^\| (?:question \| answer|term \| meaning) \|\n(?:\|.*\n)+", re.M)
_ROW = re.compile(r"^\| (?!---|question |term )([^|]+) \| (.*) \|$", re.M)


@dataclass(frozen=True)
class Row:
    """A row of a table: its anchor, its first cell and the others."""

    anchor: str
    title: str
    text: str


def anchored(text: str) -> tuple[str, list[Row]]:
    """Return a page with an anchor for each question and term, and these."""
    rows: list[Row] = []

    def row(match: re.Match[str]) -> str:
        rows.append(Row(f"row-{len(rows)}", _plain(match[1]), _plain(match[2])))
        return f'| <span id="{rows[-1].anchor}"></span>{match[1]} | {match[2]} |'

    return _TABLE.sub(lambda table: _ROW.sub(row, table[0]), text), rows


def _plain(cell: str) -> str:
    """The words of a cell."""
    return html.escape(re.sub(r"\[([^]]*)\]\([^)]*\)|[`*]", r"\1", cell), quote=False)


def index_parts(site: Path, found: dict[str, list[str]], rows: dict[str, list[Row]]) -> None:
    """Give each message, question and term an entry in the index, and each page a weight."""
    place = site / "search" / "search_index.json"
    index = json.loads(place.read_text(encoding="utf-8"))
    titles = {entry["location"]: entry["title"] for entry in index["docs"]}
    for entry in index["docs"]:
        page, _, section = entry["location"].partition("#")
        if section == "messages" or (section and page == "messages.html"):
            entry["text"] = ""
        words = len(re.findall(r"\w+", re.sub("<[^>]+>", " ", entry["text"])))
        entry["boost"] = _BOOSTS.get(page, 1.0) * (_SHORT / max(_SHORT, words)) ** _BY_LENGTH
        entry["boost"] *= 1.0 if section else _OF_BEGINNINGS
    for topic, listed in found.items():
        page = f"rules/{topic}.html" if is_code(topic) else "messages.html"
        index["docs"] += [
            {
                "location": f"{page}#{anchor(topic, at)}",
                "title": titles[page] if is_code(topic) else topic,
                "text": html.escape(message.replace("`", ""), quote=False),
                "boost": _OF_MESSAGES,
            }
            for at, message in enumerate(listed)
        ]
    index["docs"] += [
        {"location": f"{page}#{row.anchor}", "title": row.title, "text": row.text}
        for page, listed in rows.items()
        for row in listed
    ]
    place.write_text(json.dumps(index), encoding="utf-8")
