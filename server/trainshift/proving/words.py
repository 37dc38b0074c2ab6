"""The summary of a whole proof, for a terminal and for a page."""

from __future__ import annotations

from typing import Any

from trainshift.proving.judging.seen import counted

VERDICTS = {
    "holds": "It holds",
    "fails": "It does not hold",
    "not seen": "Nothing is proven",
    "error": "Could not be run",
}
COUNTED = {
    "fails": ("fails", "fail"),
    "holds": ("holds", "hold"),
    "not seen": ("was not seen", "were not seen"),
}
# The unknowns of a proof that holds although such a claim was not checked.
UNSEEN = {
    "data": "which data each rank has",
    "output": "which ranks print, save and log",
    "gpu": "which GPU each rank has",
}


def verdict(result: dict[str, Any]) -> str:
    """The verdict; if a run was stopped early, it covers the steps that were run."""
    is_cut = result["stopped"] and result["verdict"] == "holds"
    return VERDICTS[result["verdict"]] + (f" for {counted(result['steps'], 'step')}" if is_cut else "")


def count(result: dict[str, Any]) -> str:
    """The numbers of claims that hold and that do not; for a proof that holds, first the claims not seen."""
    unseen = [
        UNSEEN[each["id"]]
        for each in result["claims"]
        if result["verdict"] == "holds" and each["verdict"] == "not seen" and each["id"] in UNSEEN
    ]
    found = [each["verdict"] for each in result["claims"]]
    parts = [
        f"{found.count(each)} {many if found.count(each) > 1 else one}"
        for each, (one, many) in COUNTED.items()
        if each in found
    ]
    told = f"Not seen: {', '.join(unseen)}. " if unseen else ""
    return f"{told}Of {len(found)} claims, {', '.join(parts)}." if found else ""


def headline(result: dict[str, Any]) -> str:
    """The result in a few words, such as "9 of 9 claims proven on 2 ranks"."""
    found = [each["verdict"] for each in result["claims"]]
    if not found:
        return VERDICTS["error"].lower()
    held = f"{found.count('holds')} of {len(found)} claims"
    if result["verdict"] == "not seen":
        return f"nothing proven: {held} hold on {result['np']} ranks"
    return f"{held} proven on {result['np']} ranks"


def about(result: dict[str, Any]) -> str:
    """A description of the script and the run."""
    how = "its conversion" if result["converted"] else "the script as it is"
    return f"{how} on {result['np']} ranks, {counted(result['steps'], 'step')}"


def at(place: dict[str, Any]) -> str:
    """A place: the line of the user's file, or of its conversion, and the rank."""
    whose = "" if place["own"] else " of its conversion"
    rank = f" (rank {place['rank']})" if place["rank"] else ""
    return f"{place['path']}:{place['own'] or place['line']}{whose}{rank}"


def notes(result: dict[str, Any]) -> list[str]:
    """Further notes for the user."""
    found = [
        f"Rank {each['rank']} wrote outside the scratch copy: {each['path']}"
        for each in result["written_elsewhere"]
    ]
    found += [f"The script changed a file of yours through a link: {path}" for path in result["changed"]]
    if result["stopped"]:
        found.append(f"Stopped after {counted(result['steps'], 'step')}; --steps 0 runs to the end.")
    return found
