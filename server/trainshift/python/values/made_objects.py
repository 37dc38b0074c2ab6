"""Made objects: the calls of a program that return objects, with the possible objects of each."""

from __future__ import annotations

from trainshift.python.lazy import cached_property
from trainshift.python.names.script import HasScript
from trainshift.python.names.values import Instance, UserInstance, Values
from trainshift.python.syntax.chunk_syntax import Site

_OBJECTS = (Instance, UserInstance)


class MadeObjects:
    """The objects that the calls of one program return; only few calls return any."""

    def __init__(self, program: HasScript) -> None:
        self._script = program.script

    @cached_property
    def all(self) -> list[tuple[Site, Values]]:
        """Every call that may return an object, with the possible objects."""
        values = self._script.names.site_values
        found = ((site, values(site.node, site)) for site in self._script.sites)
        return [(site, given) for site, given in found if any(isinstance(each, _OBJECTS) for each in given)]
