"""Where a Ray cluster is: decided here, and tried with a deadline before Ray gets to know of it.

Left alone, Ray takes any process of this machine that looks like its own, such as one that `ut.ray.cluster()` has
started for another program and that lets nobody else in; and it dials an address where nobody is for ever.
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from undertow.errors import Timeout, UndertowError, brief
from undertow.ray.knock import CLIENT, TOKEN
from undertow.ray.local import AT_LOOPBACK, HERE, PREFIX
from undertow.ray.standing import find

DIAL = 10.0  # seconds at most to connect to an address, and as many for Ray to answer there
KNOCK = HERE / "knock.py"
STARTS = "`undertow cluster up` or `ray start --head` starts one; ut.ray.cluster() needs none"
FORMS = 'write connect("10.0.0.5:6379"), or connect("ray://10.0.0.5:10001") from outside of the cluster'
_HOST_PORT = re.compile(r"\[?([^\s/\[\]]+)\]?:(\d{1,5})")
_LOCALHOST = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class Place:
    """An address for Ray, and what Ray must find in the environment to connect to it."""

    address: str
    environment: Mapping[str, str] = field(default_factory=dict)


def check_form(address: Any) -> str:
    """The address, if it can be one."""
    if not isinstance(address, str):
        raise UndertowError(f"an address must be text, not {brief(address)}", hint=FORMS)
    if address == "local":
        raise UndertowError("ut.ray.connect() starts no Ray", hint="ut.ray.cluster() starts one for this program")
    if address != "auto" and "://" not in address and host_and_port(address) is None:
        raise UndertowError(f"{brief(address)} is no address of a Ray cluster", hint=FORMS)
    return address


def host_and_port(address: str) -> tuple[str, int] | None:
    """Its parts, if it is of that form.

    >>> host_and_port("[::1]:6379"), host_and_port("hello"), host_and_port("head:70000")
    (('::1', 6379), None, None)
    """
    match = _HOST_PORT.fullmatch(address)
    if match is None or not 0 < int(match[2]) < 1 << 16:
        return None
    return match[1], int(match[2])


def locate(address: str, seconds: float) -> Place:
    """A place where a Ray cluster answers. UndertowError if there is none, Timeout if that is not known in time."""
    end = time.monotonic() + seconds
    named = address if address != "auto" else os.environ.get("RAY_ADDRESS", "auto") or "auto"
    if named != "auto":
        check_form(named)
        candidates, where = ways_to(named), f"at {named}"
    else:
        candidates, where = on_this_machine(), "on this machine"
    why, kind = "", ""
    for place in candidates:
        kind, why = fault_at(place, end)
        if not kind:
            return place
        if time.monotonic() >= end:
            break
    said = f": {why}" if why else ""
    if kind == "late" and time.monotonic() >= end:
        raise Timeout(f"no Ray cluster {where} has answered within {seconds:g} s{said}", hint=STARTS)
    if kind == TOKEN:
        hint = "RAY_AUTH_MODE=token RAY_AUTH_TOKEN_PATH=FILE in the environment name the file with its token"
        raise UndertowError(f"the Ray cluster {where} does not take this program{said}", hint=hint)
    raise UndertowError(f"there is no Ray cluster {where}{said}", hint=STARTS)


def ways_to(address: str) -> Iterator[Place]:
    """How to get there: loopback is two places for Ray, which dials the machine's own address, unless told not to."""
    standing = find()
    if standing is not None and address == standing.address:
        yield Place(address, standing.environment)
        return
    yield Place(address)
    parts = host_and_port(address)
    if parts is not None and parts[0] in _LOCALHOST:
        yield Place(address, AT_LOOPBACK)


def on_this_machine() -> Iterator[Place]:
    """`undertow cluster up`, then what the last `ray start` has left behind, then whatever else runs here."""
    standing = find()
    if standing is not None:
        yield Place(standing.address, standing.environment)
    from ray._private.utils import read_ray_address

    with contextlib.suppress(OSError):
        if record := read_ray_address():
            yield from ways_to(record)
    for address in sorted(found_running()):
        yield from ways_to(address)


def found_running() -> set[str]:
    """Where clusters listen of which a node runs on this machine, but those that are private."""
    from ray._private import services

    found = set()
    for process in services.psutil.process_iter(["cmdline"]):
        arguments = process.info["cmdline"] or [""]
        if os.path.basename(arguments[0]) == "raylet":
            of = dict(part.partition("=")[::2] for part in arguments[1:] if part.startswith("--"))
            if (address := of.get("--gcs-address", "")) and not is_private(Path(of.get("--temp_dir", ""))):
                found.add(address)
    return found


def is_private(folder: Path) -> bool:
    """Is it the folder of a Ray that Undertow has started on this machine? `undertow cluster up` is found by its note.

    A machine that joins another one may have a folder of that name, too, but no token in it.
    """
    try:
        return folder.name.startswith(PREFIX) and (folder / "token").exists()
    except PermissionError:  # another user's
        return True


def fault_at(place: Place, end: float) -> tuple[str, str]:
    """What kind of fault there is, and in words: "late" or "token", or another one; ("", "") if Ray answers."""
    is_client = place.address.startswith(CLIENT)
    parts = host_and_port(place.address.removeprefix(CLIENT))
    if parts is None:
        return "", ""  # of a form that Ray knows
    host, port = dialled(parts[0], place) if not is_client else parts[0], parts[1]
    shown = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    seconds = left(end)
    try:
        socket.create_connection((host, port), timeout=seconds).close()
    except TimeoutError:
        return "late", f"nobody answers at {shown}"
    except OSError as error:
        said = (error.strerror or str(error)).lower()
        return "refused", said if place.address.endswith(shown) else f"{shown}: {said}"
    if is_client and os.environ.get("RAY_USE_TLS", "0") not in ("", "0"):
        return "", ""  # Ray has the certificates
    return knock(CLIENT * is_client + shown, place, left(end))


def dialled(host: str, place: Place) -> str:
    """The host that Ray will dial."""
    if host not in _LOCALHOST or place.environment.items() >= AT_LOOPBACK.items():
        return host
    from ray._private import services

    resolve: Callable[[str], str] = services.resolve_ip_for_localhost
    return resolve(host)


def knock(address: str, place: Place, seconds: float) -> tuple[str, str]:
    """Whether a Ray answers there that takes this program's token."""
    path = os.pathsep.join(os.path.abspath(entry) for entry in sys.path)
    try:
        asked = subprocess.run(
            [sys.executable, str(KNOCK), address],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env={**os.environ, **place.environment, "PYTHONPATH": path}, timeout=seconds, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return "late", f"what listens at {address} does not answer as Ray does"
    said = asked.stdout.decode(errors="replace").strip()
    if said == TOKEN:
        return TOKEN, "it asks for a token, and this program has none, or another one"
    return ("refused", said or f"exit code {asked.returncode}") if asked.returncode else ("", "")


def left(end: float) -> float:
    """Seconds for the next attempt."""
    return min(DIAL, max(0.01, end - time.monotonic()))
