"""Error texts for TensorFlow names that are not supported."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

_SUPERVISED = "variables live in one session: use tf.Session(server.target), and run the initializer"
_QUEUES = "queues and stacks are not supported: feed NumPy arrays, or carry a tensor through tf.while_loop"
_REFS = "there are no references to a variable's memory: use the variable, which is read where it is used"
_WHY = {
    "GradientTape": "that is TensorFlow 2: use tf.gradients",
    "train.MonitoredTrainingSession": _SUPERVISED,
    "train.Supervisor": _SUPERVISED,
    "train.Saver": "fetch the variables, and save them with np.savez",
    "layers": "layers are not supported: write them with tf.matmul and tf.Variable",
    "keras": "Keras is not supported: write the model with tf.matmul and tf.Variable",
    "contrib": "tf.contrib is not supported",
    "data": "input pipelines are not supported: feed NumPy arrays",
    "string": "texts can be constants that are printed or fetched, but no operation takes them: use numbers",
    "boolean_mask": "its shape would depend on the data: use tf.where(mask, x, 0)",
    "py_func": "Python cannot be called from a graph: run what comes before it, and feed what your function returns",
    "sparse_placeholder": "sparse tensors are not supported: feed indices and values as two tensors",
    **dict.fromkeys(("FIFOQueue", "PaddingFIFOQueue", "RandomShuffleQueue", "QueueBase"), _QUEUES),
    **dict.fromkeys(("Barrier", "stack_push", "_stack", "_stack_push", "_stack_pop"), _QUEUES),
    "import_graph_def": "a graph is built by the program: build it again, and restore the values of its variables",
    "ref_select": _REFS,
    "_SwitchRefOrTensor": _REFS,
    "_variable": _REFS,
    "variable_axis_size_partitioner": "variables are not cut into parts: leave partitioner= out",
    "fixed_size_partitioner": "variables are not cut into parts: leave partitioner= out",
    "TensorArray": "carry a tensor through tf.while_loop, or use tf.map_fn",
}
_DTYPES = ("int8", "int16", "uint8", "uint16", "uint32", "uint64", "float16", "half", "bfloat16", "complex64")


def explain(name: str, known: Sequence[str]) -> str:
    """The text of the AttributeError for an unsupported name.

    >>> explain("reduce_summ", ["reduce_sum"])
    'undertow.compat.v1 has no reduce_summ: did you mean tf.reduce_sum?'
    """
    what = f"undertow.compat.v1 has no {name}"
    if name in _WHY:
        return f"{what}: {_WHY[name]}"
    if name in _DTYPES:
        return f"{what}: the dtypes are bool, int32, int64, float32 and float64"
    close = difflib.get_close_matches(name, [k for k in known if not k.startswith("_")], 1, 0.75)
    return (
        f"{what}: did you mean tf.{close[0]}?"
        if close
        else f"{what}; docs/reference/compat_v1.md lists what is supported"
    )
