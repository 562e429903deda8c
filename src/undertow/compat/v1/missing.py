"""Error texts for TensorFlow names that are not supported."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

_SUPERVISED = "variables live in one session: use tf.Session(server.target), and run the initializer"
# What to do instead, and the names for which that is the answer.
_INSTEAD = (
    (
        "there are no queues: read the data with tf.data.Dataset, whose iterators feed runs",
        "train.Coordinator train.LooperThread train.QueueRunner train.add_queue_runner train.batch train.batch_join "
        "train.input_producer train.limit_epochs train.maybe_batch train.maybe_shuffle_batch "
        "train.range_input_producer train.shuffle_batch train.shuffle_batch_join train.slice_input_producer "
        "train.start_queue_runners train.string_input_producer FIFOQueue PaddingFIFOQueue PriorityQueue QueueBase "
        "RandomShuffleQueue ConditionalAccumulator",
    ),
    (
        "files are not read in a graph: read them in Python, and use tf.data.Dataset.from_generator",
        "FixedLengthRecordReader IdentityReader TFRecordReader TextLineReader WholeFileReader decode_csv decode_raw "
        "gfile image matching_files parse_example parse_single_example python_io read_file write_file "
        "data.TFRecordDataset data.TextLineDataset data.FixedLengthRecordDataset",
    ),
    (
        "graphs are not read from files: build the graph again, and restore its variables",
        "train.export_meta_graph train.import_meta_graph train.write_graph import_graph_def",
    ),
    (
        "there are no hooks: write the loop `while step < n: sess.run(train)`",
        "train.CheckpointSaverHook train.LoggingTensorHook train.NanTensorHook train.SessionRunHook "
        "train.StepCounterHook train.StopAtStepHook train.SummarySaverHook",
    ),
    (_SUPERVISED, "train.MonitoredTrainingSession train.Supervisor train.SessionManager train.Scaffold"),
    ("use tf.train.AdagradOptimizer", "train.FtrlOptimizer train.AdagradDAOptimizer train.ProximalAdagradOptimizer"),
    (
        "use tf.train.GradientDescentOptimizer, and a penalty in the loss",
        "train.ProximalGradientDescentOptimizer",
    ),
    ("use ut.ray.DataParallel", "train.SyncReplicasOptimizer"),
    ("build the graph, and run it in a loop", "estimator contrib.learn"),
    ("use tf.one_hot and tf.nn.embedding_lookup", "feature_column"),
    ("Keras is not supported: use tf.layers", "keras"),
    ("compute it in NumPy, from what a run returns", "metrics"),
    ("volumes are not supported: use conv2d", "layers.conv3d nn.conv3d"),
    ("use tf.nn.dynamic_rnn, or tf.while_loop with a tf.TensorArray", "nn.raw_rnn contrib.seq2seq"),
    ("use tf.nn.dynamic_rnn", "contrib.legacy_seq2seq"),
    ("use tf.layers, tf.nn and tf.glorot_uniform_initializer", "contrib.layers contrib.slim"),
    ("use tf.data", "contrib.data"),
    ("use tf.losses", "contrib.losses"),
    ("of tf.contrib, only tf.contrib.rnn is supported", "contrib"),
    ("use tf.nn.rnn_cell.LSTMCell", "contrib.rnn.LayerNormBasicLSTMCell"),
    (
        "texts can be constants that are printed or fetched, but no operation takes them: use numbers",
        "string string_split string_join as_string string_to_number substr",
    ),
    (
        "sparse tensors are not supported: use tf.gather, tf.scatter_nd and tf.segment_sum",
        "sparse_placeholder sparse_tensor_dense_matmul sparse_to_dense nn.embedding_lookup_sparse",
    ),
    ("complex numbers are not supported here: compute with real and imaginary parts", "complex"),
    ("that is TensorFlow 2: use tf.gradients", "GradientTape"),
    ("Python cannot be called from a graph: run what comes before it, and feed what your function returns", "py_func"),
    (
        "there are no references to a variable's memory: use the variable, which is read where it is used",
        "ref_select _SwitchRefOrTensor _variable",
    ),
    (
        "variables are not cut into parts: leave partitioner= out",
        "variable_axis_size_partitioner fixed_size_partitioner",
    ),
    ("there are no stacks: carry a tensor or a tf.TensorArray", "Barrier stack_push _stack _stack_push _stack_pop"),
)
_WHY = {name: why for why, names in _INSTEAD for name in names.split()}
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
