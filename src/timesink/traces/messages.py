"""The profiler's and XLA's protobuf messages, as far as we read them, without TensorFlow.

A message is its fields and their numbers, which the wire format fixes; a field not listed here is
passed over. The messages stand in a pool and a package of their own, so that they never meet
TensorFlow's definitions of the same ones in one process.

Three things differ from the published definitions, and are the same on the wire:
- Texts are `bytes`: a `string` that is not UTF-8 (a thread's name cut within a character, a
  kernel's) would make the whole file unreadable.
- Planes and lines are `bytes`, to be parsed one at a time, so that only one thread's events stand
  in memory at once.
- Maps are repeated entries of a key and a value.
"""

from typing import Any

from google.protobuf import (  # type: ignore[import-untyped]
    descriptor_pb2,
    descriptor_pool,
    message_factory,
)
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

__all__ = [
    "DecodeError",
    "EventMetadataEntry",
    "HloProto",
    "StatMetadataEntry",
    "XLine",
    "XPlane",
    "XSpace",
    "XStat",
    "text",
]

_PACKAGE = "timesink.traces"
_FIELD = descriptor_pb2.FieldDescriptorProto
_SCALARS = {
    "int64": _FIELD.TYPE_INT64,
    "uint64": _FIELD.TYPE_UINT64,
    "double": _FIELD.TYPE_DOUBLE,
    "bytes": _FIELD.TYPE_BYTES,
}

# Message → field → number and type; `*` marks a repeated field, `|` one of the message's oneof.
# Numbers as in TensorFlow 2.21: xplane.proto, hlo.proto and xla_data.proto.
_MESSAGES: dict[str, dict[str, tuple[int, str]]] = {
    "XSpace": {
        "planes": (1, "*bytes"),
        "errors": (2, "*bytes"),
        "warnings": (3, "*bytes"),
        "hostnames": (4, "*bytes"),
    },
    "XPlane": {
        "id": (1, "int64"),
        "name": (2, "bytes"),
        "lines": (3, "*bytes"),
        "event_metadata": (4, "*EventMetadataEntry"),
        "stat_metadata": (5, "*StatMetadataEntry"),
    },
    "EventMetadataEntry": {"key": (1, "int64"), "value": (2, "XEventMetadata")},
    "StatMetadataEntry": {"key": (1, "int64"), "value": (2, "XStatMetadata")},
    "XEventMetadata": {"id": (1, "int64"), "name": (2, "bytes"), "stats": (5, "*XStat")},
    "XStatMetadata": {"id": (1, "int64"), "name": (2, "bytes")},
    "XLine": {
        "id": (1, "int64"),
        "name": (2, "bytes"),
        "timestamp_ns": (3, "int64"),
        "events": (4, "*XEvent"),
    },
    "XEvent": {
        "metadata_id": (1, "int64"),
        "offset_ps": (2, "int64"),
        "duration_ps": (3, "int64"),
        "stats": (4, "*XStat"),
    },
    "XStat": {
        "metadata_id": (1, "int64"),
        "double_value": (2, "|double"),
        "uint64_value": (3, "|uint64"),
        "int64_value": (4, "|int64"),
        "str_value": (5, "|bytes"),
        "bytes_value": (6, "|bytes"),
        "ref_value": (7, "|uint64"),
    },
    "HloProto": {"hlo_module": (1, "HloModule")},
    "HloModule": {"name": (1, "bytes"), "computations": (3, "*HloComputation"), "id": (5, "int64")},
    "HloComputation": {
        "name": (1, "bytes"),
        "instructions": (2, "*HloInstruction"),
        "id": (5, "int64"),
    },
    "HloInstruction": {
        "name": (1, "bytes"),
        "opcode": (2, "bytes"),
        "shape": (3, "Shape"),
        "metadata": (7, "OpMetadata"),
        "convolution_dimension_numbers": (16, "ConvolutionDimensions"),
        "dot_dimension_numbers": (30, "DotDimensions"),
        "id": (35, "int64"),
        "operand_ids": (36, "*int64"),
        "called_computation_ids": (38, "*int64"),
    },
    # element_type is an enum, which travels as an integer.
    "Shape": {
        "element_type": (2, "int64"),
        "dimensions": (3, "*int64"),
        "tuple_shapes": (4, "*Shape"),
    },
    "OpMetadata": {"op_name": (2, "bytes")},
    "ConvolutionDimensions": {"kernel_output_feature_dimension": (4, "int64")},
    "DotDimensions": {"lhs_contracting_dimensions": (1, "*int64")},
}


def _file() -> Any:
    file = descriptor_pb2.FileDescriptorProto(
        name="timesink/traces.proto", package=_PACKAGE, syntax="proto3"
    )
    for message_name, fields in _MESSAGES.items():
        message = file.message_type.add(name=message_name)
        for field_name, (number, marked_type) in fields.items():
            field = message.field.add(name=field_name, number=number)
            kind = marked_type.lstrip("*|")
            repeated = marked_type.startswith("*")
            field.label = _FIELD.LABEL_REPEATED if repeated else _FIELD.LABEL_OPTIONAL
            if marked_type.startswith("|"):
                if not message.oneof_decl:
                    message.oneof_decl.add(name="value")
                field.oneof_index = 0
            if kind in _SCALARS:
                field.type = _SCALARS[kind]
            else:
                field.type = _FIELD.TYPE_MESSAGE
                field.type_name = f".{_PACKAGE}.{kind}"
    return file


_pool = descriptor_pool.DescriptorPool()
_pool.AddSerializedFile(_file().SerializeToString())


def _message(name: str) -> Any:
    return message_factory.GetMessageClass(_pool.FindMessageTypeByName(f"{_PACKAGE}.{name}"))


XSpace = _message("XSpace")
XPlane = _message("XPlane")
XLine = _message("XLine")
XStat = _message("XStat")
EventMetadataEntry = _message("EventMetadataEntry")
StatMetadataEntry = _message("StatMetadataEntry")
HloProto = _message("HloProto")


def text(value: bytes) -> str:
    """Decode a text of a message, whatever is in it."""
    return value.decode("utf-8", "replace")
