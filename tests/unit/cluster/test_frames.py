"""What is sent, and what is refused: by the decoder, by a channel, by the two ends."""

from __future__ import annotations

import ast
from pathlib import Path
from random import Random

import pytest
from tests.fuzz.frames import spoiled_conversation
from tests.support.spoiled_frames import MESSAGES, malformed

import undertow
from undertow.cluster.channel import ASK, Channel
from undertow.cluster.frames import LAYOUTS, BadFrame, Frame, Kind, Message, decode, encode

SESSION = b"a session of ten"
SOURCE = Path(undertow.__file__).parent


def test_every_kind_is_written_and_read() -> None:
    assert {message.kind for message in MESSAGES} == set(LAYOUTS) == set(Kind)
    for message in MESSAGES:
        frame = Frame(SESSION, 1, 2, 3, 4, 5, 6, True, message)
        assert decode(encode(frame), SESSION) == frame


@pytest.mark.parametrize("seed", range(20))
def test_what_is_read_is_what_would_be_written(seed: int) -> None:
    """So there is one way only to say something."""
    chance = Random(seed)
    for _ in range(500):
        parts = malformed(SESSION, 1, 2, chance)
        try:
            frame = decode(parts, SESSION)
        except BadFrame:
            continue
        assert [bytes(part) for part in encode(frame)] == parts


@pytest.mark.parametrize("number", range(200))
def test_spoiled_conversations(number: int) -> None:
    """What `make fuzz KIND=frames` does without end."""
    spoiled_conversation(Random(f"frames:1:{number}")).run()


SAFE = {"json", "struct"}  # what takes bytes apart, and runs nothing of what it reads
UNSAFE_MODULES = {"pickle", "cloudpickle", "dill", "marshal", "shelve", "yaml", "joblib", "copyreg", "codeop", "runpy"}
UNSAFE_NAMES = {"eval", "exec", "compile", "recv_pyobj", "send_pyobj", "recv_json", "allow_pickle", "loads_pickle"}


@pytest.mark.parametrize("file", sorted((SOURCE / "cluster").rglob("*.py")), ids=lambda path: path.name)
def test_nothing_from_the_network_is_run(file: Path) -> None:
    """No pickle, nothing like it, and nothing that makes code of text."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        names: set[str] = set()
        if isinstance(node, ast.Import):
            names = {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names = {(node.module or "").split(".")[0]}
        assert not names & UNSAFE_MODULES, f"{file.name}:{getattr(node, 'lineno', 0)}"
        used = {getattr(node, name, None) for name in ("id", "attr", "arg")}
        if isinstance(node, ast.Name | ast.Attribute | ast.keyword) and not is_regular_expression(node):
            assert not used & UNSAFE_NAMES, f"{file.name}:{getattr(node, 'lineno', 0)}"


def is_regular_expression(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "re"


# --------------------------------------------------------------------------------------------------------------
# Channels


def ends() -> tuple[Channel, Channel]:
    return Channel(SESSION, 0, 1), Channel(SESSION, 0, 1)


def drop(number: int) -> Message:
    return Message(Kind.DROP, (1, number))


def test_what_is_played_again_is_refused() -> None:
    a, b = ends()
    frames = [a.send(drop(1)), a.beat(), a.send(drop(2))]
    assert [len(b.receive(frame)) for frame in frames] == [1, 1, 1]
    for frame in frames:
        with pytest.raises(BadFrame, match="been here before"):
            b.receive(frame)


def test_what_was_asked_for_may_come_twice() -> None:
    a, b = ends()
    a.send(drop(1))
    late = a.send(drop(2))
    assert b.receive(late) == []
    (request,) = b.answers(0.0)
    a.receive(request)
    assert [message for frame in a.answers(0.0) for message in b.receive(frame)] == [drop(1), drop(2)]
    assert b.receive(late) == []


def test_nothing_is_asked_for_while_it_is_on_its_way() -> None:
    """With much that is missing, it would be sent again and again."""
    a, b = ends()
    for number in range(100):
        a.send(drop(number))
    b.receive(a.beat())
    (request,) = b.answers(0.0)
    assert request.asks
    a.receive(request)
    again = a.answers(0.0)
    assert len(again) == 100
    now = 0.0
    for frame in again:
        now += ASK
        b.receive(frame)
        assert not any(answer.asks for answer in b.answers(now))
    assert b.answers(now + 1.0) == []


def test_answers_to_requests_are_not_too_many() -> None:
    """However often somebody asks."""
    a, b = ends()
    a.send(drop(1))
    b.receive(a.beat())
    (request,) = b.answers(0.0)
    count = 0
    for number in range(1000):
        asking = Frame(SESSION, 0, 1, request.number + number, 0, 0, 0, True, Message(Kind.BEAT))
        a.receive(asking)
        count += len(a.answers(number * ASK / 100))
    assert count <= 11


@pytest.mark.parametrize(
    "frame",
    [
        Frame(SESSION, 0, 1, 1, 1, 1, 0, False, drop(1)),  # it has heard what was never said
        Frame(SESSION, 0, 1, 2, 1, 0, 0, False, drop(1)),  # a number greater than the last
        Frame(SESSION, 0, 1, 0, 1, 0, 0, False, drop(1)),
    ],
)
def test_numbers_that_cannot_be(frame: Frame) -> None:
    with pytest.raises(BadFrame, match="numbers that cannot be"):
        ends()[0].receive(frame)


def test_what_comes_early_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("undertow.cluster.channel.MOST_EARLY_BYTES", 1000)
    a, b = ends()
    frames = [a.send(Message(Kind.PEER, (number,), (bytes(300),))) for number in range(10)]
    assert [b.receive(frame) for frame in frames[1:]] == [[]] * 9
    assert len(b.receive(frames[0])) == 4
    b.receive(a.beat())
    (request,) = b.answers(0.0)
    a.receive(request)
    assert sum(len(b.receive(frame)) for frame in a.answers(1.0)) == 6
