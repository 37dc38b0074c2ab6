"""The JSON schema of settings files, with which editors complete and check them.

`docgen` writes it into the package, in the form that SchemaStore requires: draft 7, with its address there.
"""

from __future__ import annotations

from typing import Any

from trainshift.core.choices import CHOICES, Choice
from trainshift.core.finding import Verdict
from trainshift.engine.settings import CODES, EFFECT, LETTER, SEVERITIES, Settings
from trainshift.libraries.schema import schema as libraries

_ADDRESS = "https://json.schemastore.org/trainshift.json"
_FAMILIES = ("TF", "TL", "TS", "HZ", "PD")
_CODE = {"$ref": "#/definitions/code"}
_LEVEL = {"$ref": "#/definitions/severity"}
_CODES = {"type": "array", "uniqueItems": True, "items": _CODE}
_PATTERNS = {"type": "array", "items": {"type": "string"}}


def settings_schema() -> dict[str, Any]:
    """Return the schema of `trainshift.toml`, and of the table `[tool.trainshift]`."""
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$id": _ADDRESS,
        "title": "Trainshift",
        "description": "Settings of trainshift, which distributes TensorFlow training scripts by Horovod.",
        "type": "object",
        "additionalProperties": False,
        "definitions": {
            "code": {
                "description": "A code, or what several codes begin with.",
                "anyOf": [
                    {"type": "string", "enum": [*_FAMILIES, *CODES]},
                    {"type": "string", "pattern": "^[A-Za-z]{1,2}[0-9]{0,2}$"},
                ],
            },
            "severity": {"type": "string", "enum": list(SEVERITIES)},
        },
        "properties": {
            **_own(),
            **{choice.key: _of(choice) for choice in CHOICES.values()},
            "libraries": {"description": "Entries for your own libraries.", **_plain(libraries())},
        },
    }


def _own() -> dict[str, Any]:
    by_verdict = {
        "type": "object",
        "additionalProperties": False,
        "properties": {verdict.value: _LEVEL for verdict in Verdict},
    }
    return {
        "select": {
            **_CODES,
            "description": "The codes that are checked.",
            "default": list(Settings().select),
        },
        "ignore": {**_CODES, "description": "The codes that are not checked.", "default": []},
        "exclude": {
            **_PATTERNS,
            "description": "What is left out in directories, as .gitignore has it.",
            "default": [],
        },
        "per-file-ignores": {
            "description": "The codes that are not checked in files, by patterns of .gitignore.",
            "type": "object",
            "additionalProperties": _CODES,
        },
        "restrictions": {
            "description": "effect: a violated restriction is a warning if the conversion refuses, withholds "
            "or doubts something because of it. letter: always.",
            "type": "string",
            "enum": [EFFECT, LETTER],
            "default": EFFECT,
        },
        "severity": {
            "description": "How loud findings are, by code or what codes begin with.",
            "type": "object",
            "propertyNames": _CODE,
            "additionalProperties": {"anyOf": [_LEVEL, by_verdict]},
        },
        "docs-url": {
            "description": "The site that `make site` builds: findings link to it.",
            "type": "string",
            "pattern": r"^(https?://\S+)?$",
            "default": "",
        },
    }


def _of(choice: Choice) -> dict[str, Any]:
    """The schema of one choice of a conversion."""
    says = [choice.says, *(f"{value}: {told}" for value, told in choice.values.items())]
    described = {"description": " ".join(says).replace("`", ""), "default": choice.default}
    if choice.is_switch:
        return {"type": "boolean", **described}
    if choice.values:
        return {"type": "string", "enum": list(choice.values), **described}
    return (
        {"type": "string", **described}
        if choice.is_version
        else {"type": "integer", "minimum": choice.least, **described}
    )


def _plain(schema: Any) -> Any:
    """A schema without the keys that only VS Code reads."""
    if isinstance(schema, dict):
        return {key: _plain(value) for key, value in schema.items() if key != "enumDescriptions"}
    return [_plain(each) for each in schema] if isinstance(schema, list) else schema
