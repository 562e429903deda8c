"""What single modules of TensorFlow have besides the names of `tf`: see modules.py."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from undertow.compat.v1 import errors, function, raw
from undertow.compat.v1.devices import list_local_devices
from undertow.compat.v1.gradients import gradients
from undertow.compat.v1.graph import get_default_graph
from undertow.compat.v1.graphs.dtypes import dtype_of
from undertow.compat.v1.graphs.shapes import TensorShape, unknown_shape
from undertow.compat.v1.mirrored import config, nest, testing
from undertow.compat.v1.mirrored.modules import ROOT, TfLogging
from undertow.compat.v1.place import here
from undertow.compat.v1.tensor import as_tensor
from undertow.errors import GraphError
from undertow.types import bool_, f32, f64, i32, i64
from undertow.viz import messages


def symbolic_gradient(input: Sequence[Any], Tout: Sequence[Any], f: Any, name: str | None = None) -> Any:
    """The gradients of a function, given its arguments and the cotangents of its results."""
    graph, called = get_default_graph(), getattr(f, "name", f)
    defined = graph.defined.get(called) or function.newest(called)
    if defined is None:
        raise errors.of_kind(
            GraphError(f"`{called}` is not registered in this graph", here(), hint="call it once, or add_to_graph"),
            ValueError,
        )
    args = [as_tensor(value) for value in input[: len(defined.params)]]
    slopes = gradients(defined(*args), args, list(input[len(args) :]), unconnected_gradients="zero")
    return slopes[0] if len(Tout) == 1 else slopes


def run_app(main: Callable[..., Any] | None = None, argv: Sequence[str] | None = None) -> None:
    """Call `main` of the program with its arguments, and end."""
    chosen = main or sys.modules["__main__"].main
    sys.exit(chosen(list(sys.argv if argv is None else argv)))


def as_text(value: Any, encoding: str = "utf-8") -> str:
    """Bytes or a text as a text."""
    return value.decode(encoding) if isinstance(value, bytes) else str(value)


def as_bytes(value: Any, encoding: str = "utf-8") -> bytes:
    """Bytes or a text as bytes."""
    return value if isinstance(value, bytes) else str(value).encode(encoding)


def _classes(*names: str) -> dict[str, Any]:
    """Messages by their names."""
    return {name: getattr(messages, name) for name in names}


def mirrored(tf: ModuleType) -> dict[str, ModuleType | dict[str, Any]]:
    """The modules that are ours, and the names of others."""
    dtypes = {"bool": bool_, "float32": f32, "float64": f64, "int32": i32, "int64": i64}
    switches = {name: getattr(raw, name) for name in raw.__all__}
    switches |= {"_Identity": raw.ref_identity, "_Enter": raw.enter, "ref_identity": raw.ref_identity}
    return {
        "python.framework.errors": errors,
        "python.framework.errors_impl": errors,
        "python.framework.function": function,
        "python.framework.test_util": {"TensorFlowTestCase": testing.TestCase},
        "python.platform.test": testing,
        "python.platform.googletest": testing,
        "python.util.nest": nest,
        "python.util.compat": {"as_text": as_text, "as_str": as_text, "as_str_any": as_text, "as_bytes": as_bytes},
        "python.platform.tf_logging": TfLogging(f"{ROOT}.python.platform.tf_logging"),
        "python.platform.app": {"run": run_app},
        "python.client.device_lib": {"list_local_devices": list_local_devices},
        "python.framework.dtypes": {
            **dtypes, **{f"{name}_ref": dtype for name, dtype in dtypes.items()}, "as_dtype": dtype_of,
        },
        "python.framework.tensor_shape": {
            "unknown_shape": unknown_shape,
            "scalar": lambda: TensorShape([]),
            "vector": lambda length: TensorShape([length]),
            "matrix": lambda rows, columns: TensorShape([rows, columns]),
            "as_shape": TensorShape,
        },
        "python.ops.control_flow_ops": switches,
        "python.ops.gen_control_flow_ops": switches,
        "python.ops.functional_ops": {"_symbolic_gradient": symbolic_gradient, "symbolic_gradient": symbolic_gradient},
        "python.ops.gen_functional_ops": {"_symbolic_gradient": symbolic_gradient},
        "python.ops.resource_variable_ops": {
            "ResourceVariable": tf.Variable,
            "assign_variable_op": lambda resource, value, name=None: tf.assign(resource, value, name=name).op,
        },
        "python.ops.gen_array_ops": {"_ref_identity": raw.ref_identity},
        "core.protobuf.config_pb2": {
            **{name: getattr(config, name) for name in config.__all__},
            "RunOptions": tf.RunOptions, "RunMetadata": tf.RunMetadata,
        },
        "core.framework.function_pb2": _classes("FunctionDef", "FunctionDefLibrary"),
        "core.framework.graph_pb2": _classes("GraphDef", "NodeDef"),
        "core.framework.node_def_pb2": _classes("NodeDef"),
        "core.framework.step_stats_pb2": _classes("StepStats", "DeviceStepStats", "NodeExecStats"),
        "core.framework.summary_pb2": _classes("Summary", "SummaryMetadata", "HistogramProto"),
        "core.util.event_pb2": _classes("Event", "SessionLog", "TaggedRunMetadata"),
        "python.client.timeline": tf.timeline,
        "python.summary.summary": tf.summary,
        "core.protobuf.rewriter_config_pb2": {"RewriterConfig": config.RewriterConfig},
        "python.ops.nn": tf.nn,
        "python.framework.random_seed": {"get_seed": tf.get_seed, "set_random_seed": tf.set_random_seed},
    }  # fmt: skip
