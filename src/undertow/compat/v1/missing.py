"""Error texts for TensorFlow names that are not supported."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

_SUPERVISED = "variables live in one session: use tf.Session(server.target), and run the initializer"
_WHY = {
    "GradientTape": "that is TensorFlow 2: use tf.gradients",
    "train.MonitoredTrainingSession": _SUPERVISED,
    "train.Supervisor": _SUPERVISED,
    "train.Saver": "fetch the variables, and save them with np.savez",
    "layers": "layers are not supported: write them with tf.matmul and tf.Variable",
    "keras": "Keras is not supported: write the model with tf.matmul and tf.Variable",
    "contrib": "tf.contrib is not supported",
    "data": "input pipelines are not supported: feed NumPy arrays",
    "string": "string tensors are not supported: use numbers",
    "boolean_mask": "its shape would depend on the data: use tf.where(mask, x, 0)",
    "py_func": "Python cannot be called from a graph",
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
