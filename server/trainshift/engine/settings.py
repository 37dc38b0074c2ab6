"""Settings: the codes to check in each file, and their severities.  Pure: a table in, settings out."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from enum import IntEnum
from typing import TypeAlias

from trainshift.core.choices import CHOICES, Choices, Value
from trainshift.core.finding import Effect, Verdict
from trainshift.engine.own_codes import (
    NOT_CONVERTED,
    SYNTAX_ERROR,
    UNKNOWN_SUPPRESSION,
    UNSEARCHED_FILES,
    UNSUPPORTED_VERSION,
    UNUSED_SUPPRESSION,
)
from trainshift.libraries import api, entries
from trainshift.libraries.entries import Table
from trainshift.python.lazy import cached_property
from trainshift.restrictions import HAZARDS, RESTRICTIONS
from trainshift.static_graphs.codes import STATIC_CODES

RESTRICTION_CODES = tuple(rule.code for rule in RESTRICTIONS)
HAZARD_CODES = tuple(rule.code for rule in HAZARDS)
GRAPH_CODES = tuple(each.code for each in STATIC_CODES)
"""The codes of Paddle's static graphs."""
CHECKED_CODES = (*RESTRICTION_CODES, *GRAPH_CODES)
OF_PROJECT = (UNSUPPORTED_VERSION.code, UNSEARCHED_FILES.code)
"""The codes of findings that depend on the project around a file."""
OF_PROGRAM = (*OF_PROJECT, NOT_CONVERTED.code)
"""The codes of findings that depend on the project or the program around a file."""
SUPPRESSIBLE_CODES = (*CHECKED_CODES, *OF_PROGRAM)
"""Every code that a comment can silence."""
_OWN = (
    SYNTAX_ERROR,
    UNUSED_SUPPRESSION,
    UNKNOWN_SUPPRESSION,
    UNSUPPORTED_VERSION,
    UNSEARCHED_FILES,
    NOT_CONVERTED,
)
_HAZARD_FAMILY = ("HZ",)
_WEIGHED = frozenset(RESTRICTION_CODES).difference(HAZARD_CODES)
CODES = (*CHECKED_CODES, *(each.code for each in _OWN))
"""Every code that can be selected, ignored and given a severity."""


# Codes are short: a code that differs in another letter or digit is not a likely typo.
_NEAR = 0.75


class Severity(IntEnum):
    """The severity of a finding; OFF means that it is not reported."""

    OFF = 0
    HINT = 1
    INFORMATION = 2
    WARNING = 3
    ERROR = 4

    @property
    def label(self) -> str:
        """The severity, as spelled in settings and reports."""
        return self.name.lower()


SEVERITIES = {severity.label: severity for severity in Severity}
SeverityByVerdict: TypeAlias = Mapping[Verdict, Severity]
_BY_LETTER: SeverityByVerdict = {
    Verdict.VIOLATED: Severity.WARNING,
    Verdict.HARMLESS: Severity.INFORMATION,
    Verdict.UNKNOWN: Severity.INFORMATION,
}
_WITHOUT_EFFECT: SeverityByVerdict = {
    Verdict.VIOLATED: Severity.INFORMATION,
    Verdict.HARMLESS: Severity.HINT,
    Verdict.UNKNOWN: Severity.HINT,
}
_WASTE: SeverityByVerdict = dict.fromkeys(Verdict, Severity.INFORMATION)
LETTER, EFFECT = "letter", "effect"
"""The basis of a severity that no setting names: the letter of a restriction, or its effect."""
_DEFAULTS: Mapping[str, SeverityByVerdict] = {
    SYNTAX_ERROR.code: dict.fromkeys(Verdict, Severity.ERROR),
    # Findings about the project, which the script cannot fix.
    **{code: dict.fromkeys(Verdict, Severity.INFORMATION) for code in OF_PROJECT},
    # Hazards have their severity by themselves: no conversion is needed.
    **{rule.code: _BY_LETTER if rule.is_serious else _WASTE for rule in HAZARDS},
}


class SettingsError(Exception):
    """A setting that cannot be used: its file and line, its key, and the problem."""

    def __init__(self, where: str, key: str, problem: str) -> None:
        super().__init__(f"{where}: `{key}` {problem}" if key else f"{where}: {problem}")


@dataclass(frozen=True)
class Settings:
    """The settings of a check.

    Codes may be prefixes: "TF" stands for all codes that begin with it.  `severity` maps codes and prefixes
    to a severity by verdict; the longest match decides.  `per_file_ignores` pairs a pattern of files with
    codes; `exclude` are patterns of files that a walk leaves out.  Patterns are those of .gitignore.
    `docs_url` is the address of the documentation's site, if any.  `restrictions` sets the default criterion:
    the LETTER of a restriction, or the EFFECT of a finding on the conversion.  `chosen` are the user's
    conversion options, by name.  `libraries` are the entries of the user's own libraries, by module.  `given`
    names the fields that the user has set.
    """

    select: tuple[str, ...] = ("T", "PD", "HZ")
    ignore: tuple[str, ...] = ()
    severity: Mapping[str, SeverityByVerdict] = field(default_factory=dict)
    per_file_ignores: tuple[tuple[str, tuple[str, ...]], ...] = ()
    exclude: tuple[str, ...] = ()
    docs_url: str = ""
    restrictions: str = EFFECT
    chosen: Mapping[str, Value] = field(default_factory=dict)
    libraries: Mapping[str, Table] = field(default_factory=dict)
    given: frozenset[str] = field(default=frozenset(), compare=False)

    @cached_property
    def _severities(self) -> dict[tuple[str, Verdict, Effect], Severity]:
        """The severities computed so far, because every edit needs those of all codes."""
        return {}

    def severity_of(self, code: str, verdict: Verdict, effect: Effect = Effect.NONE) -> Severity:
        """The severity of a finding; OFF also for a code that is not selected, or is ignored.

        An unreadable file is reported regardless of the selection, because it has no other findings.
        """
        kind = code, verdict, effect
        known = self._severities.get(kind)
        if known is None:
            known = self._severities[kind] = self._severity_of(*kind)
        return known

    def _severity_of(self, code: str, verdict: Verdict, effect: Effect) -> Severity:
        is_selected = code.startswith(self.select) or code == SYNTAX_ERROR.code
        if not is_selected or code.startswith(self.ignore):
            return Severity.OFF
        for length in range(len(code), 0, -1):
            chosen = self.severity.get(code[:length])
            if chosen is not None and verdict in chosen:
                return chosen[verdict]
        if code in _WEIGHED and self.restrictions != LETTER:
            is_weighty = effect and verdict is not Verdict.HARMLESS
            return Severity.WARNING if is_weighty else _WITHOUT_EFFECT[verdict]
        return _DEFAULTS.get(code, _BY_LETTER)[verdict]

    @property
    def asks_conversion(self) -> bool:
        """Return whether a severity depends on the effect on the conversion."""
        return self.restrictions != LETTER

    @cached_property
    def without_hazards(self) -> Settings:
        """These settings for a part of a program, without hazards, which need the whole."""
        return replace(self, ignore=(*self.ignore, *_HAZARD_FAMILY))

    def over(self, base: Settings) -> Settings:
        """These settings, with those of `base` for the ones not set."""
        own = {name: getattr(self, name) for name in self.given}
        return replace(base, **own | {"chosen": {**base.chosen, **self.chosen}})

    @cached_property
    def checked_codes(self) -> frozenset[str]:
        """The codes of restrictions and of static graphs that are on."""
        return frozenset(code for code in CHECKED_CODES if self.is_on(code))

    @property
    def choices(self) -> Choices:
        """The options of conversions, and the project's own libraries."""
        return Choices(**self.chosen, libraries=self.libraries)  # type: ignore[arg-type]

    def is_on(self, code: str) -> bool:
        """Return whether any finding of the code would be reported."""
        return any(self.severity_of(code, verdict) for verdict in Verdict)

    def overridden(self, select: Iterable[str] | None, ignore: Iterable[str]) -> Settings:
        """These settings under a command line: `select` replaces both selections, `ignore` adds to them."""
        base = self if select is None else replace(self, select=tuple(select), ignore=())
        return replace(base, ignore=(*base.ignore, *ignore))

    def for_file(self, matches: Callable[[str], bool]) -> Settings:
        """The settings of one file; `matches` returns whether a pattern matches it."""
        extra = [code for pattern, codes in self.per_file_ignores if matches(pattern) for code in codes]
        return replace(self, ignore=(*self.ignore, *extra)) if extra else self


def read_settings(table: Mapping[str, object], where: str) -> Settings:
    """Read a TOML table; `where` is its place in a SettingsError."""
    readers: dict[str, Callable[[str, str, object], object]] = {
        "select": _codes,
        "ignore": _codes,
        "severity": _severities,
        "per-file-ignores": _per_file_ignores,
        "exclude": _strings,
        "docs-url": _web_address,
        "restrictions": _measure,
        "libraries": _libraries,
    }
    values: dict[str, object] = {}
    chosen: dict[str, object] = {}
    for key, value in table.items():
        if key in CHOICES:
            chosen[CHOICES[key].name] = _chosen(where, key, value)
        elif key in readers:
            values[key.replace("-", "_")] = readers[key](where, key, value)
        else:
            raise SettingsError(where, key, f"is not a setting.{_suggestion(key, [*readers, *CHOICES])}")
    return Settings(**values, chosen=chosen, given=frozenset(values))  # type: ignore[arg-type]


def read_codes(where: str, key: str, words: Iterable[str]) -> tuple[str, ...]:
    """Codes or prefixes of codes, in upper case; raises SettingsError for one that matches none."""
    return tuple(_code(where, key, word) for word in words)


def _code(where: str, key: str, word: str) -> str:
    code = word.strip().upper()
    if not code or not any(known.startswith(code) for known in CODES):
        raise SettingsError(where, key, f"names {word!r}, which is not a code.{_near_code(code)}")
    return code


def _codes(where: str, key: str, value: object) -> tuple[str, ...]:
    return read_codes(where, key, _strings(where, key, value))


def _strings(where: str, key: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise SettingsError(where, key, f"must be a list of strings, not {_kind(value)}.")
    return tuple(value)


def _web_address(where: str, key: str, value: object) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"(https?://\S+)?", value):
        raise SettingsError(
            where, key, 'must be a web address, such as "https://docs.example.org/trainshift".'
        )
    return value


def _measure(where: str, key: str, value: object) -> str:
    if value not in (LETTER, EFFECT):
        raise SettingsError(where, key, f'must be "{EFFECT}" or "{LETTER}", not {value!r}.')
    return str(value)


def _libraries(where: str, key: str, value: object) -> dict[str, Table]:
    """Read the entries of the user's own libraries: a table for each module, with one for each member."""
    found = {}
    for module, members in _table(where, key, value).items():
        place = f'{key}."{module}"'
        if not all(part.isidentifier() for part in module.split(".")):
            raise SettingsError(where, place, 'must be the name of a module, such as "acme.tracking".')
        for name, said in _table(where, place, members).items():
            if problem := entries.problem_of_people(said):
                raise SettingsError(where, f'{place}."{name}"', problem)
        found[module] = entries.read(module, _table(where, place, members))
        for name, entry in found[module].items():
            if entry.base and not api.is_class(entry.base):
                problem = f'has "{entry.base}" as its base, which is not a known class of TensorFlow.'
                raise SettingsError(where, f'{place}."{name}"', problem)
    return found


def _chosen(where: str, key: str, value: object) -> object:
    problem = CHOICES[key].problem(value)
    if problem:
        raise SettingsError(where, key, problem)
    return value


def _severities(where: str, key: str, value: object) -> dict[str, SeverityByVerdict]:
    table = _table(where, key, value)
    return {
        _code(where, key, code): _by_verdict(where, f"{key}.{code}", item) for code, item in table.items()
    }


def _by_verdict(where: str, key: str, value: object) -> SeverityByVerdict:
    """Read a severity: one for violated findings, which the others never exceed, or one for each verdict."""
    if isinstance(value, dict):
        verdicts = {verdict.value: verdict for verdict in Verdict}
        for name in value:
            if name not in verdicts:
                raise SettingsError(where, f"{key}.{name}", f"is not a verdict.{_suggestion(name, verdicts)}")
        return {verdicts[name]: _severity(where, f"{key}.{name}", item) for name, item in value.items()}
    chosen = _severity(where, key, value)
    return {
        verdict: chosen if verdict is Verdict.VIOLATED else min(chosen, usual)
        for verdict, usual in _BY_LETTER.items()
    }


def _severity(where: str, key: str, value: object) -> Severity:
    if not isinstance(value, str):
        raise SettingsError(where, key, f"must be a severity ({', '.join(SEVERITIES)}), not {_kind(value)}.")
    if value not in SEVERITIES:
        raise SettingsError(
            where, key, f"is {value!r}, which is not a severity.{_suggestion(value, SEVERITIES)}"
        )
    return SEVERITIES[value]


def _per_file_ignores(where: str, key: str, value: object) -> tuple[tuple[str, tuple[str, ...]], ...]:
    table = _table(where, key, value)
    return tuple((pattern, _codes(where, f'{key}."{pattern}"', codes)) for pattern, codes in table.items())


def _table(where: str, key: str, value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        raise SettingsError(where, key, f"must be a table, not {_kind(value)}.")
    return value


def _kind(value: object) -> str:
    kinds = {
        bool: "a Boolean",
        int: "a number",
        float: "a number",
        str: "a string",
        list: "a list",
        dict: "a table",
    }
    if isinstance(value, list):
        wrong = next((item for item in value if not isinstance(item, str)), None)
        return f"a list with {_kind(wrong)} in it" if wrong is not None else "a list"
    return kinds.get(type(value), "a date or time")


def _near_code(word: str) -> str:
    close = get_close_matches(word, CODES, n=2, cutoff=_NEAR)
    return f" Did you mean {' or '.join(close)}?" if close else " `trainshift rules` lists all codes."


def _suggestion(word: str, known: Collection[str]) -> str:
    close = get_close_matches(word, known, n=2)
    return f" Did you mean {' or '.join(close)}?" if close else f" There are {', '.join(known)}."
