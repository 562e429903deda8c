"""TensorFlow's messages, as far as we write them: graphs, events and summaries, times of a run.

Names and numbers are those of TensorFlow's .proto files, which TensorBoard reads: graph, node_def, attr_value, tensor,
tensor_shape, function, op_def, event, summary, histogram, step_stats and config.
"""

# ruff: noqa: RUF009  # a field is made by a call, which says its number
from __future__ import annotations

from dataclasses import dataclass

from undertow.viz.protobuf import (
    Message,
    data,
    datas,
    double,
    doubles,
    enum,
    enums,
    integer,
    integers,
    keyed_messages,
    keyed_texts,
    message,
    messages,
    part,
    single,
    singles,
    text,
    texts,
    truth,
    truths,
)

# --------------------------------------------------------------------------------------------------------------
# Types and tensors

DATA_TYPES = {
    1: "DT_FLOAT", 2: "DT_DOUBLE", 3: "DT_INT32", 4: "DT_UINT8", 7: "DT_STRING", 8: "DT_COMPLEX64", 9: "DT_INT64",
    10: "DT_BOOL", 18: "DT_COMPLEX128",
}  # fmt: skip
DT_STRING = 7
DATA_TYPE_OF = {"f32": 1, "f64": 2, "i32": 3, "i64": 9, "bool": 10, "c64": 8, "c128": 18}  # by the names of our dtypes


@dataclass
class Dim(Message):
    """A dimension; -1 is one that only a run knows."""

    size: int = integer(1)
    name: str = text(2)


@dataclass
class TensorShapeProto(Message):
    """The shape of a tensor."""

    dim: list[Dim] = messages(2)
    unknown_rank: bool = truth(3)


@dataclass
class TensorProto(Message):
    """A tensor: its elements' bytes, or texts."""

    dtype: int = enum(1, DATA_TYPES)
    tensor_shape: TensorShapeProto = part(2, TensorShapeProto)
    tensor_content: bytes = data(4)
    string_val: list[bytes] = datas(8)


# --------------------------------------------------------------------------------------------------------------
# Graphs


@dataclass
class ListValue(Message):
    """A list as the value of an attribute."""

    s: list[bytes] = datas(2)
    i: list[int] = integers(3)
    f: list[float] = singles(4)
    b: list[bool] = truths(5)
    type: list[int] = enums(6, DATA_TYPES)
    shape: list[TensorShapeProto] = messages(7)


@dataclass
class AttrValue(Message):
    """The value of an attribute: one of these."""

    list: ListValue | None = message(1)
    s: bytes | None = data(2, is_choice=True)
    i: int | None = integer(3, is_choice=True)
    f: float | None = single(4, is_choice=True)
    b: bool | None = truth(5, is_choice=True)
    type: int | None = enum(6, DATA_TYPES, is_choice=True)
    shape: TensorShapeProto | None = message(7)
    tensor: TensorProto | None = message(8)
    func: NameAttrList | None = message(10)


@dataclass
class NameAttrList(Message):
    """A function as the value of an attribute."""

    name: str = text(1)
    attr: dict[str, AttrValue] = keyed_messages(2)


@dataclass
class NodeDef(Message):
    """A node: inputs are `node`, `node:index`, and `^node` where only the order counts."""

    name: str = text(1)
    op: str = text(2)
    input: list[str] = texts(3)
    device: str = text(4)
    attr: dict[str, AttrValue] = keyed_messages(5)


@dataclass
class ArgDef(Message):
    """An argument or a result in a signature."""

    name: str = text(1)
    description: str = text(2)
    type: int = enum(3, DATA_TYPES)


@dataclass
class OpDef(Message):
    """A signature."""

    name: str = text(1)
    input_arg: list[ArgDef] = messages(2)
    output_arg: list[ArgDef] = messages(3)
    summary: str = text(5)
    is_stateful: bool = truth(17)
    control_output: list[str] = texts(20)


@dataclass
class ArgAttrs(Message):
    """Attributes of an argument."""

    attr: dict[str, AttrValue] = keyed_messages(1)


@dataclass
class IndexedArgAttrs(Message):
    """An entry of a map from the numbers of arguments."""

    key: int = integer(1)
    value: ArgAttrs = part(2, ArgAttrs)


@dataclass
class FunctionDef(Message):
    """A function: in its body, inputs are `argument`, `node:output:index` and `^node`."""

    signature: OpDef = part(1, OpDef)
    node_def: list[NodeDef] = messages(3)
    ret: dict[str, str] = keyed_texts(4)
    attr: dict[str, AttrValue] = keyed_messages(5)
    control_ret: dict[str, str] = keyed_texts(6)
    arg_attr: list[IndexedArgAttrs] = messages(7)


@dataclass
class FunctionDefLibrary(Message):
    """The functions of a graph."""

    function: list[FunctionDef] = messages(1)


@dataclass
class VersionDef(Message):
    """Who can read a graph."""

    producer: int = integer(1)
    min_consumer: int = integer(2)


@dataclass
class GraphDef(Message):
    """A graph and its functions."""

    node: list[NodeDef] = messages(1)
    library: FunctionDefLibrary = part(2, FunctionDefLibrary)
    versions: VersionDef = part(4, VersionDef)


# --------------------------------------------------------------------------------------------------------------
# Events and summaries


@dataclass
class HistogramProto(Message):
    """How many values are below each limit, and not below the one before."""

    min: float = double(1)
    max: float = double(2)
    num: float = double(3)
    sum: float = double(4)
    sum_squares: float = double(5)
    bucket_limit: list[float] = doubles(6)
    bucket: list[float] = doubles(7)


@dataclass
class Image(Message):
    """A picture, as a PNG file. colorspace: 1 grey, 3 RGB, 4 RGBA."""

    height: int = integer(1)
    width: int = integer(2)
    colorspace: int = integer(3)
    encoded_image_string: bytes = data(4)


@dataclass
class PluginData(Message):
    """Which page of TensorBoard shows it."""

    plugin_name: str = text(1)
    content: bytes = data(2)


@dataclass
class SummaryMetadata(Message):
    """How TensorBoard shows a value."""

    plugin_data: PluginData | None = message(1)
    display_name: str = text(2)
    summary_description: str = text(3)


@dataclass
class SummaryValue(Message):
    """A value with a tag."""

    tag: str = text(1)
    simple_value: float | None = single(2, is_choice=True)
    image: Image | None = message(4)
    histo: HistogramProto | None = message(5)
    tensor: TensorProto | None = message(8)
    metadata: SummaryMetadata | None = message(9)


@dataclass
class Summary(Message):
    """Values of one step."""

    value: list[SummaryValue] = messages(1)

    Value = SummaryValue
    Image = Image


@dataclass
class TaggedRunMetadata(Message):
    """The serialized RunMetadata of a run, by its tag."""

    tag: str = text(1)
    run_metadata: bytes = data(2)


@dataclass
class SessionLog(Message):
    """A session starts (1), stops (2), or is saved (3)."""

    status: int = enum(1, {1: "START", 2: "STOP", 3: "CHECKPOINT"})


@dataclass
class Event(Message):
    """A record of an event file: one of these, with the time in seconds and the step."""

    wall_time: float = double(1)
    step: int = integer(2)
    file_version: str | None = text(3, is_choice=True)
    graph_def: bytes | None = data(4, is_choice=True)
    summary: bytes | None = data(5, is_choice=True)  # serialized
    session_log: SessionLog | None = message(7)
    tagged_run_metadata: TaggedRunMetadata | None = message(8)


# --------------------------------------------------------------------------------------------------------------
# Times of a run


@dataclass
class NodeExecStats(Message):
    """One execution of a node: when it began, in microseconds since 1970, and how long it took from there."""

    node_name: str = text(1)
    all_start_micros: int = integer(2)
    op_start_rel_micros: int = integer(3)
    op_end_rel_micros: int = integer(4)
    all_end_rel_micros: int = integer(5)
    timeline_label: str = text(8)
    scheduled_micros: int = integer(9)
    thread_id: int = integer(10)


@dataclass
class DeviceStepStats(Message):
    """What a device executed."""

    device: str = text(1)
    node_stats: list[NodeExecStats] = messages(2)


@dataclass
class StepStats(Message):
    """What all devices executed in a run."""

    dev_stats: list[DeviceStepStats] = messages(1)


@dataclass
class RunMetadata(Message):
    """What a run did: `step_stats` has its times, if its options asked for them."""

    step_stats: StepStats = part(1, StepStats)
    partition_graphs: list[GraphDef] = messages(3)
