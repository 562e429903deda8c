"""The plan that the core executes, as frozen data. Regions have slots and programs, programs have stages of items.

Each *body* (main, a function, a loop, a map) and each side of a branch is a region. A region has *slots*, one for each
value that lives in it, and *programs*: a body has one for each phase, a branch one for each visit. A program is a list
of *stages*. A stage is a straight run of operators, and then what is entered together: branches, calls, loops, maps.
The next stage begins when all of that has come back. So calls of one stage that enter one group of functions are one
wave.

These classes also define the rows that the core reads: `encode` writes the fields of a record in the order in which
they stand here, and `header` generates the C++ records from them. A `Name` is for people, and stays in Python.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Union

from undertow.ir.graph import Attrs, Const
from undertow.types import Type

Name = str  # for people: never sent to the core
NodeName = str  # of a node of the static graph: errors and counters name it
Operand = int  # a slot of the current region; or, below zero, constant number ~operand
SlotNumber = int
RegionNumber = int
KernelNumber = int
NO_SLOT = -(2**31)  # for unused results and order tokens

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
    kind: SlotKind = "value"  # or a handle into a table that grows, alive as long as an entry or the run
    home: Home = "host"  # a value that feeds no predicate, index or shape may live with the lanes, on a device
    is_shared: bool = False  # one value for all lanes of a table, in every wave below an entry
    is_passed: bool = False  # only calls read it: its rows need not be contiguous

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
    last: tuple[int, ...] = ()  # indices of inputs that nobody reads after it: it may overwrite one that it alone holds


@dataclass(frozen=True, slots=True)
class Branch:
    """One visit to the two sides of a branch."""

    branch: int  # number among the branches of its region
    pred: SlotNumber
    visit: int  # the first divides the lanes, later ones keep that division; also the program of each side
    is_last: bool  # of this phase
    regions: tuple[RegionNumber, RegionNumber]  # where the predicate is true, where it is false
    transfers: tuple[tuple[Transfer, ...], tuple[Transfer, ...]]
    merges: tuple[Merge, ...]
    # Slots that are not read again once the sides have them. The branch of a loop drops them if no lane leaves.
    drops: tuple[SlotNumber, ...] = ()


@dataclass(frozen=True, slots=True)
class Call:
    """A call, or in later phases a resume."""

    site: int  # the label that it pushes
    call: int  # number among the calls of its region
    phase: int
    callees: tuple[RegionNumber, ...]  # if there are several, `selector` says which one a lane calls
    selector: Operand
    resume_group: int  # equal for calls whose later phases are requested at the same points: they may share chunks
    arguments: tuple[Operand, ...]
    hoists: tuple[Operand, ...]  # given to the entry that it makes, if it makes one
    results: tuple[SlotNumber, ...]
    visits: tuple[int, ...]  # of the callee, by the visits - 1 of the caller; first phase only
    family: int = -1  # the site of the first of its sibling calls, whose lanes are interleaved
    sibling: int = 0  # its place among them
    siblings: int = 1  # how many there are
    drops: tuple[SlotNumber, ...] = ()  # slots that are not read again once the callee has them


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop: each lane iterates until its predicate is false."""

    site: int
    loop: int  # number among the loops of its region
    body: RegionNumber
    branch: int  # the branch of the body that decides whether a lane continues
    variables: tuple[Transfer, ...]
    outers: tuple[Transfer, ...]
    next: tuple[Operand, ...]  # of each variable, in the side of that branch where the loop continues
    exits: tuple[Exit, ...]
    drops: tuple[SlotNumber, ...] = ()  # slots that are not read again once the body has them


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
    """Reads an argument of the entry, or a value that main shares."""

    to: SlotNumber
    index: int  # of the entry's argument, or slot of main
    is_shared: bool  # by main


@dataclass(frozen=True, slots=True)
class Collect:
    """Adds a value of each lane to a sum that its entry keeps."""

    node: NodeName
    index: int  # of the entry's argument
    kind: CollectKind  # a whole value; rows with their indices; or a product x.T @ g, computed for all lanes at once
    values: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Collected:
    """The sum that was collected below the entry that a call made."""

    call: int  # number among the calls of its region
    index: int
    like: Operand
    to: tuple[SlotNumber, ...]  # the sum; or indices of rows, and rows


@dataclass(frozen=True, slots=True)
class Send:
    """Sends a value of each lane, under its tag, to another part of a placed graph."""

    edge: int
    part: int  # that it goes to
    source: Operand  # NO_SLOT: an order token


@dataclass(frozen=True, slots=True)
class Recv:
    """Waits for what another part sends under the tag of each lane."""

    edge: int
    part: int  # that it comes from
    to: SlotNumber


@dataclass(frozen=True, slots=True)
class Replica:
    """Chooses a number by the tag of each lane."""

    to: SlotNumber
    count: int  # of numbers, from 0 on
    salt: int  # with another one, another choice


@dataclass(frozen=True, slots=True)
class FusedInput:
    """A register that a fused pass reads: consecutive elements of an operand."""

    source: Operand
    offset: int  # of the first element
    count: int  # of elements


@dataclass(frozen=True, slots=True)
class Instruction:
    """One step of a fused pass. Registers are numbered: first the inputs, then the result of each instruction."""

    kind: InstructionKind
    kernel: KernelNumber  # the operator on elements, or the one that folds a row
    to: SlotNumber  # the result that it computes, of one of the fused operators
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

    ops: tuple[Op, ...]  # the fused operators, in order: they run one by one where each result is inspected
    width: int  # elements of a row
    inputs: tuple[FusedInput, ...]
    instructions: tuple[Instruction, ...]
    outputs: tuple[FusedOutput, ...]


Straight = Union[Op, Read, Collect, Collected, Fused, Send, Replica]  # noqa: UP007  # run one after the other
Entered = Union[Branch, Call, Loop, Map, Recv]  # noqa: UP007  # entered together; a Recv waits
Item = Union[Straight, Entered]  # noqa: UP007


@dataclass(frozen=True, slots=True)
class Stage:
    """A straight run of operators, then what is entered together."""

    straight: tuple[Straight, ...] = ()
    deferred: tuple[Straight, ...] = ()  # the end of the straight run, which may wait for that of other tables
    ahead: tuple[int, ...] = ()  # which of these, counted singly, belong to the next phase and run only if it comes
    deferred_kind: DeferredKind = "none"
    wide: int = 0  # a table with at least so many lanes does not wait
    drops: tuple[SlotNumber, ...] = ()  # slots that are not read after the straight run
    entered: tuple[Entered, ...] = ()


@dataclass(frozen=True, slots=True)
class Program:
    """What a region does in one phase or, if it is a branch, in one visit."""

    phase: int  # of the body
    stages: tuple[Stage, ...] = ()
    # Before `order` makes stages of them: the items, in any order, and pairs (earlier, later) of items that are
    # ordered but not by a slot that one writes and the other reads.
    unordered: tuple[Item, ...] = ()
    after: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Region:
    """A body, or a side of a branch."""

    name: Name
    kind: RegionKind
    body: RegionNumber  # that it belongs to
    group: int  # of bodies that are recursive together
    hoisted: int  # number of values of its entry that it, or what it enters, needs
    slots: tuple[Slot, ...]
    programs: tuple[Program, ...]
    params: tuple[tuple[SlotNumber, ...], ...]  # by phase; bodies only
    results: tuple[tuple[SlotNumber, ...], ...]

    # Passes copy regions by the hundred: `dataclasses.replace` takes four times as long.

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
    is_narrow: bool = False  # numbers only, one call at a time: where lanes are few, each runs alone
    grain: int = 0  # lanes of a task, at least: so many are worth a thread of their own; 0: one thread runs all
    is_scalar: bool = False  # all values are scalars: waves may be cut anywhere
    is_free: bool = False  # no lane's bits depend on lanes beside it: lanes may be cut anywhere, and given away later


@dataclass(frozen=True, slots=True)
class Plan:
    """A static graph, ready to run."""

    name: Name
    constants: tuple[Const, ...]
    kernels: tuple[Kernel, ...]
    groups: tuple[Group, ...]
    regions: tuple[Region, ...]  # the first is main; inner regions come after outer ones

    def __str__(self) -> str:
        from undertow.plan.dump import dump  # `dump` imports this file

        return dump(self)

    def type_of(self, region: int, x: Operand) -> Type:
        """The type of an operand of a region."""
        return (self.constants[~x] if x < 0 else self.regions[region].slots[x]).type
