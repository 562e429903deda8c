"""Rival in gradient descent on x^n: TensorFlow 2, as the program of Vasilakopoulos' thesis (figure 6.2) has it.

`python rivals/tf_descent.py function` decorates the recursion with `tf.function`, which unrolls it when it is traced;
`eager` does not. It reads a line of JSON, {"n", "steps", "rate"}, for each descent, and answers with where that arrives
and the seconds of the processor and on the clock, tracing included. Other Pythons run it: it needs TensorFlow alone.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
DEEP = 1_000_000  # frames of Python: tracing recurses
DEEP_STACK = 1 << 29  # bytes


def serve() -> None:
    try:
        import tensorflow as tf
    except ImportError:
        print(json.dumps({"missing": "not installed"}), flush=True)
        return
    tf.config.threading.set_inter_op_parallelism_threads(1)
    tf.config.threading.set_intra_op_parallelism_threads(1)
    print(json.dumps({"version": tf.__version__}), flush=True)

    def descend(n: int, steps: int, rate: float) -> float:
        def power(n: int, x: tf.Variable) -> tf.Tensor:
            return tf.constant(1.0) if n == 0 else x * power(n - 1, x)

        if sys.argv[1] == "function":
            power = tf.function(power)  # each n of the recursion is traced, and calls the one below
        x = tf.Variable(1.0, dtype=tf.float32)
        for _ in range(steps):
            with tf.GradientTape() as tape:
                loss = power(n, x)
            x.assign_sub(rate * tape.gradient(loss, x))
        return float(x.numpy())

    for line in sys.stdin:
        clock, processor = time.perf_counter(), time.process_time()
        try:
            arrival = descend(**json.loads(line))
            seconds = {"processor": time.process_time() - processor, "clock": time.perf_counter() - clock}
            print(json.dumps({"arrival": arrival, **seconds}), flush=True)
        except Exception as fault:
            print(json.dumps({"failed": type(fault).__name__}), flush=True)


if __name__ == "__main__":
    sys.setrecursionlimit(DEEP)
    threading.stack_size(DEEP_STACK)
    thread = threading.Thread(target=serve)
    thread.start()
    thread.join()
