"""The command `undertow server`: one task of a cluster of compat.v1, until Ctrl-C."""

from __future__ import annotations

import json
import signal
from typing import Annotated, Any

import typer

from undertow.cli.console import telling_errors
from undertow.cluster.jobs import EXAMPLE
from undertow.cluster.notes import jobs_of
from undertow.cluster.server import Server


def server(
    cluster: Annotated[str, typer.Option(help=f"Addresses by job, as JSON: '{EXAMPLE}'.", metavar="JSON")],
    job: Annotated[str | None, typer.Option(help="Of this server; may be left out if there is only one.")] = None,
    task: Annotated[int | None, typer.Option(help="Its number in the job; likewise.")] = None,
) -> None:
    """Serve as one task of a cluster: start workers for sessions of compat.v1, tf.Session("grpc://HOST:PORT").

    Sessions and servers need the same key, which is made in a file of the user's on first use: to use several
    machines, copy that file to each. UNDERTOW_CLUSTER_KEY names another file.
    """
    with telling_errors():
        jobs = jobs_of(read_table(cluster))
        serving = Server(jobs, jobs.choose(job, task))
        serving.start()
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            typer.echo(f"{serving.task} serves at {serving.target}; Ctrl-C ends it")
            serving.join()
        except KeyboardInterrupt:
            serving.close()
            raise typer.Exit(130) from None


def read_table(text: str) -> dict[str, Any]:
    """A JSON object."""
    try:
        found = json.loads(text)
    except ValueError as error:
        raise typer.BadParameter(f"--cluster is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise typer.BadParameter(f"--cluster is no JSON object, such as {EXAMPLE}")
    return found
