"""Codes: everything with a code, in the order in which clients list them."""

from __future__ import annotations

from trainshift.engine.derivation_rules import DERIVATION_RULES, DerivationRule
from trainshift.engine.own_codes import OWN_CODES, OwnCode
from trainshift.pages import page_url
from trainshift.restrictions import RESTRICTIONS
from trainshift.restrictions.restriction import Restriction
from trainshift.static_graphs.codes import STATIC_CODES, StaticCode
from trainshift.transforms import TRANSFORMS
from trainshift.transforms.rule import Transform

_ALL: tuple[Restriction | OwnCode | Transform | DerivationRule | StaticCode, ...] = (
    *RESTRICTIONS,
    *STATIC_CODES,
    *OWN_CODES,
    *TRANSFORMS,
    *DERIVATION_RULES,
)

CODES = {each.code: each for each in _ALL}
"""What each code is of."""


def listed() -> list[dict[str, str]]:
    """All codes, in the format for the client."""
    return [
        {"code": each.code, "name": each.name, "title": each.title, "url": page_url(each.code)}
        for each in _ALL
    ]
