"""Protocol buffers: what is written is read by a decoder that knows nothing of our tables, and by protobuf itself."""

from __future__ import annotations

import struct

import pytest
from tests.support.wire import decoded, entries, one, read_varint

from undertow.viz.messages import (
    AttrValue,
    Dim,
    Event,
    HistogramProto,
    ListValue,
    NodeDef,
    Summary,
    TensorShapeProto,
)
from undertow.viz.protobuf import varint


@pytest.mark.parametrize("number", [0, 1, 127, 128, 300, 2**31, 2**63 - 1, -1, -(2**63)])
def test_varints(number):
    data = varint(number)
    assert read_varint(data, 0) == (number % 2**64, len(data))
    assert len(data) == max(1, -(-(number % 2**64).bit_length() // 7))


def test_defaults_are_left_out():
    assert NodeDef().SerializeToString() == b"" == Summary().SerializeToString()
    assert Event(step=0, wall_time=0.0).ByteSize() == 0


def test_one_of_a_choice_is_written_even_if_it_is_zero():
    for attr, number in ((AttrValue(i=0), 3), (AttrValue(b=False), 5), (AttrValue(s=b""), 2), (AttrValue(type=0), 6)):
        assert decoded(attr.SerializeToString()).keys() == {number}
    assert AttrValue().SerializeToString() == b""


def test_kinds_of_fields():
    node = NodeDef("x", "Add", ["a", "b:1", "^c"], "/job:w", {"T": AttrValue(type=1), "A": AttrValue(f=0.5)})
    fields = decoded(node.SerializeToString())
    assert fields[3] == [b"a", b"b:1", b"^c"]
    assert list(entries(fields, 5)) == ["A", "T"]  # in the order of the keys
    assert one(decoded(entries(fields, 5)["A"]), 4) == struct.pack("<f", 0.5)
    shape = decoded(TensorShapeProto([Dim(3), Dim(-1)]).SerializeToString())
    assert [one(decoded(dim), 1) for dim in shape[2]] == [3, 2**64 - 1]


def test_lists_of_numbers_are_packed():
    fields = decoded(HistogramProto(bucket=[1.0, 2.5], bucket_limit=[1e300]).SerializeToString())
    assert fields[7] == [struct.pack("<dd", 1.0, 2.5)] and fields[6] == [struct.pack("<d", 1e300)]
    assert decoded(ListValue(i=[1, 300]).SerializeToString())[3] == [b"\x01\xac\x02"]


def test_text_format():
    node = NodeDef('a"b\n\\', "Ö", attr={"f": AttrValue(f=0.1), "l": AttrValue(list=ListValue(type=[1, 99]))})
    assert str(node) == (
        'name: "a\\"b\\n\\\\"\nop: "\\303\\226"\n'
        'attr {\n  key: "f"\n  value {\n    f: 0.1\n  }\n}\n'
        'attr {\n  key: "l"\n  value {\n    list {\n      type: DT_FLOAT\n      type: 99\n    }\n  }\n}\n'
    )


def test_protobuf_reads_every_message():
    """The same field numbers and names as in TensorFlow's files, by the copies of them that TensorBoard has."""
    event_pb2 = pytest.importorskip("tensorboard.compat.proto.event_pb2", exc_type=ImportError)
    from tensorboard.compat.proto import (
        attr_value_pb2,
        config_pb2,
        function_pb2,
        graph_pb2,
        histogram_pb2,
        step_stats_pb2,
        summary_pb2,
        tensor_pb2,
        tensor_shape_pb2,
    )  # fmt: skip

    from undertow.viz import messages as ours

    theirs = {
        ours.GraphDef: graph_pb2.GraphDef, ours.NodeDef: graph_pb2.GraphDef().node.add().__class__,
        ours.FunctionDef: function_pb2.FunctionDef, ours.FunctionDefLibrary: function_pb2.FunctionDefLibrary,
        ours.OpDef: function_pb2.FunctionDef().signature.__class__, ours.ArgAttrs: function_pb2.FunctionDef.ArgAttrs,
        ours.AttrValue: attr_value_pb2.AttrValue, ours.ListValue: attr_value_pb2.AttrValue.ListValue,
        ours.NameAttrList: attr_value_pb2.NameAttrList, ours.TensorProto: tensor_pb2.TensorProto,
        ours.TensorShapeProto: tensor_shape_pb2.TensorShapeProto, ours.Dim: tensor_shape_pb2.TensorShapeProto.Dim,
        ours.Event: event_pb2.Event, ours.TaggedRunMetadata: event_pb2.TaggedRunMetadata,
        ours.SessionLog: event_pb2.SessionLog, ours.Summary: summary_pb2.Summary,
        ours.SummaryValue: summary_pb2.Summary.Value, ours.Image: summary_pb2.Summary.Image,
        ours.SummaryMetadata: summary_pb2.SummaryMetadata, ours.PluginData: summary_pb2.SummaryMetadata.PluginData,
        ours.HistogramProto: histogram_pb2.HistogramProto, ours.StepStats: step_stats_pb2.StepStats,
        ours.DeviceStepStats: step_stats_pb2.DeviceStepStats, ours.NodeExecStats: step_stats_pb2.NodeExecStats,
        ours.RunMetadata: config_pb2.RunMetadata,
    }  # fmt: skip
    kinds = {0: (2, 3, 4, 5, 8, 13, 14), 1: (1,), 2: (9, 11, 12), 5: (2,)}  # wire type -> protobuf's types
    for message, their in theirs.items():
        known = {field.number: field for field in their.DESCRIPTOR.fields}
        for field in message.fields():
            there = known[field.number]
            assert there.name == field.name, message
            is_float = there.type == 2
            assert there.type in (kinds[5] if is_float and field.kind.wire == 5 else kinds[field.kind.wire]), field
