"""TensorFlow's module paths, its error classes, its test cases; texts, and ways to run."""

from __future__ import annotations

import pickle
import unittest

import numpy as np
import pytest
import undertow.compat.v1.python.ops.tensor_array_grad

import undertow as ut
import undertow.compat.v1 as tf
from undertow.compat.v1 import function
from undertow.compat.v1.core.protobuf import config_pb2
from undertow.compat.v1.python.client import session as client
from undertow.compat.v1.python.framework import constant_op, dtypes, errors, errors_impl, ops, tensor_shape
from undertow.compat.v1.python.framework import function as framework_function
from undertow.compat.v1.python.ops import array_ops, control_flow_ops, functional_ops, math_ops, state_ops
from undertow.compat.v1.python.platform import test
from undertow.compat.v1.python.util import nest


def test_modules_have_the_names_of_tensorflow():
    assert math_ops.add is tf.add and ops.Graph is tf.Graph and math_ops.mul is tf.multiply
    assert framework_function is function and errors is errors_impl is tf.errors and test is tf.test
    assert dtypes.int32_ref == tf.int32 and tensor_shape.unknown_shape().ndims is None
    with pytest.raises(AttributeError, match=r"undertow.compat.v1 has no no_such_thing"):
        _ = array_ops.no_such_thing
    with pytest.raises(ModuleNotFoundError):
        import undertow.compat.v1.python.ops.no_such_module  # noqa: F401


def test_configuration_is_accepted():
    options = config_pb2.OptimizerOptions(opt_level=config_pb2.OptimizerOptions.L0)
    config = tf.ConfigProto(graph_options=tf.GraphOptions(optimizer_options=options), allow_soft_placement=True)
    config.gpu_options.allow_growth = True
    assert config.gpu_options.allow_growth and not tf.ConfigProto().gpu_options
    with client.Session(config=config) as session:
        assert session.run(constant_op.constant(3)) == 3 and [d.device_type for d in session.list_devices()] == ["CPU"]


def example():
    """A test case as in TensorFlow's own tests; made here, so that pytest does not run it."""

    class Example(test.TestCase):
        def test_values(self):
            with self.test_session() as session:
                x = constant_op.constant([1.0, 2.0])
                self.assertAllClose([2.0, 4.0], (x * 2.0).eval())
                self.assertAllEqual(self.evaluate(x), session.run(x))
                with self.assertRaisesOpError("uninitialized"):
                    tf.Variable(1.0).eval()
                with self.assertRaisesRegexp(KeyError, "which does not exist"):  # noqa: PT027, UP005
                    tf.get_default_graph().get_tensor_by_name("z:0")

        def test_that_fails(self):
            self.assertAllEqual([1, 2], [1, 3])

    return Example


def test_test_cases():
    kind, result = example(), unittest.TestResult()
    unittest.TestSuite([kind("test_values"), kind("test_that_fails")]).run(result)
    assert (result.testsRun, len(result.failures), len(result.errors)) == (2, 1, 0)
    assert not tf.test.is_gpu_available() and tf.test.gpu_device_name() == ""


# -- errors ------------------------------------------------------------------------------------------------


def test_errors_of_runs_are_of_both_libraries():
    v, x = tf.Variable(1.0, name="v"), tf.placeholder(tf.int32, [])
    cases = [
        (v, {}, tf.errors.FailedPreconditionError, ut.Fault, "Attempting to use uninitialized value v"),
        (10 // x, {x: 0}, tf.errors.InvalidArgumentError, ut.Fault, "zero"),
        (x + 1, {}, tf.errors.InvalidArgumentError, ut.GraphError, "You must feed a value for placeholder"),
        (
            tf.Assert(x > 0, ["x is", x]),
            {x: -3},
            tf.errors.InvalidArgumentError,
            ut.Fault,
            r"assertion failed: x is.*-3",
        ),
    ]
    with tf.Session() as session:
        for fetch, fed, theirs, ours, says in cases:
            with pytest.raises(theirs, match=says) as caught:
                session.run(fetch, fed)
            assert isinstance(caught.value, ours) and isinstance(caught.value, tf.errors.OpError)
            again = pickle.loads(pickle.dumps(caught.value))
            assert isinstance(again, theirs) and str(again) == str(caught.value)
    with pytest.raises(RuntimeError, match="closed Session"):
        session.run(x, {x: 1})


def test_errors_of_limits():
    forever = tf.while_loop(lambda k: k >= 0, lambda k: k * 1, [1])
    with tf.Session(timeout=0.05) as session, pytest.raises(tf.errors.DeadlineExceededError):
        session.run(forever)
    nowhere = function.Declare("Nowhere", [("x", tf.int32)], [("y", tf.int32)])(1)
    with tf.Session() as session, pytest.raises(tf.errors.NotFoundError, match="not registered"):
        session.run(nowhere)


def test_error_classes():
    fault = tf.errors.OutOfRangeError(None, None, "the end")
    assert fault.message == str(fault) == "the end" and fault.error_code == tf.errors.OUT_OF_RANGE and fault.op is None
    assert tf.errors.exception_type_from_error_code(tf.errors.ABORTED) is tf.errors.AbortedError
    assert tf.errors.error_code_from_exception_type(tf.errors.NotFoundError) == tf.errors.NOT_FOUND


# -- ways to run -------------------------------------------------------------------------------------------


def test_a_callable():
    x, y = tf.placeholder(tf.float32, []), tf.placeholder(tf.float32, [None])
    with tf.Session() as session:
        scale = session.make_callable(x * y, [x, y])
        assert scale(2.0, [1.0, 3.0]).tolist() == [2, 6] and scale(3.0, [1.0]).tolist() == [3]
        with pytest.raises(ut.TypeMismatch, match="takes 2 values, not 1"):
            scale(2.0)


def test_a_run_in_parts():
    a, b = tf.placeholder(tf.float32, []), tf.placeholder(tf.float32, [])
    drawn = tf.random_uniform([])
    first = a + drawn
    second = first * b
    with tf.Session() as session:
        handle = session.partial_run_setup([first, second], [a, b])
        half = session.partial_run(handle, first, {a: 1.0})
        assert session.partial_run(handle, second, {b: 2.0}) == pytest.approx(2 * half)  # drawn once
        with pytest.raises(ut.TypeMismatch, match="not specified in partial_run_setup"):
            session.partial_run(handle, drawn)


def test_texts_are_printed_and_fetched(capfd):
    greeting = tf.constant("hello")
    x = tf.constant([1, 2])
    with tf.Session() as session:
        assert session.run([greeting, x])[0] == b"hello" and session.run({"a": [greeting]}) == {"a": [b"hello"]}
        assert tf.constant(["a", "b"]).eval(session=session).tolist() == [b"a", b"b"]
        assert session.run(tf.Print(x, [greeting, "is {it}", x])).tolist() == [1, 2]
    assert "[hello][is {it}][[1 2]]" in "".join(capfd.readouterr())
    with pytest.raises(ut.TypeMismatch, match="which no operation takes"):
        tf.identity(greeting)


# -- control flow by itself --------------------------------------------------------------------------------


@pytest.mark.parametrize("truth", [True, False])
def test_switch_and_merge(truth):
    p = tf.placeholder(tf.bool, [])
    off, on = control_flow_ops.switch(tf.constant([1, 2]), p)
    value, index = control_flow_ops.merge([off + 1, on * 5])
    with tf.Session() as session:
        assert session.run(value, {p: truth}).tolist() == ([5, 10] if truth else [2, 3])
        assert session.run(index, {p: truth}) == int(truth)
        with pytest.raises(tf.errors.InvalidArgumentError, match="The tensor returned for"):
            session.run(off + 1, {p: truth})
    with pytest.raises(ut.GraphError, match="one from each side"):
        control_flow_ops.merge([on, on])
    with pytest.raises(ut.GraphError, match="loops cannot be written edge by edge"):
        control_flow_ops.next_iteration(on)


def test_order():
    v = tf.Variable(0)
    one = control_flow_ops.with_dependencies([state_ops.assign(v, 5)], tf.constant(1))
    both = tf.tuple([tf.constant(2), None], control_inputs=[state_ops.assign(v, 7).op])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(one) == 1 and session.run(v) == 5
        assert session.run(both[0]) == 2 and both[1] is None and session.run(v) == 7


def test_cases_that_exclude_each_other():
    x = tf.placeholder(tf.int32, [])
    y = tf.case([(x > 0, lambda: 1), (x > 5, lambda: 2)], default=lambda: 0, exclusive=True)
    with tf.Session() as session:
        assert session.run(y, {x: 3}) == 1 and session.run(y, {x: -3}) == 0
        with pytest.raises(tf.errors.InvalidArgumentError, match="More than one condition evaluated as True"):
            session.run(y, {x: 9})


def test_a_loop_without_gradient():
    x = tf.placeholder(tf.float32, [])
    y = tf.while_loop(lambda v: v < 100.0, tf.square, [x], back_prop=False) + x
    with tf.Session() as session:
        assert session.run(tf.gradients(y, x), {x: 2.0}) == [1]


def test_strided_slice():
    x = tf.constant(np.arange(12).reshape(3, 4))
    k = tf.constant([1, 0])
    with tf.Session() as session:
        assert session.run(tf.strided_slice(x, k, [3, 4], [1, 2])).tolist() == [[4, 6], [8, 10]]
        assert session.run(tf.strided_slice(x, [1, 1], [2, 2], shrink_axis_mask=1)).tolist() == [5]


def test_symbolic_gradients():
    @function.Defun(tf.float32, func_name="SquarePlusOne")
    def square(x):
        return x * x + 1.0

    (dx,) = [functional_ops.symbolic_gradient([[2.0], [0.1]], [tf.float32], "SquarePlusOne")]
    with tf.Session() as session:
        assert session.run(dx) == pytest.approx([0.4])


def test_nests():
    nested = {"b": [1, (2, 3)], "a": 4}
    flat = nest.flatten(nested)
    assert sorted(flat) == [1, 2, 3, 4] and nest.pack_sequence_as(nested, flat) == nested
    assert nest.map_structure(lambda x, y: x + y, [1, [2]], [10, [20]]) == [11, [22]]
    with pytest.raises(ValueError, match="same number of elements"):
        nest.assert_same_structure([1, 2], [1])


def test_what_is_told_of_a_function():
    c = tf.placeholder(tf.int64, [], name="c")

    @function.Defun(tf.int64, tf.float32, func_name="Told", noinline=True, out_names=["y", "z"])
    def told(x, w):
        return x + c, w

    told(1, [2.0])
    assert told.name == "Told" and told.declared_input_types == (tf.int64, tf.float32)
    assert [t.name for t in told.captured_inputs] == ["c:0"] and told.grad_func_name is None

    @function.Defun(noinline=True)
    def plain(x):
        return tf.transpose(x, [1, 0])

    definition = plain.instantiate([tf.float32]).definition
    assert definition.attr["_noinline"].b and definition.signature.name == "plain"
    assert [arg.type for arg in definition.signature.output_arg] == [tf.float32]
    with pytest.raises(ValueError, match="Unknown keyword arguments"):
        told(1, [2.0], device="/gpu:0")
    with pytest.raises(ValueError, match="Expected number of arguments: 2, received: 1"):
        told(1)


def test_variables_that_a_body_has_used():
    seen = []

    @function.Defun()
    def loss(x):
        w = tf.get_variable("w", [2], initializer=tf.ones_initializer())
        y = tf.reduce_sum(x * w * w)
        (arg,) = function.get_extra_args()
        seen.extend(function.get_extra_vars())
        return y, tf.gradients(y, arg)[0]

    with tf.Session() as session:
        y, slope = loss(tf.constant([1.0, 2.0]))
        session.run(tf.global_variables_initializer())
        assert session.run([y, slope])[1].tolist() == [2, 4] and [v.op.name for v in seen] == ["w"]
    with pytest.raises(ut.GraphError, match="asked in the body of a function"):
        function.get_extra_vars()


def test_sparse_tensors_go_through_control_flow():
    x = tf.SparseTensor(tf.constant([[0], [3]], tf.int64), [2.0, 4.0], tf.constant([10], tf.int64))
    chosen = tf.cond(
        tf.constant(False),
        lambda: x,
        lambda: tf.SparseTensor(x.indices + 1, x.values * 2.0, x.dense_shape),
    )
    _, doubled = tf.while_loop(
        lambda k, _: k < 3, lambda k, s: [k + 1, tf.SparseTensor(s.indices, s.values * 2.0, s.dense_shape)], [0, x]
    )
    with tf.Session() as session:
        assert session.run(chosen.indices).tolist() == [[1], [4]] and chosen.values.shape == (2,)
        assert session.run(doubled).values.tolist() == [16, 32] and x.get_shape().as_list() == [None]
