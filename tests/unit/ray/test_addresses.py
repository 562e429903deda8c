"""Where a Ray cluster is: forms of addresses, and attempts that end in time."""

from __future__ import annotations

import socket
import time
from pathlib import Path

import pytest

import undertow as ut
from undertow.ray import addresses
from undertow.ray.addresses import Place, check_form, fault_at, is_private, locate


@pytest.mark.parametrize("address", ["auto", "10.0.0.5:6379", "[fd00::5]:6379", "head:6379", "ray://head:10001"])
def test_forms(address: str) -> None:
    assert check_form(address) == address


@pytest.mark.parametrize("address", ["hello", "", "head:", "head:70000", "local", None, 6379, ("head", 6379)])
def test_what_is_no_address(address: object) -> None:
    """Refused where `connect` is called, before the block."""
    with pytest.raises(ut.UndertowError):
        ut.ray.connect(address)  # type: ignore[arg-type]


def test_nobody_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused by the machine: known at once."""
    monkeypatch.setattr(addresses, "ways_to", lambda address: [Place(address, addresses.AT_LOOPBACK)])
    with socket.create_server(("127.0.0.1", 0)) as door:
        port = door.getsockname()[1]
    with pytest.raises(ut.UndertowError, match=f"no Ray cluster at 127.0.0.1:{port}: connection refused") as caught:
        locate(f"127.0.0.1:{port}", 60.0)
    assert "undertow cluster up" in caught.value.hint


def test_a_door_where_nobody_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes connections, and says nothing: a timeout, which is a TimeoutError."""
    monkeypatch.setattr(addresses, "ways_to", lambda address: [Place(address, addresses.AT_LOOPBACK)])
    with socket.create_server(("127.0.0.1", 0)) as door:
        sleeps = Path(__file__).parents[2] / "support" / "sleeps.py"
        monkeypatch.setattr(addresses, "KNOCK", sleeps)
        began = time.monotonic()
        with pytest.raises(TimeoutError, match="does not answer as Ray does") as caught:
            locate(f"127.0.0.1:{door.getsockname()[1]}", 0.1)
        assert isinstance(caught.value, ut.UndertowError) and time.monotonic() - began < 5.0


def test_ray_client_addresses() -> None:
    """A door that is shut, and one where nobody speaks as Ray does."""
    pytest.importorskip("grpc", reason="make test-ray installs it")
    with socket.create_server(("127.0.0.1", 0)) as door:
        address = f"ray://127.0.0.1:{door.getsockname()[1]}"
        assert fault_at(Place(address), time.monotonic() + 0.1)[0] == "late"
    assert fault_at(Place(address), time.monotonic() + 5.0) == ("refused", "connection refused")


def test_private_folders(tmp_path: Path) -> None:
    """Those of a Ray that Undertow has started here. A machine that has joined one has no token in its folder."""
    joined, ours, others = tmp_path / "undertow-a", tmp_path / "undertow-b", tmp_path / "ray"
    for folder in (joined, ours, others):
        folder.mkdir()
    for folder in (ours, others):
        (folder / "token").write_text("t")
    assert [is_private(folder) for folder in (joined, ours, others)] == [False, True, False]
