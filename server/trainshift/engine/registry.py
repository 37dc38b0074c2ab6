"""The registry: everything with a code, of all families, in the order in which clients list it."""

from __future__ import annotations

from trainshift.core.rule import Rule
from trainshift.engine.derivation_rules import DERIVATION_RULES
from trainshift.engine.own_codes import OWN_CODES
from trainshift.restrictions import RESTRICTIONS
from trainshift.static_graphs.codes import STATIC_CODES
from trainshift.transforms import TRANSFORMS

RULES: tuple[Rule, ...] = (
    *RESTRICTIONS,
    *STATIC_CODES,
    *OWN_CODES,
    *TRANSFORMS,
    *DERIVATION_RULES,
)
BY_CODE = {rule.code: rule for rule in RULES}
