"""The JSON schema of the user's own entries, with which editors complete and check them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from trainshift.libraries.entries import (
    COMMON,
    FLAGS,
    KEYS,
    LISTS,
    NEEDED,
    NOT_OF_PEOPLE,
    PLACED,
    WORDS,
    Role,
)

_ROLES = {
    Role.MODEL: "A Keras model whose own tape applies the gradients in `fit`.",
    Role.OPTIMIZER: "A class of optimizers.",
    Role.OPTIMIZER_FACTORY: "A function that makes an optimizer.",
    Role.SCHEDULE: "A class of learning rate schedules.",
    Role.CALLBACK: "A callback of `fit`.",
    Role.WRITER: "A call that writes a file.",
    Role.WRITER_OBJECT: "A call that makes an object that writes.",
    Role.MOVES: "A call that moves or deletes files.",
    Role.OUTSIDE: "A call that acts beyond this machine.",
    Role.TRACKER: "An experiment's log.",
    Role.TRAINS: "A call that trains in a way that is not converted.",
    Role.AGENT: "A class whose `train` steps the optimizers that it is given.",
    Role.DATASET: "A call that makes data that are not divided.",
    Role.COUNTS: "A call that counts the steps of training.",
    Role.NOTED: "A call that stays as it is, with a remark.",
    Role.PRINTS: "A call that shows text or progress.",
}
_KEYS = {
    "argument": "The argument that keeps other ranks quiet.",
    "averages": "`tape`: it averages only through a wrapped tape, and not in `fit`.",
    "base": "The TensorFlow class that it inherits from.",
    "before": "The method that keeps other ranks quiet; it is called before the class.",
    "begins": "It acts only if its text begins like this.",
    "blind": "It reads no metrics.",
    "command": "It runs the command line that it is given.",
    "compiled": "Its library compiles it.",
    "context": "It is used in a `with` statement.",
    "decides": "It ends the training or changes it.",
    "draws": "It draws parameters for the training.",
    "elsewhere": "The value on other ranks, as Python code.",
    "folder": "It makes a folder that may already exist.",
    "gives": "The class of its result, named relative to the package.",
    "mode": "The argument of the mode, and its default: `mode=r`.",
    "path": "The argument that names the file, or its position.",
    "ranks": "`root`: on rank 0 alone; `every`: on all ranks.",
    "rate": "The argument of the learning rate.",
    "rates": "The arguments that are learning rates.",
    "reason": "Why it is not converted, in words for the report.",
    "remote": "It acts if its last argument is on another machine.",
    "returns": "The result: an optimizer, or a pair with a schedule.",
    "root": "The value on rank 0, as Python code.",
    "says": "A sentence for the report.",
    "seed": "The argument that fixes the order.",
    "shows": "It only shows something.",
    "signature": "The parameters, as its `def` lists them.",
    "starts": "It starts a program in the background.",
    "step": "Who applies gradients in `fit`.",
    "steps": "The arguments that count steps, which are divided.",
    "unless": "The argument that lets all ranks call it.",
}


def schema() -> dict[str, Any]:
    """Return the schema of the table `libraries`: modules, their members, and an entry for each."""
    roles = [role for role in Role if role not in NOT_OF_PEOPLE]
    keys = sorted({key for role in roles for key in KEYS[role] | COMMON} - {"role"})
    entry = {
        "type": "object",
        "required": ["role"],
        "additionalProperties": False,
        "properties": {
            "role": {
                "enum": [role.value for role in roles],
                "enumDescriptions": [_ROLES[role] for role in roles],
            },
            **{key: {**_type(key), "description": _KEYS[key]} for key in keys},
        },
        "allOf": list(_conditions(roles)),
    }
    members = {"type": "object", "additionalProperties": entry}
    return {"type": "object", "additionalProperties": members}


def _type(key: str) -> dict[str, Any]:
    if key in LISTS:
        return {"type": "array", "items": {"type": "string"}}
    if key in WORDS:
        return {"enum": sorted(WORDS[key])}
    if key == PLACED:
        return {"anyOf": [{"type": "string"}, {"type": "integer", "minimum": 0}]}
    return {"type": "boolean"} if key in FLAGS else {"type": "string"}


def _conditions(roles: list[Role]) -> Iterator[dict[str, Any]]:
    """Yield the keys that an entry of each role may or must have."""
    for role in roles:
        allowed: dict[str, Any] = {"propertyNames": {"enum": sorted(COMMON | KEYS[role])}}
        if needed := NEEDED.get(role):
            # Ajv's strict mode, which SchemaStore uses, wants a required key among the properties.
            allowed |= {"required": sorted(needed), "properties": dict.fromkeys(sorted(needed), True)}
        if role is Role.MODEL:
            allowed["properties"] = {**allowed.get("properties", {}), "step": {"const": "tape"}}
        yield {"if": {"properties": {"role": {"const": role.value}}}, "then": allowed}
