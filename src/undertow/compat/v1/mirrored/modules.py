"""TensorFlow's own modules: `tensorflow.python.ops.math_ops` is `undertow.compat.v1.python.ops.math_ops`.

So the imports of a program change by one word: `tensorflow` becomes `undertow.compat.v1`. Each module has all names of
`tf`, and those below that TensorFlow keeps there alone; older names of operations, such as `mul` and `pack`, too.
"""

from __future__ import annotations

import logging
import sys
from types import ModuleType
from typing import Any

ROOT = "undertow.compat.v1"

# Modules by folder. A name that is not here is an ImportError.
MODULES = {
    "python": "framework ops client platform training util layers summary",
    "python.framework": "common_shapes constant_op device dtypes errors errors_impl function graph_util importer "
    "op_def ops random_seed sparse_tensor tensor_shape tensor_util test_util",
    "python.ops": "array_grad array_ops check_ops clip_ops control_flow_ops data_flow_ops embedding_ops functional_ops "
    "gen_array_ops gen_control_flow_ops gen_data_flow_ops gen_functional_ops gen_logging_ops gen_math_ops gen_nn_ops "
    "gen_state_ops gradient_checker gradients gradients_impl histogram_ops init_ops linalg_ops logging_ops math_grad "
    "math_ops nn nn_grad nn_impl nn_ops partitioned_variables random_ops resource_variable_ops rnn rnn_cell "
    "rnn_cell_impl script_ops sparse_ops special_math_ops standard_ops state_grad state_ops string_ops template "
    "tensor_array_grad tensor_array_ops variable_scope variables",
    "python.client": "device_lib session timeline",
    "python.platform": "app gfile googletest resource_loader test tf_logging",
    "python.training": "adagrad adam gradient_descent learning_rate_decay momentum moving_averages optimizer rmsprop "
    "saver server_lib session_manager training training_util",
    "python.util": "compat nest",
    "python.layers": "base core layers",
    "python.summary": "summary",
    "core": "framework protobuf util",
    "core.framework": "function_pb2 graph_pb2 node_def_pb2 step_stats_pb2 summary_pb2",
    "core.util": "event_pb2",
    "core.protobuf": "config_pb2 meta_graph_pb2 rewriter_config_pb2",
}

# Names that an operation had before; and those with an underscore, or of a generated module.
OLDER = {
    "mul": "multiply", "sub": "subtract", "neg": "negative", "pack": "stack", "unpack": "unstack",
    "concat_v2": "concat",
    "real_div": "divide", "select": "where", "inv": "reciprocal", "_identity": "identity",
    "_assert": "Assert", "_concat": "concat", "_mul": "multiply", "_sub": "subtract", "_neg": "negative",
    "_sum": "reduce_sum",
    "_max": "reduce_max", "_min": "reduce_min", "_mean": "reduce_mean", "_softmax": "softmax", "_print": "Print",
    "batch_matmul": "matmul", "initialize_variables": "variables_initializer", "_shape": "shape", "_size": "size",
    "_fill": "fill", "_range": "range", "_pow": "pow", "_abs": "abs", "_all": "reduce_all", "_any": "reduce_any",
}  # fmt: skip


class Mirror(ModuleType):
    """A module with the names of `tf` and `tf.nn`, and some of its own."""

    def __init__(self, path: str, own: dict[str, Any]) -> None:
        super().__init__(f"{ROOT}.{path}", f"The module `tensorflow.{path}` of TensorFlow 1.")
        self.__dict__.update(own)
        self.__path__: list[str] = []  # a package: what stands below it is in sys.modules

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        tf = sys.modules[ROOT]
        wanted = OLDER.get(name, name)
        for module in (tf, tf.nn, tf.train):
            if wanted in module.__all__:
                return getattr(module, wanted)
        return getattr(tf, wanted)  # it says why there is none


class TfLogging(ModuleType):
    """`tf.logging`: Python's, by the name "tensorflow"."""

    DEBUG, INFO, WARN, ERROR, FATAL = logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR, logging.CRITICAL

    def __init__(self, name: str) -> None:
        super().__init__(name, "Messages: those of Python's logging, by the name `tensorflow`.")
        self._log = logging.getLogger("tensorflow")

    def set_verbosity(self, level: int) -> None:
        """Show messages of this level and above."""
        self._log.setLevel(level)

    def get_verbosity(self) -> int:
        """The level of messages that are shown."""
        return self._log.getEffectiveLevel()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._log, {"warn": "warning"}.get(name, name))


def install(special: dict[str, ModuleType | dict[str, Any]]) -> dict[str, ModuleType]:
    """Make the modules importable. `special`: modules of ours, and what others have besides the names of `tf`."""
    made: dict[str, ModuleType] = {}

    def add(path: str) -> ModuleType:
        given = special.get(path, {})
        module = given if isinstance(given, ModuleType) else Mirror(path, given)
        made[path] = sys.modules[f"{ROOT}.{path}"] = module
        return module

    for folder, names in MODULES.items():
        parent = made.get(folder) or add(folder)
        for name in names.split():
            path = f"{folder}.{name}"
            setattr(parent, name, made.get(path) or add(path))
    return made
