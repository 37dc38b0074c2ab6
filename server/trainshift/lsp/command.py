"""The command that starts the server, with its options and its help."""

from __future__ import annotations

import sys

import click

_CANNOT_START = 2


class _Address(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """A host and a port."""

    name = "HOST:PORT"

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, int]:
        """`127.0.0.1:2087`, or only a port."""
        host, _, port = value.rpartition(":")
        if not port.isdigit() or int(port) > 65535:
            self.fail(f"{value!r} is not HOST:PORT, such as 127.0.0.1:2087", param, ctx)
        return host or "127.0.0.1", int(port)


@click.command(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option(
    "--tcp", metavar="HOST:PORT", type=_Address(), help="Wait for one editor on a port, for debugging."
)
@click.option("--log-file", metavar="FILE", type=click.Path(), help="Write a log to FILE.")
@click.option("-v", "--verbose", is_flag=True, help="Log every message.")
@click.option("--stdio", is_flag=True, help="The default.")
@click.pass_context
def server(
    ctx: click.Context, tcp: tuple[str, int] | None, log_file: str | None, verbose: bool, stdio: bool
) -> None:
    """Run the language server, for an editor.

    It shows findings as you type and offers to make the script distributed. Only the editor writes files.

    The documentation has the settings of Neovim, Emacs, Helix and Sublime Text. The extension for VS Code
    starts the server itself.

    \b
    Examples:
      trainshift server                            what an editor runs
      trainshift server --log-file trainshift.log  keep a log
      trainshift server --tcp 127.0.0.1:2087       wait for an editor on a port
    """
    if stdio and tcp is not None:
        raise click.UsageError("--stdio and --tcp exclude each other.")
    from trainshift.lsp import start
    from trainshift.lsp.transport.logfile import log_to

    try:
        log_to(log_file, verbose)
    except OSError as error:
        click.echo(f"Error: {log_file}: cannot be written: {error.strerror or error}", err=True)
        ctx.exit(_CANNOT_START)
    if tcp is not None:
        ctx.exit(start.serve_tcp(*tcp, lambda text: click.echo(text, err=True)))
    if sys.stdin.isatty():
        click.echo("This is a language server: let your editor start it. See --help.", err=True)
        ctx.exit(_CANNOT_START)
    ctx.exit(start.serve_stdio())
