"""The TensorFlow 1 API: programs written for it run after changing their imports.

    import undertow.compat.v1 as tf
    from undertow.compat.v1 import function

The same library and engines as everywhere in Undertow: functions become one static graph, and a run computes only
what its fetches need. Reads and writes of variables are ordered only by your own control edges.
"""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

from undertow.compat.v1 import contrib as contrib
from undertow.compat.v1 import data as data
from undertow.compat.v1 import errors as errors
from undertow.compat.v1 import function as function
from undertow.compat.v1 import layers as layers
from undertow.compat.v1 import losses as losses
from undertow.compat.v1 import math as math
from undertow.compat.v1 import nn as nn
from undertow.compat.v1 import summary as summary
from undertow.compat.v1 import train as train
from undertow.compat.v1.array import *  # noqa: F403
from undertow.compat.v1.arrays.arranging import *  # noqa: F403
from undertow.compat.v1.arrays.checks import *  # noqa: F403
from undertow.compat.v1.arrays.indices import *  # noqa: F403
from undertow.compat.v1.arrays.matrices import *  # noqa: F403
from undertow.compat.v1.arrays.numbers import *  # noqa: F403
from undertow.compat.v1.arrays.segments import *  # noqa: F403
from undertow.compat.v1.control import *  # noqa: F403
from undertow.compat.v1.derivatives.curvature import *  # noqa: F403
from undertow.compat.v1.derivatives.slices import *  # noqa: F403
from undertow.compat.v1.gradients import *  # noqa: F403
from undertow.compat.v1.graph import Graph as Graph
from undertow.compat.v1.graph import get_default_graph as get_default_graph
from undertow.compat.v1.graph import reset_default_graph as reset_default_graph
from undertow.compat.v1.graphs.collection import *  # noqa: F403
from undertow.compat.v1.graphs.dtypes import dtype_of
from undertow.compat.v1.graphs.overrides import *  # noqa: F403
from undertow.compat.v1.graphs.scopes import *  # noqa: F403
from undertow.compat.v1.graphs.seeds import *  # noqa: F403
from undertow.compat.v1.graphs.shapes import *  # noqa: F403
from undertow.compat.v1.graphs.sparse import SparseTensor as SparseTensor
from undertow.compat.v1.layers.template import make_template as make_template
from undertow.compat.v1.math import *  # noqa: F403
from undertow.compat.v1.mirrored import flags as flags
from undertow.compat.v1.mirrored import testing as test
from undertow.compat.v1.mirrored import timeline as timeline
from undertow.compat.v1.mirrored.config import *  # noqa: F403
from undertow.compat.v1.mirrored.modules import install
from undertow.compat.v1.mirrored.own_names import mirrored, run_app
from undertow.compat.v1.mirrored.run_options import *  # noqa: F403
from undertow.compat.v1.missing import explain
from undertow.compat.v1.raw import strided_slice as strided_slice
from undertow.compat.v1.raw import tuple as tuple
from undertow.compat.v1.repetition.folds import *  # noqa: F403
from undertow.compat.v1.repetition.tensor_array import TensorArray as TensorArray
from undertow.compat.v1.session import *  # noqa: F403
from undertow.compat.v1.state import *  # noqa: F403
from undertow.compat.v1.summary import Event as Event
from undertow.compat.v1.summary import Summary as Summary
from undertow.compat.v1.tensor import Operation as Operation
from undertow.compat.v1.tensor import Tensor as Tensor
from undertow.compat.v1.values.initializers import *  # noqa: F403
from undertow.compat.v1.values.random import *  # noqa: F403
from undertow.types import DType as DType
from undertow.types import bool_, f32, f64, i32, i64
from undertow.viz.messages import GraphDef as GraphDef

OpError = errors.OpError
compat = SimpleNamespace(v1=sys.modules[__name__])
bool, int32, int64, float32, float64 = bool_, i32, i64, f32, f64
double, float, int = float64, float32, int32
as_dtype = dtype_of
__version__ = "1.15.0"  # programs check it to choose between APIs


def disable_v2_behavior() -> None:
    """Accepted: this is version 1. Control flow is part of the graph, and variables are read where they are used."""


disable_eager_execution = disable_control_flow_v2 = disable_resource_variables = disable_v2_behavior


_MIRRORS = install(mirrored(sys.modules[__name__]))
logging = _MIRRORS["python.platform.tf_logging"]
app = SimpleNamespace(run=run_app, flags=flags)
sysconfig = SimpleNamespace(get_include=lambda: "", get_lib=lambda: "")


# All that is public: the names above, and of the modules those that TensorFlow has.
__all__ = sorted(
    name
    for name, value in globals().items()
    if not name.startswith("_")
    and (
        value in (contrib, data, errors, flags, function, layers, losses, math, nn, summary, test, timeline, train)
        or not isinstance(value, ModuleType)
    )
    and name
    not in (
        "Any",
        "ModuleType",
        "SimpleNamespace",
        "annotations",
        "explain",
        "bool_",
        "dtype_of",
        "f32",
        "f64",
        "i32",
        "i64",
        "sys",
    )
)


def __getattr__(name: str) -> Any:  # checkers take it for all the names that are made from rows
    raise AttributeError(explain(name, __all__))


def __dir__() -> list[str]:
    return sorted(__all__)
