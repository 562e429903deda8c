"""The C++ core: kernels over lanes. What is here is for tests and benchmarks; engines plan once and run there."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from undertow.engines.outside import Link

_Result = TypeVar("_Result")

class KernelFault(Exception):
    """A kernel met values that it cannot work on. `args`: the kind, the first lane that has it, a fused instruction.

    The text for users comes from the reference kernel of the operator, run on the operands of that lane.
    """

    args: tuple[Any, ...]

def kernel_traits(
    op: str, attrs: dict[str, Any], inputs: list[tuple[str, int]], outputs: list[tuple[str, int]]
) -> tuple[bool, bool, int]:
    """Is there a kernel, is it an operator on each element, and which operands decide the shape of a result (bits)?"""

def run_kernel(
    op: str,
    attrs: Mapping[str, Any],
    inputs: Sequence[npt.NDArray[np.generic]],
    shared: Sequence[bool],
    out_types: Sequence[tuple[str, int]],
    isa: str = "",
) -> list[npt.NDArray[np.generic]]:
    """Run one operator over lanes: operands that are not shared have a leading axis of lanes, and so have results.

    `out_types` are dtype and rank of each result, without that axis.
    """

def run_fused(
    instructions: Sequence[tuple[str, Sequence[int], str]],
    inputs: Sequence[npt.NDArray[np.generic]],
    shared: Sequence[bool],
    shape: Sequence[int],
    outputs: Sequence[int],
    isa: str = "",
) -> list[npt.NDArray[np.generic]]:
    """Run operators on each element piece by piece. Registers are the inputs, then the result of each instruction.

    An instruction is an operator, the registers that it reads, and its dtype. All results have the same `shape`.
    """

def packed_product(
    x: npt.NDArray[np.generic], w: npt.NDArray[np.generic], transposed: bool = False, isa: str = ""
) -> npt.NDArray[np.generic]:
    """One lane that holds x @ w (or x @ w.T), with w packed first."""

def outer_sum(
    x: npt.NDArray[np.generic], g: npt.NDArray[np.generic], start: npt.NDArray[np.generic], isa: str = ""
) -> npt.NDArray[np.generic]:
    """One lane that holds start + x.T @ g: what lanes add to the gradient of a matrix. A vector is shared."""

def fits(gradient: Any, values: Sequence[Any]) -> bool:
    """Can `update` work on this parameter with its slots, and this gradient?"""

def update(
    name: str,
    gradients: list[Any],
    values: list[Sequence[Any]],
    places: list[Sequence[Any]],
    settings: Sequence[float],
    isa: str = "",
) -> bool:
    """Write parameters and their slots, after an update, to places: others, or where they stand.

    A gradient is an array, or a pair: the numbers of rows, and the rows. Then the places hold the values already.
    False, and nothing done, where anything does not fit or places have memory in common.
    """

def time_kernel(
    op: str,
    attrs: Mapping[str, Any],
    inputs: Sequence[npt.NDArray[np.generic]],
    shared: Sequence[bool],
    out_types: Sequence[tuple[str, int]],
    seconds: float,
) -> float:
    """The best time of `run_kernel`, without Python and copies, in seconds; `seconds` is how long to try."""

def time_fused(
    instructions: Sequence[tuple[str, Sequence[int], str]],
    inputs: Sequence[npt.NDArray[np.generic]],
    shared: Sequence[bool],
    shape: Sequence[int],
    outputs: Sequence[int],
    seconds: float,
) -> float:
    """The best time of `run_fused`."""

def time_product(
    x: npt.NDArray[np.generic], w: npt.NDArray[np.generic], transposed: bool, wide: bool, seconds: float
) -> float:
    """The best time of a product with a packed matrix, or of OpenBLAS where `wide`."""

def time_outer(x: npt.NDArray[np.generic], g: npt.NDArray[np.generic], wide: bool, seconds: float) -> float:
    """The best time of `outer_sum` into one place, or of OpenBLAS where `wide`."""

def part_and_meet(
    pred: npt.NDArray[np.bool_], values: npt.NDArray[np.generic], one_yes: bool, one_no: bool, isa: str
) -> tuple[list[int], list[int], bytes, bytes, bytes]:
    """The lanes and values of each side of a branch, and what they give when they meet: all, or one for all lanes."""

def kernel_names() -> list[str]:
    """The operators that have kernels."""

def isa() -> str:
    """The instruction set that kernels use: the best there is, or the one named by UNDERTOW_ISA."""

def isas() -> list[str]:
    """The instruction sets that this machine can run."""

memory: str
"""Where lanes live: "ordinary", or "guarded" in a process whose environment has UNDERTOW_MEMORY=guarded."""

def peek(has_access: bool) -> float:
    """Reads a lane that was just written. Guarded, and without access, that is a segmentation fault: for tests."""

class Stopped(Exception):
    """A run was stopped. `args`: the kind, the node or -1, the tag, values, two numbers, and the site or -1."""

    args: tuple[Any, ...]
    plan: Any  # the owner of the plan, if `Quick.call` ran it

class RunStats:
    """What a run counted. Lists are made when they are asked for."""

    @property
    def activations(self) -> int: ...
    @property
    def waves(self) -> int: ...
    @property
    def lanes(self) -> int:
        """Of all waves together."""
    @property
    def peak_width(self) -> int: ...
    @property
    def mean_width(self) -> float: ...
    @property
    def step_seconds(self) -> dict[str, float]:
        """By kind of step, of all threads together; where the run was `timed`."""
    @property
    def packed(self) -> int:
        """Matrices that were packed once, for all waves."""
    @property
    def recalled(self) -> int:
        """Results on shared values that an earlier wave had computed."""
    @property
    def changed(self) -> int:
        """Arrays that an operator has written into, instead of a copy."""
    @property
    def shared_steps(self) -> int: ...
    @property
    def tasks(self) -> int:
        """Parts of calls that ran by themselves, perhaps on other threads."""
    @property
    def joint_runs(self) -> int:
        """Runs of operators for the lanes of several tables at once, and how many tables these were."""
    @property
    def joint_tables(self) -> int: ...
    @property
    def peak_frames(self) -> int: ...
    @property
    def peak_bytes(self) -> int: ...
    @property
    def max_depth(self) -> int: ...
    @property
    def firings(self) -> int: ...
    @property
    def fired(self) -> list[int]:
        """Lanes by node, of operators."""
    @property
    def deepest(self) -> list[Any]:
        """The tag of the first activation at the largest depth."""

class Guest:
    """A task of another process, from its first phase to its last."""

    def __init__(self, plan: Plan) -> None: ...
    @property
    def activations(self) -> int:
        """Of the last phase."""
    @property
    def waves(self) -> int:
        """Of the last phase."""

    def run(self, message: bytes, shared: Sequence[bytes | bytearray | memoryview], link: Link | None) -> bytes | None:
        """Run the phase that a message asks for: the reply, or None if it was stopped. Raises ValueError."""

    def stop(self) -> None:
        """End it as soon as possible; from any thread."""

class WireLost(ConnectionError):
    """A part has closed its end of a wire, or the connection has failed. `args`: the number of the part."""

class WireStopped(Exception):
    """The descriptor that stops a wire has become readable."""

class Wire:
    """One part's connections to the other parts of a placed graph. Used by one thread at a time.

    `sockets`, descriptors by part (-1: none), belong to it from now on; `stop` does not.
    """

    def __init__(self, sockets: Sequence[int], stop: int = -1, window: int = 16777216) -> None: ...
    @property
    def is_full(self) -> bool:
        """Whether so much is on its way to some part that no more should be made for now."""
    @property
    def is_sent(self) -> bool:
        """Whether all has gone to the system."""

    def send(self, part: int, data: bytes | bytearray | memoryview) -> None:
        """Append to the batch that is being made for a part; a large one begins to go."""

    def flush(self) -> None:
        """All batches begin to go."""

    def take(self, seconds: float) -> list[tuple[int, bytes]]:
        """What has come: parts and batches, for each part in order. Waits so long at most; sends what waits meanwhile.

        Raises WireLost and WireStopped, and ValueError if what has come makes no sense.
        """

    def counts(self) -> list[tuple[int, int, int, int]]:
        """For each part: batches and bytes that were sent to it, batches and bytes that were taken from it."""

    def pour(self, part: int, row: bytes, count: int) -> None:
        """Send a row so often, for benchmarks."""

    def swallow(self, part: int, bytes: int) -> None:
        """Drop what comes, until so many bytes have come from a part in all; likewise."""

    def swing(self, part: int, row: bytes, count: int, begins: bool) -> None:
        """Send a row and wait for as many bytes, or the other way around, so often; likewise."""

    def close(self) -> None:
        """Close the sockets: once nobody is in `take` any more."""

class Plan:
    """A static graph, decoded and ready to run. Holds nothing of any run."""

    @property
    def code(self) -> str:
        """The code of narrow groups, and the frames of those that run by an agenda, as text."""
    @property
    def fused(self) -> list[list[int]]:
        """The nodes of the operators that run in one pass, for each such pass."""

    def run(
        self,
        inputs: Sequence[npt.NDArray[np.generic]],
        apply: Callable[[int, list[Any]], list[Any]],
        where: list[Any],
        width: int,
        frames: int,
        max_depth: int,
        memory: int,
        timeout: float,
        check_finite: bool,
        shows_progress: bool = False,
        goes_deep: bool = False,
        threads: int = 1,
        trace: Callable[[int, int, int, int, int], None] | None = None,
        timed: bool = False,
        link: Link | None = None,
        wire: Wire | None = None,
        scheduler: int = 0,
    ) -> tuple[list[Any], RunStats]:
        """Run once: a number or array for each fetch, None for order tokens; and counters. Raises Stopped.

        `apply(node, operands)` runs what has no kernel; where it raises, the tag that it was called for is in `where`.
        `goes_deep`: no group runs by agenda. `wire` leads to the other parts, if this is the plan of one.
        """

def decode(rows: npt.NDArray[np.int64], words: Sequence[str], constants: Sequence[npt.NDArray[np.generic]]) -> Plan:
    """Make a plan of rows; a ValueError where they make no sense."""

def usable_cores() -> int:
    """The default number of threads of a run: the cores that this process may use now."""

class RunOptions:
    """The limits of runs that give their results alone. `threads=0`: one for each core."""

    def __init__(
        self,
        frames: int,
        max_depth: int,
        memory: int,
        timeout: float,
        check_finite: bool,
        shows_progress: bool,
        goes_deep: bool,
        threads: int,
    ) -> None: ...

class Direct:
    """A program that runs without Python: its plan, and the structure of its result.

    `owner` explains why a run was stopped; `build(token, contents)` makes a container that is neither a tuple, a list
    nor a dict.
    """

    def __init__(
        self,
        owner: object,
        plan: Plan,
        width: int,
        structure: tuple[tuple[Any, ...], ...],
        build: Callable[[tuple[Any, ...], list[Any]], Any],
    ) -> None: ...
    @staticmethod
    def is_possible(plan: Plan) -> bool:
        """Does the host run no operator of it, and are all its results values?"""

class Guards:
    """What a program has read outside, as rows: see frontend/trace/guards.py.

    `is_equal(a, b)` compares constants that the core does not know.
    """

    def __init__(
        self,
        rows: list[tuple[int, Any, int, Any, int, Any, int, bool]],
        is_equal: Callable[[Any, Any], bool],
    ) -> None: ...
    def __len__(self) -> int: ...
    def read(self, arguments: Sequence[Any]) -> list[Any] | None:
        """The hidden arguments of a call with these objects; None if something else has changed."""

    @property
    def changed(self) -> int:
        """The number of the place that had changed, the last time."""

class Quick:
    """The calls of a function seen so far, at `most` so many.

    `parts(value)` gives the token and contents of a container that is neither a tuple, a list nor a dict; or the class
    of an object that counts by it, and that guards read.
    """

    def __init__(self, parts: Callable[[Any], tuple[object, list[Any]] | type | None], most: int) -> None: ...
    def __len__(self) -> int: ...
    def add(
        self,
        args: tuple[Any, ...],
        dtypes: Sequence[int],
        sizes: Sequence[int],
        program: object,
        hidden: Guards | None = None,
    ) -> bool:
        """Remember a call: the dtype of each leaf, the sizes of all axes of its arrays, its program.

        A size ~2k is open: all axes with the same k have equal sizes; ~(2k + 1) is open from 2 on. `hidden` reads the
        inputs of the program that are no arguments; None if it cannot be used any more. False if the call cannot be
        remembered.
        """
    def find(self, args: tuple[Any, ...]) -> tuple[Any, list[Any]] | None:
        """The program and its input leaves, if a call like this was seen before."""
    def call(self, args: tuple[Any, ...], options: RunOptions) -> Any:
        """The result of `program.direct`, if a call like this was seen before; else NotImplemented. Raises Stopped."""

class Templates:
    """A static graph as templates, ready to be copied. Holds nothing of any run."""

    def run(
        self,
        inputs: Sequence[npt.NDArray[np.generic]],
        apply: Callable[[int, list[Any]], list[Any]],
        where: list[Any],
        frames: int,
        max_depth: int,
        memory: int,
        timeout: float,
        check_finite: bool,
        shows_progress: bool = False,
        threads: int = 1,
        scheduler: int = 0,
        schedule_seed: int = 0,
    ) -> tuple[list[Any], RunStats]:
        """Run once, as `Plan.run` does."""

def decode_templates(
    rows: npt.NDArray[np.int64], words: Sequence[str], constants: Sequence[npt.NDArray[np.generic]]
) -> Templates:
    """Make templates of rows; a ValueError where they make no sense."""

class Taken(Exception):
    """This thread writes a cell already, or would wait for itself. `args`: the name of the cell."""

class Cell:
    """What a variable holds. Only a transaction changes it."""

    def __init__(self, value: Any) -> None: ...
    @property
    def value(self) -> Any: ...

def snapshot(cells: dict[str, Cell]) -> dict[str, Any]:
    """The values of cells, of one moment."""

def transact(
    cells: dict[str, Cell], written: list[str], work: Callable[[dict[str, Any]], tuple[_Result, list[Any]]]
) -> _Result:
    """Call `work` with the values of the cells, by name. It gives a result, and a value for each name in `written`.

    These are committed together. Transactions that write the same cell come one after the other.
    """

def listen_to_compile(listener: Callable[[Any, Any], None]) -> bool:
    """From now on, call `listener(source, filename)` before each text is compiled. False if that is not allowed."""
