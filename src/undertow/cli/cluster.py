"""The commands `undertow cluster up | status | down`: a Ray of your own that stays until you end it."""

from __future__ import annotations

import shlex
import sys
from typing import Annotated, Any

import typer
from rich.table import Table

from undertow.cli.console import make_console, telling_errors
from undertow.cluster.links import size
from undertow.errors import UndertowError

app = typer.Typer(
    help="Start, show and end a Ray cluster of your own, which ut.ray.connect() finds.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.command()
def up(
    workers: Annotated[int, typer.Option(help="Processors for Ray to give away.", min=1)] = 2,
    memory: Annotated[str, typer.Option(help="Size of Ray's object store.")] = "512M",
    listen: Annotated[
        str, typer.Option(help="An address of this machine: other machines can join, then.", metavar="ADDRESS")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Where other machines join.")] = 6379,
    client_port: Annotated[int, typer.Option(help="Where ray:// connects to; not at loopback.")] = 10001,
) -> None:
    """Start Ray on this machine, with a token and without its dashboard; `undertow cluster down` ends it."""
    with telling_errors():
        from undertow.ray.standing import LOOPBACK
        from undertow.ray.standing import up as start

        standing = start(workers, memory, listen, port, client_port)
        typer.echo(f"Ray is up at {standing.address}, with {workers} processors; its files are in {standing.folder}")
        typer.echo("on this machine:   with ut.ray.connect() as cluster: ...")
        if listen != LOOPBACK:
            typer.echo("another machine joins, with the same Python, Ray and Undertow, and the token in a file there:")
            typer.echo(f"  scp {listen}:{shlex.quote(str(standing.token))} token; chmod 600 token")
            typer.echo(f"  RAY_AUTH_MODE=token RAY_AUTH_TOKEN_PATH=token ray start --address={standing.address}")
            typer.echo(f'from outside:      with ut.ray.connect("{standing.client}") as cluster: ...')
            typer.echo("Ray listens at every address of this machine: a firewall must keep strangers out", err=True)


@app.command()
def status(
    address: Annotated[str, typer.Option(help="Of a cluster; without it, yours on this machine.")] = "auto",
) -> None:
    """Show the machines of a cluster, what they have, and the workers of Undertow on them."""
    with telling_errors():
        from undertow.ray.clusters import seen

        snapshot = seen(address)
        console = make_console()
        console.print(f"Ray at {snapshot.address}")
        console.print(machines_table(snapshot.machines, snapshot.workers))
        console.print(workers_table(snapshot.workers) if snapshot.workers else "no workers of Undertow")


def machines_table(machines: list[Any], workers: list[Any]) -> Table:
    """One row for each machine."""
    table = Table(box=None, pad_edge=False)
    for name in ("machine", "state", "processors", "free", "memory", "object store", "workers"):
        table.add_column(name, justify="left" if name in ("machine", "state") else "right")
    for row in machines:
        count = sum(worker.machine == row.address for worker in workers)
        processors = (f"{row.processors:g}", f"{row.free:g}") if row.is_alive else ("", "")
        sizes = (size(int(row.memory)), size(int(row.store))) if row.is_alive else ("", "")
        table.add_row(row.address, "alive" if row.is_alive else "gone", *processors, *sizes, str(count))
    return table


def workers_table(workers: list[Any]) -> Table:
    """One row for each worker, of whatever program."""
    table = Table(box=None, pad_edge=False)
    for name in ("worker", "machine", "process", "state", "program"):
        table.add_column(name, justify="right" if name in ("worker", "process") else "left")
    for number, row in enumerate(workers):
        table.add_row(str(number), row.machine, str(row.process), row.state, row.program)
    return table


@app.command()
def down() -> None:
    """End the cluster that `undertow cluster up` has started, with all that runs on it."""
    with telling_errors():
        from undertow.ray.standing import down as stop

        try:
            standing = stop()
        except AttributeError as error:  # no pidfd
            raise UndertowError(f"this needs Linux, not {sys.platform}") from error
        typer.echo(f"Ray at {standing.address} is down")
