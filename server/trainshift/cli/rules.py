"""Rules: the table of the rewriting rules, and the page of one of them."""

from __future__ import annotations

import difflib
import json
import sys
from collections.abc import Sequence
from typing import Protocol

from trainshift import transforms
from trainshift.cli.terminal import console_on, wants_colour

_PAGE_WIDTH = 100


class Rule(Protocol):
    """What a rule says about itself: code ("HV04"), name ("wrap-tape"), one-line title, Markdown page."""

    code: str
    name: str
    title: str
    doc: str


class UnknownRule(Exception):
    """No rule has that code or name; `similar` holds the codes and names that come close."""

    def __init__(self, wanted: str, similar: list[str]) -> None:
        super().__init__(wanted)
        self.similar = similar


def all_rules() -> Sequence[Rule]:
    """Every rule, in the order in which they are documented."""
    rules: Sequence[Rule] = transforms.TRANSFORMS
    return rules


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
    from rich.markdown import Markdown
    from rich.text import Text

    console = console_on(sys.stdout, colour=wants_colour(sys.stdout))
    console.print(Text.assemble((rule.code, "bold cyan"), " ", (rule.name, "bold")))
    console.print()
    console.print(Markdown(text), width=min(console.width, _PAGE_WIDTH))


def _is_shown_to_someone() -> bool:
    return sys.stdout.isatty() or wants_colour(sys.stdout)


def _print_table(rules: Sequence[Rule]) -> None:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("Code", style="bold cyan", no_wrap=True)
    table.add_column("Name", style="bold", no_wrap=True)
    table.add_column("What it does")
    for rule in rules:
        table.add_row(rule.code, rule.name, rule.title)
    console = console_on(sys.stdout, colour=wants_colour(sys.stdout))
    console.print(table)
    console.print("trainshift explain CODE tells more.", style="dim")
