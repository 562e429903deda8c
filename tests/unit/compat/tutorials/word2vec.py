"""word2vec, skip-gram: embeddings by noise-contrastive estimation. Words of one half of a corpus come together."""

import numpy as np

import undertow.compat.v1 as tf

rng = np.random.RandomState(0)
vocabulary_size, embedding_size, batch_size, num_sampled = 12, 6, 64, 4
# Sentences use either the words 0 to 5, or the words 6 to 11.
corpus = np.concatenate([rng.randint(6, size=8) + 6 * (k % 2) for k in range(120)])


def generate_batch():
    places = rng.randint(1, len(corpus) - 1, size=batch_size)
    return corpus[places], corpus[places + rng.choice([-1, 1], size=batch_size)][:, None]


graph = tf.Graph()
with graph.as_default():
    tf.set_random_seed(3)
    train_inputs = tf.placeholder(tf.int32, shape=[batch_size])
    train_labels = tf.placeholder(tf.int32, shape=[batch_size, 1])
    with tf.device("/cpu:0"):
        embeddings = tf.Variable(tf.random_uniform([vocabulary_size, embedding_size], -1.0, 1.0))
        embed = tf.nn.embedding_lookup(embeddings, train_inputs)
        nce_weights = tf.Variable(
            tf.truncated_normal([vocabulary_size, embedding_size], stddev=1.0 / np.sqrt(embedding_size))
        )
        nce_biases = tf.Variable(tf.zeros([vocabulary_size]))
    loss = tf.reduce_mean(
        tf.nn.nce_loss(
            weights=nce_weights, biases=nce_biases, labels=train_labels, inputs=embed, num_sampled=num_sampled,
            num_classes=vocabulary_size,
        )
    )  # fmt: skip
    optimizer = tf.train.GradientDescentOptimizer(1.0).minimize(loss)
    norm = tf.sqrt(tf.reduce_sum(tf.square(embeddings), 1, keep_dims=True))
    normalized_embeddings = embeddings / norm
    similarity = tf.matmul(normalized_embeddings, normalized_embeddings, transpose_b=True)
    init = tf.global_variables_initializer()

with tf.Session(graph=graph) as session:
    init.run()
    losses = []
    for _ in range(400):
        inputs, labels = generate_batch()
        _, value = session.run([optimizer, loss], feed_dict={train_inputs: inputs, train_labels: labels})
        losses.append(value)
    sim = similarity.eval()

same = np.equal.outer(np.arange(12) < 6, np.arange(12) < 6)
assert np.mean(losses[-50:]) < 0.8 * np.mean(losses[:50]), (losses[:3], losses[-3:])
assert sim[same].mean() > sim[~same].mean() + 0.3, (sim[same].mean(), sim[~same].mean())
