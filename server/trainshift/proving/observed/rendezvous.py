"""The rendezvous of the ranks on this machine: Horovod's own server, for Gloo.

    python -c BOOTSTRAP RANKS

prints the variables of each rank as JSON, and serves until its standard input ends.
"""

from __future__ import annotations

import importlib
import json
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def rendezvous(ranks: int) -> Iterator[list[dict[str, str]]]:
    """Serve during the context; yield the variables of each rank."""
    http_server: Any = importlib.import_module("horovod.runner.http.http_server")
    hosts: Any = importlib.import_module("horovod.runner.common.util.hosts")
    gloo_run: Any = importlib.import_module("horovod.runner.gloo_run")

    loopback = next(name for _, name in socket.if_nameindex() if name.startswith("lo"))
    plan = hosts.get_host_assignments(hosts.parse_hosts(f"localhost:{ranks}"), ranks)
    server = http_server.RendezvousServer()
    port = server.start()
    server.init(plan)
    shared = gloo_run.create_run_env_vars("127.0.0.1", [loopback], str(port))
    try:
        yield [{**shared, **gloo_run.create_slot_env_vars(slot)} for slot in plan]
    finally:
        server.stop()


def main() -> None:
    """Serve the number of ranks in the first argument."""
    with rendezvous(int(sys.argv[1])) as environments:
        print(json.dumps(environments), flush=True)
        sys.stdin.read()
