"""The Ray of `undertow cluster up`: it outlives the command that starts it, until `undertow cluster down`.

A note says where it is. It is in a place of this user's, and is believed only if it belongs to this user and nobody
else can read or write it: it names the token, and who connects trusts what answers there.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import stat
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from undertow.errors import UndertowError
from undertow.ray.actor import birth_of
from undertow.ray.extra import the_ray
from undertow.ray.local import HERE, PATIENCE, environment, first_line, folder_for_ray, keep, store_of

LOOPBACK = "127.0.0.1"
PORT = 6379  # where other machines join; Ray's own choice
CLIENT_PORT = 10001  # for ray://
ENDING = 20.0  # seconds


@dataclass(frozen=True, slots=True)
class Standing:
    """A Ray that runs, and the process that keeps it."""

    address: str
    client: str  # "ray://...", if it takes such
    folder: str
    keeper: int
    born: str  # when that process began

    @property
    def environment(self) -> dict[str, str]:
        """What Ray must find there to connect."""
        return environment(Path(self.folder), is_alone=not self.client)

    @property
    def token(self) -> Path:
        """The file with it."""
        return Path(self.folder) / "token"

    def runs(self) -> bool:
        """Whether it still does."""
        try:
            return birth_of(self.keeper) == self.born
        except OSError:
            return False


def note() -> Path:
    """Where it is written down."""
    home = os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()
    return Path(home) / f"undertow-cluster-{os.getuid()}.json"


def find() -> Standing | None:
    """The one that runs here, if one does."""
    try:
        with open(os.open(note(), os.O_RDONLY | os.O_NOFOLLOW), encoding="utf-8") as file:
            there = os.fstat(file.fileno())
            if there.st_uid != os.getuid() or stat.S_IMODE(there.st_mode) & 0o077:
                return None  # somebody else's
            standing = Standing(**json.load(file))
    except (OSError, ValueError, TypeError):
        return None
    return standing if standing.runs() else None


def up(
    workers: int, memory: int | str, listen: str = LOOPBACK, port: int = PORT, client_port: int = CLIENT_PORT
) -> Standing:
    """Start Ray, and return when it is there. Beyond loopback, other machines can join it."""
    store = store_of(memory)
    the_ray()
    standing = find()
    if standing is not None:
        raise UndertowError(
            f"a cluster of yours runs here already, at {standing.address}",
            hint="`undertow cluster down` ends it; `undertow cluster status` shows it",
        )
    folder = folder_for_ray()
    is_alone = listen == LOOPBACK
    settings: dict[str, Any] = {"num_cpus": workers, "object_store_memory": store}
    if not is_alone:
        settings["start"] = {"node-ip-address": listen, "port": port, "ray-client-server-port": client_port}
    path = os.pathsep.join(os.path.abspath(entry) for entry in sys.path)
    command = [sys.executable, str(HERE / "head.py"), str(folder), json.dumps(settings)]
    process = keep("alone", folder, command, {**environment(folder, is_alone), "PYTHONPATH": path})
    assert process.stdout is not None
    try:
        line = first_line(process, PATIENCE)
    except BaseException:
        process.terminate()
        raise
    finally:
        process.stdout.close()
    if "address" not in line:
        process.terminate()
        said = "\n".join(line.get("log", ()))
        raise UndertowError(f"Ray has not started: {line.get('error', 'it takes too long')}\n{said}".rstrip())
    client = "" if is_alone else f"ray://{listen}:{client_port}"
    standing = Standing(str(line["address"]), client, str(folder), process.pid, birth_of(process.pid))
    process.returncode = 0  # it outlives this one
    try:
        write(standing)
    except OSError as error:
        end(standing)
        raise UndertowError(f"cannot write {note()}: {error.strerror}", hint="set XDG_RUNTIME_DIR") from None
    return standing


def write(standing: Standing) -> None:
    """The note: all of it at once, and for this user alone."""
    with tempfile.NamedTemporaryFile("w", dir=note().parent, prefix=".undertow-", delete=False) as file:
        json.dump(asdict(standing), file)
    try:
        os.replace(file.name, note())
    except OSError:
        os.unlink(file.name)
        raise


def down() -> Standing:
    """End it, and wait until nothing is left of it."""
    standing = find()
    if standing is None:
        raise UndertowError("no cluster of yours runs here", hint="`undertow cluster up` starts one")
    end(standing)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(note())
    return standing


def end(standing: Standing) -> None:
    """Its keeper ends all that it has started."""
    with contextlib.suppress(ProcessLookupError):
        descriptor = os.pidfd_open(standing.keeper)
        try:
            if standing.runs():
                signal.pidfd_send_signal(descriptor, signal.SIGTERM)
                if not select.select([descriptor], [], [], ENDING)[0]:
                    raise UndertowError(f"process {standing.keeper}, which keeps it, does not end")
        finally:
            os.close(descriptor)
