"""The plan that the core executes, as frozen data. Regions have slots and programs, programs have stages of items.

Each *body* (main, a function, a loop, a map) and each side of a branch is a region. A region has *slots*, one for each
value that lives in it, and *programs*: a body has one for each phase, a branch one for each visit. A program is a list
of *stages*. A stage is a straight run of operators, then what is entered together: branches, calls, loops, maps. The
next stage begins when all of these have returned. So calls of one stage that enter one group of functions are one
wave.

These classes also define the encoding: `encode` writes the fields of a record in the order in which they are declared,
and `header` generates the C++ records from them. A `Name` is for people, and stays in Python.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Union

from undertow.ir.graph import Attrs, Const
from undertow.types import Type

Name = str  # for people: never sent to the core
NodeName = str  # a node of the static graph, which errors and counters name
Operand = int  # a slot of the item's region or, if negative, constant number ~operand
SlotNumber = int
RegionNumber = int
KernelNumber = int
NO_SLOT = -(2**31)  # for unused results and for order tokens

RegionKind = Literal["main", "function", "loop", "map", "branch"]
SlotKind = Literal["value", "entry_handle", "run_handle", "order"]
Home = Literal["host", "lanes"]
DeferredKind = Literal["none", "held", "kept", "ahead"]
CollectKind = Literal["whole", "rows", "product"]
InstructionKind = Literal["each", "fold", "pick", "place"]
Schedule = Literal["lockstep", "agenda"]


@dataclass(frozen=True, slots=True)
class Kernel:
    """An operator, its attributes, and the dtypes and ranks of its operands and results."""

    op: Name
    attrs: Attrs
    inputs: tuple[tuple[str, int], ...]
    outputs: tuple[tuple[str, int], ...]
    is_effect: bool = False  # it has side effects: the host runs it, lane by lane


@dataclass(frozen=True, slots=True)
class Slot:
    """A place for one value of each lane."""

    name: Name
    type: Type
    kind: SlotKind = "value"  # or a handle into a growing table that lives as long as an entry or the run
    home: Home = "host"  # "lanes", on a device, only if no predicate, index or shape depends on it
    is_shared: bool = False  # one value for all lanes of all waves below an entry
    is_passed: bool = False  # only calls read it, so its rows need not be contiguous

    def with_home(self, home: Home) -> Slot:  # `dataclasses.replace` takes four times as long
        return Slot(self.name, self.type, self.kind, home, self.is_shared, self.is_passed)


@dataclass(frozen=True, slots=True)
class Transfer:
    """A value passed into a region."""

    source: Operand  # in the outer region
    to: SlotNumber  # in the region entered


@dataclass(frozen=True, slots=True)
class Exit:
    """A value returned from a region."""

    source: Operand  # in the region entered
    to: SlotNumber  # in the outer region


@dataclass(frozen=True, slots=True)
class Merge:
    """A value returned from either side of a branch."""

    to: SlotNumber
    sides: tuple[Operand, Operand]


@dataclass(frozen=True, slots=True)
class Op:
    """One operator on all lanes."""

    node: NodeName
    kernel: KernelNumber
    inputs: tuple[Operand, ...]
    outputs: tuple[SlotNumber, ...]
    last: tuple[int, ...] = ()  # inputs that are arrays with one owner, for which this is the last use


@dataclass(frozen=True, slots=True)
class Branch:
    """One visit to the two sides of a branch."""

    branch: int  # number among the branches of its region
    pred: SlotNumber
    visit: int  # number of the program of each side; the first divides the lanes, later ones keep the division
    is_last: bool  # is it the last visit of this phase?
    regions: tuple[RegionNumber, RegionNumber]  # the true and the false side
    transfers: tuple[tuple[Transfer, ...], tuple[Transfer, ...]]
    merges: tuple[Merge, ...]
    drops: tuple[SlotNumber, ...] = ()  # slots that are dead once the sides have their values


@dataclass(frozen=True, slots=True)
class Call:
    """A call, or in later phases a resume."""

    site: int  # the label that it pushes
    call: int  # number among the calls of its region
    phase: int
    callees: tuple[RegionNumber, ...]  # one for now; of several, `selector` would choose for each lane
    selector: Operand
    resume_group: int  # equal for calls that are resumed at the same points: their lanes may share chunks
    arguments: tuple[Operand, ...]
    hoists: tuple[Operand, ...]  # hoisted arguments; if there are any, the call makes an entry
    results: tuple[SlotNumber, ...]
    visits: tuple[int, ...]  # first phase only: [k] is how often the callee is visited if the caller is k + 1 times
    family: int = -1  # the site of the first of the sibling calls, whose lanes are interleaved
    sibling: int = 0  # its place among them
    siblings: int = 1  # how many there are
    drops: tuple[SlotNumber, ...] = ()  # slots that are dead once the callee has its arguments


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop: each lane iterates until its predicate is false."""

    site: int
    loop: int  # number among the loops of its region
    body: RegionNumber
    branch: int  # number of the branch of the body whose true side continues the loop
    variables: tuple[Transfer, ...]
    outers: tuple[Transfer, ...]
    next: tuple[Operand, ...]  # the next value of each variable, in the true side of that branch
    exits: tuple[Exit, ...]


@dataclass(frozen=True, slots=True)
class Map:
    """A map: each element of its arrays is a lane."""

    site: int
    map: int  # number among the maps of its region
    phase: int
    body: RegionNumber
    counted: Operand  # an array whose leading dimension is the number of lanes; first phase only
    mapped: tuple[Transfer, ...]
    outers: tuple[Transfer, ...]
    results: tuple[Exit, ...]
    visits: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Read:
    """Reads a hoisted value of the entry, or a value that main shares."""

    to: SlotNumber
    index: int  # of the hoisted value, or the slot of main
    is_shared: bool  # does it read main?


@dataclass(frozen=True, slots=True)
class Collect:
    """Adds a value of each lane to a sum that its entry keeps."""

    node: NodeName
    index: int  # of the hoisted value that the sum is for
    kind: CollectKind  # a whole value; indices and rows; or x and g: the sum is transpose(x) @ g over all lanes
    values: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Collected:
    """The sum that was collected below the entry of a call."""

    call: int  # number among the calls of its region
    index: int  # of the hoisted value
    like: Operand  # the hoisted value: the sum has its shape
    to: tuple[SlotNumber, ...]  # the sum; or indices and rows


@dataclass(frozen=True, slots=True)
class FusedInput:
    """A register that a fused pass loads: consecutive elements of an operand."""

    source: Operand
    offset: int  # of the first element
    count: int  # of elements


@dataclass(frozen=True, slots=True)
class Instruction:
    """One step of a fused pass. Registers are numbered: first the inputs, then the result of each instruction."""

    kind: InstructionKind
    kernel: KernelNumber  # the elementwise operator that it applies or folds with
    to: SlotNumber  # the result that it computes, of one of the operators in `ops`
    inputs: tuple[int, ...]  # registers


@dataclass(frozen=True, slots=True)
class FusedOutput:
    """A register that a fused pass stores."""

    to: SlotNumber
    offset: int  # of the first element
    source: int  # register


@dataclass(frozen=True, slots=True)
class Fused:
    """Operators that run together, in one pass over their lanes."""

    ops: tuple[Op, ...]  # the operators, in order; these run instead where the result of each is needed
    width: int  # elements in a row
    inputs: tuple[FusedInput, ...]
    instructions: tuple[Instruction, ...]
    outputs: tuple[FusedOutput, ...]


Straight = Union[Op, Read, Collect, Collected, Fused]  # noqa: UP007  # run one after the other
Entered = Union[Branch, Call, Loop, Map]  # noqa: UP007  # entered together
Item = Union[Straight, Entered]  # noqa: UP007


@dataclass(frozen=True, slots=True)
class Stage:
    """A straight run of operators, then what is entered together."""

    straight: tuple[Straight, ...] = ()
    deferred: tuple[Straight, ...] = ()  # the end of the straight run, which may wait to run with that of other tables
    ahead: tuple[int, ...] = ()  # numbers of the deferred operators that run only if the next phase comes
    deferred_kind: DeferredKind = "none"
    wide: int = 0  # tables with at least this many lanes do not wait
    drops: tuple[SlotNumber, ...] = ()  # slots that are dead after the straight run
    entered: tuple[Entered, ...] = ()


@dataclass(frozen=True, slots=True)
class Program:
    """What a region does in one phase or, if it is a branch, in one visit."""

    phase: int  # of the body
    stages: tuple[Stage, ...] = ()
    # Before `order` makes stages: the items in no order, and pairs of items whose order matters though neither reads
    # what the other writes.
    unordered: tuple[Item, ...] = ()
    after: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Region:
    """A body, or a side of a branch."""

    name: Name
    kind: RegionKind
    body: RegionNumber  # its own number if it is a body
    group: int
    hoisted: int  # how many hoisted values of its entry it, or what it enters, reads
    slots: tuple[Slot, ...]
    programs: tuple[Program, ...]
    params: tuple[tuple[SlotNumber, ...], ...]  # by phase; bodies only
    results: tuple[tuple[SlotNumber, ...], ...]

    # Passes change regions by the hundred, and `dataclasses.replace` takes four times as long.

    def with_slots(self, slots: tuple[Slot, ...]) -> Region:
        return self._with(slots, self.programs)

    def with_programs(self, programs: tuple[Program, ...]) -> Region:
        return self._with(self.slots, programs)

    def _with(self, slots: tuple[Slot, ...], programs: tuple[Program, ...]) -> Region:
        own = self.name, self.kind, self.body, self.group, self.hoisted
        return Region(*own, slots, programs, self.params, self.results)


@dataclass(frozen=True, slots=True)
class Group:
    """Bodies that are mutually recursive, and how they run."""

    schedule: Schedule = "lockstep"
    is_narrow: bool = False  # when lanes are few, each runs alone as scalar code
    is_parallel: bool = False  # several threads may run parts of a wave
    is_scalar: bool = False  # all values are scalars: waves may be cut anywhere


@dataclass(frozen=True, slots=True)
class Plan:
    """A static graph, ready to run."""

    name: Name
    constants: tuple[Const, ...]
    kernels: tuple[Kernel, ...]
    groups: tuple[Group, ...]
    regions: tuple[Region, ...]  # main first; a region comes after the one that contains it

    def __str__(self) -> str:
        from undertow.plan.dump import dump  # which imports this file

        return dump(self)

    def type_of(self, region: int, x: Operand) -> Type:
        """The type of an operand of a region."""
        return (self.constants[~x] if x < 0 else self.regions[region].slots[x]).type
