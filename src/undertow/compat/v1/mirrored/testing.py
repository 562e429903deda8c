"""`tf.test`: test cases with sessions, and assertions on arrays."""

# ruff: noqa: PT009, PT027, PT028 -- it is what tests written for unittest inherit

from __future__ import annotations

import contextlib
import math
import re
import tempfile
import unittest
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from undertow.compat.v1 import errors
from undertow.compat.v1.graph import Graph, get_default_graph, reset_default_graph
from undertow.compat.v1.session import Session, get_default_session

__all__ = [
    "Benchmark", "TestCase", "get_temp_dir", "gpu_device_name", "is_built_with_cuda", "is_gpu_available", "main",
    "test_src_dir_path",
]  # fmt: skip


class TestCase(unittest.TestCase):
    """A test case whose tests begin with an empty default graph."""

    def setUp(self) -> None:
        """Start with an empty default graph, and seeds that are the same for every test."""
        super().setUp()
        self._session: Session | None = None
        np.random.seed(87654321)
        reset_default_graph()
        get_default_graph().seed = 87654321

    def tearDown(self) -> None:
        """Close the session that the test has shared."""
        if self._session is not None:
            self._session.close()
        super().tearDown()

    @contextlib.contextmanager
    def test_session(
        self, graph: Graph | None = None, config: Any = None, use_gpu: bool = False, force_gpu: bool = False
    ) -> Iterator[Session]:
        """A session as default. Without a graph, the tests share one for the default graph."""
        if graph is not None:
            with Session(graph=graph, config=config) as own:
                yield own
            return
        if self._session is None or self._session.graph is not get_default_graph():
            self._session = Session(config=config)
        with self._session.graph.as_default(), self._session.as_default():
            yield self._session

    test_session.__test__ = False  # type: ignore[attr-defined]  # no test
    session = cached_session = test_session

    def get_temp_dir(self) -> str:
        """A new folder."""
        return get_temp_dir()

    def evaluate(self, tensors: Any) -> Any:
        """The values of tensors in the default session."""
        session = get_default_session()
        if session is not None:
            return session.run(tensors)
        with self.test_session() as shared:
            return shared.run(tensors)

    # -- assertions ----------------------------------------------------------------------------------------

    def assertAllEqual(self, a: Any, b: Any, msg: str | None = None) -> None:
        """The same shape, and the same elements."""
        one, other = _array(a), _array(b)
        self.assertEqual(
            one.shape, other.shape, f"Shape mismatch: expected {one.shape}, got {other.shape}. {msg or ''}"
        )
        np.testing.assert_array_equal(one, other, err_msg=msg or "")

    def assertAllClose(self, a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-6, msg: str | None = None) -> None:
        """The same shape, and close elements; of dicts, lists and tuples too."""
        if isinstance(a, dict):
            self.assertEqual(a.keys(), b.keys())
            for key in a:
                self.assertAllClose(a[key], b[key], rtol, atol, msg)
            return
        if isinstance(a, (list, tuple)) and any(isinstance(item, (np.ndarray, dict)) for item in a):
            self.assertEqual(len(a), len(b))
            for one_item, other_item in zip(a, b, strict=True):
                self.assertAllClose(one_item, other_item, rtol, atol, msg)
            return
        one, other = _array(a), _array(b)
        self.assertEqual(
            one.shape, other.shape, f"Shape mismatch: expected {one.shape}, got {other.shape}. {msg or ''}"
        )
        if np.float32 in (one.dtype, other.dtype):
            rtol, atol = max(rtol, 1e-6), max(atol, 1e-6)
        np.testing.assert_allclose(one, other, rtol=rtol, atol=atol, err_msg=msg or "", equal_nan=True)

    def assertAllCloseAccordingToType(self, a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-6, **_: Any) -> None:
        """The same, with tolerances for float32."""
        is_single = np.float32 in (_array(a).dtype, _array(b).dtype)
        self.assertAllClose(a, b, max(rtol, 1e-6) if is_single else rtol, max(atol, 1e-6) if is_single else atol)

    def assertArrayNear(self, farray1: Any, farray2: Any, err: float) -> None:
        """Each pair of elements differs by no more than `err`."""
        self.assertEqual(len(farray1), len(farray2))
        for one, other in zip(farray1, farray2, strict=True):
            self.assertNear(float(one), float(other), err)

    def assertNDArrayNear(self, ndarray1: Any, ndarray2: Any, err: float) -> None:
        """The norm of the difference is below `err`."""
        self.assertLess(float(np.linalg.norm(_array(ndarray1) - _array(ndarray2))), err)

    def assertNear(self, f1: float, f2: float, err: float, msg: str | None = None) -> None:
        """Two numbers differ by no more than `err`."""
        self.assertTrue(f1 == f2 or math.fabs(f1 - f2) <= err, f"{f1} != {f2} +/- {err} {msg or ''}")

    @contextlib.contextmanager
    def assertRaisesWithPredicateMatch(
        self, exception_type: Any, expected_err_re_or_predicate: str | Callable[[Any], bool]
    ) -> Iterator[None]:
        """The block raises an error of this type, whose text has a match, or which the predicate accepts."""
        try:
            yield
        except exception_type as fault:
            expected = expected_err_re_or_predicate
            text = fault.message if isinstance(fault, errors.OpError) else str(fault)
            is_it = bool(re.search(expected, text)) if isinstance(expected, str) else expected(fault)
            if not is_it:
                raise AssertionError(f"Exception of type {type(fault)}: {fault}") from fault
        else:
            self.fail(f"{getattr(exception_type, '__name__', exception_type)} not raised")

    def assertRaisesOpError(self, expected_err_re_or_predicate: Any) -> Any:
        """The block raises an error of a run."""
        return self.assertRaisesWithPredicateMatch(errors.OpError, expected_err_re_or_predicate)

    def assertRaisesRegexp(self, *args: Any, **kwargs: Any) -> Any:
        """The old name of assertRaisesRegex."""
        return self.assertRaisesRegex(*args, **kwargs)

    def assertItemsEqual(self, *args: Any, **kwargs: Any) -> Any:
        """The old name of assertCountEqual."""
        return self.assertCountEqual(*args, **kwargs)

    def assertShapeEqual(self, np_array: Any, tf_tensor: Any) -> None:
        """An array has the shape of a tensor."""
        self.assertAllEqual(np_array.shape, tf_tensor.get_shape().as_list())

    def assertStartsWith(self, actual: str, expected_start: str, msg: str | None = None) -> None:
        """A text begins with another one."""
        self.assertTrue(actual.startswith(expected_start), msg or f"{actual!r} does not start with {expected_start!r}")

    def assertDeviceEqual(self, device1: Any, device2: Any) -> None:
        """Two names of one device."""
        self.assertEqual(str(device1 or "").lower(), str(device2 or "").lower())


def _array(value: Any) -> Any:
    return value if isinstance(value, np.ndarray) else np.array(value)


class Benchmark:
    """Accepted: benchmarks are run by a program of your own."""


def main(argv: Any = None) -> None:
    """Run the tests of the program."""
    unittest.main(argv=argv)


def get_temp_dir() -> str:
    """A new folder."""
    return tempfile.mkdtemp()


def test_src_dir_path(relative_path: str) -> str:
    """A path below the working folder."""
    return relative_path


test_src_dir_path.__test__ = False  # type: ignore[attr-defined]  # pytest takes functions of such names for tests


def is_gpu_available(cuda_only: bool = False, min_cuda_compute_capability: Any = None) -> bool:
    """There is none."""
    return False


def gpu_device_name() -> str:
    """There is none: an empty name."""
    return ""


def is_built_with_cuda() -> bool:
    """It is not."""
    return False
