"""All that is public, under its public name. The package itself loads this file when it is first asked for a name."""

from types import ModuleType as _ModuleType

from undertow.api import optim as optim
from undertow.api.behaviors import Behavior as Behavior
from undertow.api.behaviors import Behaviors as Behaviors
from undertow.api.behaviors import behaviors as behaviors
from undertow.api.check_grads import check_grads as check_grads
from undertow.api.custom import custom_jvp as custom_jvp
from undertow.api.custom import custom_vjp as custom_vjp
from undertow.api.function import Function as Function
from undertow.api.function import function as function
from undertow.api.grad import checkpoint as checkpoint
from undertow.api.grad import grad as grad
from undertow.api.grad import hessian as hessian
from undertow.api.grad import jacobian as jacobian
from undertow.api.grad import value_and_grad as value_and_grad
from undertow.api.grad import vjp as vjp
from undertow.api.jvp import hvp as hvp
from undertow.api.jvp import jvp as jvp
from undertow.api.load import load as load
from undertow.api.options import options as options
from undertow.api.reap import reap as reap
from undertow.api.save import save as save
from undertow.errors import CaptureError as CaptureError
from undertow.errors import DataError as DataError
from undertow.errors import Fault as Fault
from undertow.errors import FrameLimit as FrameLimit
from undertow.errors import GradientMismatch as GradientMismatch
from undertow.errors import GraphError as GraphError
from undertow.errors import InternalError as InternalError
from undertow.errors import LoadError as LoadError
from undertow.errors import Raised as Raised
from undertow.errors import RecursionLimit as RecursionLimit
from undertow.errors import RunError as RunError
from undertow.errors import SaveError as SaveError
from undertow.errors import Timeout as Timeout
from undertow.errors import TypeMismatch as TypeMismatch
from undertow.errors import UndertowError as UndertowError
from undertow.errors import UnknownName as UnknownName
from undertow.errors import WorkerLost as WorkerLost
from undertow.frontend.control.forms import cond as cond
from undertow.frontend.control.forms import map as map
from undertow.frontend.control.forms import shared as shared
from undertow.frontend.control.forms import while_loop as while_loop
from undertow.frontend.functions import matrices as linalg
from undertow.frontend.functions.public import *  # noqa: F403
from undertow.frontend.values import random as random
from undertow.frontend.values.device import device as device
from undertow.frontend.values.rows import IndexedRows as IndexedRows
from undertow.frontend.values.scopes import control_dependencies as control_dependencies
from undertow.frontend.values.state import Variable as Variable
from undertow.frontend.values.static import static as static
from undertow.subgraph import SubGraph as SubGraph
from undertow.types import Array as Array
from undertow.types import DType as DType
from undertow.types import Type as Type
from undertow.types import bool_ as bool  # noqa: F401  # public under this name
from undertow.types import c64 as c64
from undertow.types import c128 as c128
from undertow.types import f32 as f32
from undertow.types import f64 as f64
from undertow.types import i32 as i32
from undertow.types import i64 as i64
from undertow.viz.event_file import EventWriter as EventWriter

# Of the modules, those that are given a name here.
__all__ = sorted(
    name
    for name, value in globals().items()
    if not name.startswith("_") and (value in (linalg, optim, random) or not isinstance(value, _ModuleType))
)
