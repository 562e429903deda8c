"""What `ut.ray.cluster` and `ut.ray.connect` refuse before anything is started."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import undertow as ut
from undertow.ray.local import LEAST_STORE, store_of


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        *(({"workers": value}, f"workers is {value!r}") for value in ("two", "2", None, 2.5, True, 0)),
        ({"retries": -1}, "retries is -1"),
        ({"memory": "lots"}, "memory='lots' is not a number of bytes"),
        ({"memory": 10}, "memory is 10, which is too little"),
        ({"memory": "74M"}, "memory is '74M', which is too little"),
        ({"memory": None}, "memory is None"),
    ],
)
def test_cluster_refuses(arguments: dict[str, Any], what: str) -> None:
    with pytest.raises(ut.UndertowError) as caught:
        ut.ray.cluster(**arguments)
    assert caught.value.what.startswith(what) and caught.value.hint
    assert len(caught.traceback) == 1  # no frame of ours


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        *(({"workers": value}, f"workers is {value!r}") for value in ("two", 2.5, True, 0)),
        ({"retries": "3"}, "retries is '3'"),
        ({"processors": "one"}, "processors is 'one'"),
        ({"processors": -1}, "processors is -1"),
        ({"seconds": None}, "seconds is None"),
    ],
)
def test_connect_refuses(arguments: dict[str, Any], what: str) -> None:
    with pytest.raises(ut.UndertowError) as caught:
        ut.ray.connect("head:6379", **arguments)
    assert caught.value.what == what and caught.value.hint


def test_what_is_taken() -> None:
    assert store_of("512M") == 512 << 20 and store_of(np.int64(LEAST_STORE)) == store_of("75M") == LEAST_STORE
    assert isinstance(ut.ray.cluster(np.int32(2), memory="1G"), ut.ray.Cluster)


def test_a_cluster_that_is_not_open() -> None:
    for name in ("pool", "workers"):
        with pytest.raises(ut.UndertowError, match="this cluster is not open") as caught:
            getattr(ut.ray.cluster(), name)
        assert len(caught.traceback) == 1
