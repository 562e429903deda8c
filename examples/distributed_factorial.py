"""A recursive function on two servers, with the clusters of TensorFlow 1: each computes a part of every activation."""

import json
import subprocess
import sys
from contextlib import contextmanager
from socket import socket

import undertow.compat.v1 as tf
from undertow.compat.v1 import function

factorial = function.Declare("Factorial", [("n", tf.int32)], [("product", tf.int32)])


@function.Defun(tf.int32, func_name="Factorial", out_names=["product"])
def factorial_body(n):
    def last():
        with tf.device("/job:local/task:0"):
            return tf.constant(1)

    def more():
        with tf.device("/job:local/task:1"):
            return n * factorial(n - 1)

    with tf.device("/job:local/task:1"):
        is_last = tf.less_equal(n, 1)
    return tf.cond(is_last, last, more)


@contextmanager
def servers(count):
    """So many servers, each a process of its own. Yields where the first one listens."""
    sockets = [socket() for _ in range(count)]
    for each in sockets:
        each.bind(("localhost", 0))
    addresses = [f"localhost:{each.getsockname()[1]}" for each in sockets]
    for each in sockets:
        each.close()
    command = [sys.executable, "-m", "undertow", "server", "--cluster", json.dumps({"local": addresses}), "--task"]
    processes = [subprocess.Popen([*command, str(task)], stdout=subprocess.DEVNULL) for task in range(count)]
    try:
        yield f"grpc://{addresses[0]}"
    finally:
        for process in processes:
            process.terminate()
            process.wait()


factorial_body.add_to_graph(tf.get_default_graph())
n = tf.placeholder(tf.int32, shape=[])
product = factorial(n)
with servers(2) as target, tf.Session(target) as session:
    found = [int(session.run(product, {n: number})) for number in (5, 10)]
assert found == [120, 3628800]
print("5! =", found[0])
print("10! =", found[1])
