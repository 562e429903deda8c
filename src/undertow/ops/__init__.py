"""The catalogue of operators: every operator is one complete row of data, in the file of its family."""

from undertow.ops import (
    arith,
    array,
    create,
    debug,
    factor,
    fft,
    index,
    linalg,
    logic,
    nn,
    parts,
    put,
    random,
    reduce,
    replicas,
    scatter,
    special,
    state,
    update,
)
from undertow.ops.op import register

FAMILIES = (
    arith, parts, special, logic, nn, reduce, linalg, factor, fft, array, index, scatter, put, create, random, debug,
    state, update, replicas,
)  # fmt: skip

for _family in FAMILIES:
    for _row in _family.ROWS:
        register(_row)
