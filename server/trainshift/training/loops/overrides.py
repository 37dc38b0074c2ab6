"""Overrides of `fit`: methods of a model's class that hand their own arguments on to the model's `fit`."""

from __future__ import annotations

import ast

from trainshift.python.names.script import Script
from trainshift.python.syntax.chunk_syntax import Scope, Site
from trainshift.training.execution.executions import of_super
from trainshift.training.loops.loop_kinds import FITTING


def is_handed_on(script: Script, site: Site) -> bool:
    """Return whether a `fit` only repeats the call of the method around it.

    For example, ``super().fit(x, *args, **kwargs)`` in ``def fit(self, x, *args, **kwargs)``.  What the
    caller passes reaches the model, so that the call of the method is the fit.
    """
    method = site.scope.function()
    if method is None or method.owner() is None or method.name not in FITTING:
        return False
    return _of_itself(site, method) and _repeats(script, site, method)


def hands_on(script: Script, method: Scope) -> bool:
    """Return whether a method `fit` of a class hands its arguments on, and fits in no other way."""
    if method.owner() is None or method.name not in FITTING:
        return False
    fits = [
        site
        for site in script.home(method).sites_named(*FITTING)
        if site.scope.function() is method and isinstance(site.node.func, ast.Attribute)
    ]
    return bool(fits) and all(is_handed_on(script.home(method), site) for site in fits)


def _of_itself(site: Site, method: Scope) -> bool:
    """Return whether a call in a method is of the same object's method, or of its base's."""
    if of_super(site):
        return True
    receiver = site.node.func.value if isinstance(site.node.func, ast.Attribute) else None
    parameters = _parameters(method)
    return isinstance(receiver, ast.Name) and parameters[:1] == [receiver.id]


def _repeats(script: Script, site: Site, method: Scope) -> bool:
    """Return whether a call passes the parameters of its method as they came, in their places."""
    assert isinstance(method.node, ast.FunctionDef | ast.AsyncFunctionDef)
    written, call = method.node.args, site.node
    if written.kwarg is None or written.kwonlyargs or method.node.decorator_list:
        return False
    expected = [ast.Name(name) for name in _parameters(method)[1:]]
    starred = [ast.Starred(ast.Name(written.vararg.arg))] if written.vararg is not None else []
    given = [ast.unparse(each) for each in call.args]
    if given != [ast.unparse(each) for each in (*expected, *starred)]:
        return False
    if [(word.arg, ast.unparse(word.value)) for word in call.keywords] != [(None, written.kwarg.arg)]:
        return False
    return all(len(method.bindings[name]) == 1 for name in (*_parameters(method), *_rest(written))) and all(
        _is_only_handed_on(method, name) for name in _rest(written)
    )


def _parameters(method: Scope) -> list[str]:
    assert isinstance(method.node, ast.FunctionDef | ast.AsyncFunctionDef)
    return [each.arg for each in (*method.node.args.posonlyargs, *method.node.args.args)]


def _rest(written: ast.arguments) -> list[str]:
    return [each.arg for each in (written.vararg, written.kwarg) if each is not None]


def _is_only_handed_on(method: Scope, name: str) -> bool:
    """Return whether a method only passes ``*args`` or ``**kwargs`` on, so that nothing changes it."""
    assert method.node is not None
    passed = [
        each.value
        for each in ast.walk(method.node)
        if isinstance(each, ast.Starred) or (isinstance(each, ast.keyword) and each.arg is None)
    ]
    used = [each for each in ast.walk(method.node) if isinstance(each, ast.Name) and each.id == name]
    return all(any(each is star for star in passed) for each in used)
