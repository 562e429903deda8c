"""The key that all processes of one user share: whoever has it may use this user's servers.

It is made on first use, in a file that only the user can read. Whoever wants servers on several machines copies that
file to each, or keeps it in a home that they share; UNDERTOW_CLUSTER_KEY names another file.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path

from undertow.cluster.station import Keys
from undertow.errors import UndertowError

VARIABLE = "UNDERTOW_CLUSTER_KEY"
_FORM = re.compile(rb"([!-~]{40}) ([!-~]{40})\n")  # public and secret, as Z85


def key_file() -> Path:
    """Where it is."""
    if named := os.environ.get(VARIABLE):
        return Path(named)
    home = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    return Path(home) / "undertow" / "cluster.key"


def shared_keys(make: Callable[[], Keys]) -> Keys:
    """The keys in that file; `make` makes them if there is none."""
    path = key_file()
    try:
        if not path.exists():
            _write(path, make())
        return _read(path)
    except OSError as error:
        raise UndertowError(
            f"the key of this user's servers, {path}, cannot be used: {error.strerror}",
            hint=f"{VARIABLE} may name another file",
        ) from None


def _write(path: Path, keys: Keys) -> None:
    """All of it at once, and only if there still is none: another process may be about to do the same."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent)  # nobody else can read it
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(keys.public + b" " + keys.secret + b"\n")
        with contextlib.suppress(FileExistsError):
            os.link(name, path)
    finally:
        os.unlink(name)


def _read(path: Path) -> Keys:
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
        there = os.fstat(file.fileno())
        if there.st_uid != os.getuid():
            raise UndertowError(f"{path} belongs to somebody else", hint=f"{VARIABLE} may name another file")
        if stat.S_IMODE(there.st_mode) & 0o077:
            raise UndertowError(f"others may read {path}, a secret key", hint=f"chmod 600 {path}")
        match = _FORM.fullmatch(file.read(200))
    if match is None:
        raise UndertowError(f"{path} holds no key", hint="remove it: a new one is made, on one machine, to be copied")
    return Keys(match[1], match[2])
