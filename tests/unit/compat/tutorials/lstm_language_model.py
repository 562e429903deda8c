"""A language model as in the PTB tutorial: LSTMs unrolled by hand, shared variables, clipped gradients, a fed state."""

import numpy as np

import undertow.compat.v1 as tf

vocab_size, hidden_size, num_layers, batch_size, num_steps = 5, 16, 2, 4, 6
text = np.array([0, 1, 2, 3, 4, 3, 2, 1] * 40)  # each word follows from the last two


class Model:
    def __init__(self, is_training):
        self.input_data = tf.placeholder(tf.int32, [batch_size, num_steps])
        self.targets = tf.placeholder(tf.int32, [batch_size, num_steps])

        def lstm_cell():
            cell = tf.contrib.rnn.BasicLSTMCell(hidden_size, forget_bias=0.0, state_is_tuple=True)
            return tf.contrib.rnn.DropoutWrapper(cell, output_keep_prob=0.95) if is_training else cell

        cell = tf.contrib.rnn.MultiRNNCell([lstm_cell() for _ in range(num_layers)], state_is_tuple=True)
        self.initial_state = cell.zero_state(batch_size, tf.float32)
        embedding = tf.get_variable("embedding", [vocab_size, hidden_size], dtype=tf.float32)
        inputs = tf.nn.embedding_lookup(embedding, self.input_data)
        outputs = []
        state = self.initial_state
        with tf.variable_scope("RNN"):
            for time_step in range(num_steps):
                if time_step > 0:
                    tf.get_variable_scope().reuse_variables()
                (cell_output, state) = cell(inputs[:, time_step, :], state)
                outputs.append(cell_output)
        output = tf.reshape(tf.stack(axis=1, values=outputs), [-1, hidden_size])
        softmax_w = tf.get_variable("softmax_w", [hidden_size, vocab_size])
        softmax_b = tf.get_variable("softmax_b", [vocab_size])
        logits = tf.matmul(output, softmax_w) + softmax_b
        loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.reshape(self.targets, [-1]), logits=logits)
        self.cost = tf.reduce_sum(loss) / batch_size
        self.final_state = state
        if not is_training:
            return
        self.lr = tf.Variable(0.0, trainable=False)
        tvars = tf.trainable_variables()
        grads, _ = tf.clip_by_global_norm(tf.gradients(self.cost, tvars), 5)
        optimizer = tf.train.AdamOptimizer(self.lr)
        self.train_op = optimizer.apply_gradients(
            zip(grads, tvars, strict=True), global_step=tf.train.get_or_create_global_step()
        )
        self.new_lr = tf.placeholder(tf.float32, shape=[], name="new_learning_rate")
        self.lr_update = tf.assign(self.lr, self.new_lr)


def run_epoch(session, model, eval_op=None):
    data = text[: len(text) // batch_size * batch_size].reshape(batch_size, -1)
    costs, iters = 0.0, 0
    state = session.run(model.initial_state)
    for step in range((data.shape[1] - 1) // num_steps):
        x = data[:, step * num_steps : (step + 1) * num_steps]
        y = data[:, step * num_steps + 1 : (step + 1) * num_steps + 1]
        feed_dict = {model.input_data: x, model.targets: y}
        for i, (c, h) in enumerate(model.initial_state):
            feed_dict[c] = state[i].c
            feed_dict[h] = state[i].h
        fetches = {"cost": model.cost, "final_state": model.final_state}
        if eval_op is not None:
            fetches["eval_op"] = eval_op
        vals = session.run(fetches, feed_dict)
        state = vals["final_state"]
        costs += vals["cost"]
        iters += num_steps
    return np.exp(costs / iters)


with tf.Graph().as_default():
    tf.set_random_seed(0)
    initializer = tf.random_uniform_initializer(-0.3, 0.3)
    with tf.variable_scope("Model", reuse=None, initializer=initializer):
        m = Model(is_training=True)
    with tf.variable_scope("Model", reuse=True, initializer=initializer):
        mvalid = Model(is_training=False)
    names = [v.op.name for v in tf.trainable_variables()]
    assert "Model/RNN/multi_rnn_cell/cell_1/basic_lstm_cell/kernel" in names and len(names) == 7, names
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(m.lr_update, feed_dict={m.new_lr: 0.02})
        first = run_epoch(session, mvalid)
        for _ in range(8):
            run_epoch(session, m, m.train_op)
        last = run_epoch(session, mvalid)
assert first > 4 and last < 1.5, (first, last)
