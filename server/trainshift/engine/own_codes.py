"""The checker's own codes (TS..), reported besides the restrictions; their pages are in `pages`."""

from __future__ import annotations

from trainshift.core.rule import Rule

OWN_CODES = (
    SYNTAX_ERROR := Rule("TS00", "syntax-error"),
    UNUSED_SUPPRESSION := Rule("TS01", "unused-suppression"),
    UNKNOWN_SUPPRESSION := Rule("TS02", "unknown-suppression"),
    INTERNAL_ERROR := Rule("TS03", "internal-error"),
    UNSUPPORTED_VERSION := Rule("TS04", "unsupported-version"),
    UNSEARCHED_FILES := Rule("TS05", "unsearched-files"),
    NOT_CONVERTED := Rule("TS06", "not-converted"),
)
