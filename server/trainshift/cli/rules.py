"""Rules: the table of the rewriting rules, and the page of one of them."""

from __future__ import annotations

import difflib
import json
import re
import sys
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from trainshift import transforms
from trainshift.cli.terminal import console_on, wants_colour

if TYPE_CHECKING:
    from rich.console import Console

_PAGE_WIDTH = 100


class Rule(Protocol):
    """What a rule says about itself: code ("HV04"), name ("wrap-tape"), one-line title, Markdown page."""

    @property
    def code(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def doc(self) -> str: ...


class UnknownRule(Exception):
    """No rule has that code or name; `similar` holds the codes and names that come close."""

    def __init__(self, wanted: str, similar: list[str]) -> None:
        super().__init__(wanted)
        self.similar = similar


def all_rules() -> Sequence[Rule]:
    """Every rule, in the order in which they are documented."""
    return transforms.TRANSFORMS


def find_rule(wanted: str) -> Rule:
    """The rule with this code or name, in any case; raises UnknownRule."""
    names = {name: rule for rule in all_rules() for name in (rule.code, rule.name)}
    folded = {name.casefold(): name for name in names}
    if wanted.casefold() in folded:
        return names[folded[wanted.casefold()]]
    close = difflib.get_close_matches(wanted.casefold(), folded, n=3)
    raise UnknownRule(wanted, [folded[name] for name in close])


def print_rules(output_format: str) -> None:
    """Print the table: drawn on a terminal, aligned text in a pipe, or JSON."""
    rules = all_rules()
    if output_format == "json":
        entries = [{"code": rule.code, "name": rule.name, "title": rule.title} for rule in rules]
        print(json.dumps({"version": 1, "rules": entries}, indent=2))
    elif _is_shown_to_someone():
        _print_table(rules)
    else:
        width = max((len(rule.name) for rule in rules), default=0)
        for rule in rules:
            print(f"{rule.code}  {rule.name:<{width}}  {rule.title}")


def print_page(rule: Rule) -> None:
    """Print the rule's page: rendered on a terminal, as it is written in a pipe."""
    text = rule.doc.strip()
    if rule.title.rstrip(".").casefold() not in " ".join(text.split("\n\n")[0].split()).casefold():
        text = f"{rule.title}\n\n{text}"
    if not _is_shown_to_someone():
        print(f"{rule.code} {rule.name}\n\n{text}")
        return
    from rich.text import Text

    console = console_on(sys.stdout, colour=wants_colour(sys.stdout))
    console.print(Text.assemble((rule.code, "bold cyan"), " ", (rule.name, "bold")))
    console.print()
    _print_markdown(console, text)


def _is_shown_to_someone() -> bool:
    return sys.stdout.isatty() or wants_colour(sys.stdout)


def _print_markdown(console: Console, text: str) -> None:
    """Print `text` for reading: paragraphs filled, code without a box and never broken into other lines."""
    from rich.markdown import Markdown
    from rich.theme import Theme

    width = min(console.width, _PAGE_WIDTH)
    with console.use_theme(Theme({"markdown.code": "cyan"})):
        for block in _blocks(text):
            if block.startswith("    "):
                console.print(textwrap.dedent(block) + "\n", style="cyan", soft_wrap=True)
            else:
                console.print(Markdown(block), width=width)
                console.print()


def _blocks(text: str) -> list[str]:
    """The text in stretches that are either indented code or anything else."""
    blocks: list[str] = []
    for paragraph in re.split(r"\n{2,}", text.strip("\n")):
        is_code = paragraph.startswith("    ")
        if blocks and is_code == blocks[-1].startswith("    "):
            blocks[-1] += "\n\n" + paragraph
        else:
            blocks.append(paragraph)
    return blocks


def _print_table(rules: Sequence[Rule]) -> None:
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    table.add_column("Code", style="bold cyan", no_wrap=True)
    table.add_column("Name", style="bold", no_wrap=True)
    table.add_column("What it does")
    for rule in rules:
        table.add_row(rule.code, rule.name, rule.title)
    console = console_on(sys.stdout, colour=wants_colour(sys.stdout))
    console.print(table)
    console.print("\n`trainshift explain CODE` tells more.", style="dim")
