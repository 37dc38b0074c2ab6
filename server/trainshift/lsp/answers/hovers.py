"""Hovers: the meaning of a finding's code, and the purpose of a line that Trainshift has written."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from lsprotocol import types

from trainshift.core.libraries import Libraries, described
from trainshift.core.program import Program as ChunkSyntax
from trainshift.core.rule import FAMILIES
from trainshift.engine.registry import BY_CODE
from trainshift.libraries.entries import Role
from trainshift.libraries.methods import named
from trainshift.lsp.answers.hints import hints
from trainshift.lsp.diagnostics import place_of
from trainshift.lsp.scheduler import State
from trainshift.lsp.text.documents import Part
from trainshift.pages import page_url, section
from trainshift.python.source.source import Span
from trainshift.python.syntax.chunk_syntax import Site, last_name
from trainshift.training.data.divided_data import DividedData

_CODE = re.compile(rf"\b(?:{'|'.join(FAMILIES)})\d\d\b")
_KERAS = ("tensorflow", "keras", "tf_keras")
# The reason for each line that Trainshift writes, by the last part of the Horovod name.
_REASONS = {
    "init": ("HV01", "Horovod starts here: this process learns its rank and how many others there are."),
    "local_rank": ("HV01", "Each process takes the GPU whose number is its local rank."),
    "size": ("HV02", "The number of processes: a step with averaged gradients covers that many batches."),
    "rank": (
        "HV07",
        "The number of this process. What must happen once is done on rank 0 only.",
    ),
    "DistributedGradientTape": (
        "HV04",
        "The gradients of this tape are averaged over all ranks before the optimizer applies them.",
    ),
    "DistributedOptimizer": (
        "HV03",
        "The optimizer averages its gradients over all ranks before it applies them.",
    ),
    "broadcast_variables": ("HV05", "All ranks continue with the values of rank 0."),
    "broadcast_global_variables": ("HV13", "All ranks continue with the values of rank 0."),
    "broadcast_object": ("HV05", "All ranks continue with the values of rank 0."),
    "BroadcastGlobalVariablesCallback": ("HV09", "All ranks start from the weights of rank 0."),
    "MetricAverageCallback": (
        "HV09",
        "The metrics of an epoch are averaged over all ranks, so that all of them stop together.",
    ),
    "BroadcastGlobalVariablesHook": ("HV12", "All ranks start from the weights of rank 0."),
    "allreduce": ("HV05", "The value is averaged over all ranks."),
}


def hover(
    state: State, part: Part, offset: int, docs_url: str = "", *, with_hints: bool = True
) -> types.Hover | None:
    """The hover for the code at an offset of the program."""
    found = (
        *_findings(state, offset),
        *(hints(state, offset, docs_url) if with_hints else ()),
        *_mentioned(part, state, offset, docs_url),
        *_data(state, offset),
        *_keras(state, offset),
        *_libraries(state, offset),
    )
    texts = list(dict.fromkeys(found))
    span = None
    for text, callee in _constructs(state, offset, docs_url):
        span = callee if not texts else None
        texts.append(text)
    if not texts:
        return None
    content = types.MarkupContent(types.MarkupKind.Markdown, "\n\n---\n\n".join(texts))
    return types.Hover(content, _range(part, span) if span is not None else None)


def _range(part: Part, span: Span) -> types.Range:
    first, last = part.places(span)
    return types.Range(types.Position(*first), types.Position(*last))


def _findings(state: State, offset: int) -> Iterator[str]:
    """The codes of the findings at an offset."""
    for each in state.shown:
        span = place_of(state.paper, each)
        if span.start <= offset < max(span.end, span.start + 1):
            yield explanation(each.code, each.docs_url)


def _mentioned(part: Part, state: State, offset: int, docs_url: str) -> Iterator[str]:
    """A code that a comment names at an offset."""
    source = state.paper.source
    start, end = source.line_start(offset), source.line_end(offset)
    comment = source.text.find("#", start, end)
    if comment < 0 or offset < comment:
        return
    for match in _CODE.finditer(source.text, comment, end):
        if match.start() <= offset < match.end() and match[0] in BY_CODE:
            yield explanation(match[0], docs_url)


def explanation(code: str, docs_url: str = "") -> str:
    """The meaning of a code, the reason and the remedy, one line each, with a link to its page; Markdown."""
    found = BY_CODE[code]
    doc, url = found.doc, page_url(code, docs_url)
    lines = [f"**{code}** {found.title}", section(doc, "Why it matters"), section(doc, "What to do")]
    if url:
        lines.append(f"[More about {code}]({url})")
    return "\n\n".join(filter(None, lines))


def _constructs(state: State, offset: int, docs_url: str) -> Iterator[tuple[str, Span]]:
    """Yield the reason for a Horovod call at an offset, for the innermost one."""
    outline = state.outline
    if outline is None or outline.whole.analysis is None or outline.paper.text != state.paper.text:
        return
    facts, start = outline.whole.analysis.program, outline.whole.analysis.start_of(outline.path)
    for site in facts.script.sites_named(*_REASONS):
        callee = facts.script.span(site.node.func, site)
        if not callee.start <= start + offset < callee.end:
            continue
        callee = Span(callee.start - start, callee.end - start)
        names = facts.names.full_names(site.node.func, site.scope, site.statement)
        if any(name.startswith("horovod.") for name in names):
            code, reason = _reason(facts, site)
            url = page_url(code, docs_url)
            rule = f"[{code}]({url})" if url else code
            title = BY_CODE[code].title
            yield f"`{facts.script.text(site.node.func, site)}`: {reason}\n\n{rule}: {title}", callee


def _data(state: State, offset: int) -> Iterator[str]:
    """Yield the data that each rank sees, and the number of steps, for the training loop with its header
    there.
    """
    outline = state.outline
    if outline is None or outline.whole.analysis is None or outline.paper.text != state.paper.text:
        return
    facts, start = outline.whole.analysis.program, outline.whole.analysis.start_of(outline.path)
    for loop in facts.fact(DividedData).loops:
        header = facts.script.statement_span(loop.statement).start
        end = facts.script.span(loop.data, loop.statement).end
        if header <= start + offset < end:
            yield f"On more GPUs, {loop.said(f'`{facts.script.text(loop.data, loop.statement)}`')}."


def _keras(state: State, offset: int) -> Iterator[str]:
    """Yield the target Keras of a conversion, and the reason, for an import of TensorFlow or Keras."""
    outline = state.outline
    if outline is None or outline.whole.analysis is None or outline.paper.text != state.paper.text:
        return
    script = outline.whole.analysis.program.script
    start = outline.whole.analysis.start_of(outline.path)
    for each in script.imports:
        if each.statement is None or each.full_name.partition(".")[0] not in _KERAS:
            continue
        span = script.statement_span(each.statement)
        if outline.whole.written_for and span.start <= start + offset < span.end:
            yield f"The converted file is written {outline.whole.written_for}."


def _libraries(state: State, offset: int) -> Iterator[str]:
    """Yield the entry of a library's member whose call is at an offset, and its consequence."""
    outline = state.outline
    if outline is None or outline.whole.analysis is None or outline.paper.text != state.paper.text:
        return
    facts, start = outline.whole.analysis.program, outline.whole.analysis.start_of(outline.path)
    for site, entry in facts.fact(Libraries).sites(*Role):
        callee = facts.script.span(site.node.func, site)
        if callee.start <= start + offset < callee.end:
            yield f"`{facts.script.text(site.node.func, site)}`: {described(entry)}."


def _reason(facts: ChunkSyntax, site: Site) -> tuple[str, str]:
    """The rule that writes a call of Horovod, and the reason."""
    code, reason = _REASONS[site.name]
    if isinstance(site.parent, ast.Slice) or (
        isinstance(site.parent, ast.Call) and last_name(site.parent.func) == "shard"
    ):
        return "HV15", "Each process has its own share of the data."
    if site.name == "size" and re.search(r"//\s*$", _before(facts, site)):
        return "HV06", "The number of processes: each takes its share of the steps."
    if site.name == "broadcast_variables":
        return code, f"{reason} It happens once, after the first step, when the optimizer has its variables."
    if site.name == "rank" and not _prints(facts, site):
        return "HV08", reason
    return code, reason


def _prints(facts: ChunkSyntax, site: Site) -> bool:
    """Return whether something is printed under the test of the rank."""
    under = (each for each in facts.script.sites if site.statement in each.statement.path())
    return any(each.name in {"print", *named("levels")} for each in under)


def _before(facts: ChunkSyntax, site: Site) -> str:
    start = facts.script.span(site.node, site).start
    return facts.script.source.text[max(start - 10, 0) : start]
