"""Made-up digits: noisy pictures of ten patterns, 8 by 8, as the tutorials have MNIST."""

import numpy as np


class DataSet:
    def __init__(self, images, labels, seed):
        self.images, self.labels = images, labels
        self._rng = np.random.RandomState(seed)

    def next_batch(self, size):
        chosen = self._rng.randint(len(self.images), size=size)
        return self.images[chosen], self.labels[chosen]


def read_data_sets(one_hot=True, seed=0, noise=0.3):
    rng = np.random.RandomState(seed)
    patterns = (rng.rand(10, 64) > 0.6).astype(np.float32)

    def made(count, number):
        labels = rng.randint(10, size=count)
        images = patterns[labels] + noise * rng.randn(count, 64).astype(np.float32)
        return DataSet(images, np.eye(10, dtype=np.float32)[labels] if one_hot else labels, number)

    return made(600, seed + 1), made(200, seed + 2)
