"""Values of the user's types as documents, and back: strict, and without loss (spec P-06).

A document is written from what a value is and read by the type that a handler names. Fields that pydantic
computes are left out and aliases are used both ways, so that what was written can be read.
"""

from __future__ import annotations

import re
from functools import cached_property, lru_cache
from typing import Any

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError
from pydantic_core import CoreConfig, PydanticSerializationError, SchemaSerializer, to_jsonable_python

from testigo.errors import Invalid, PayloadInvalid
from testigo.rules import documents
from testigo.rules.discreet import discreet
from testigo.rules.documents import Document

__all__ = ["NULL", "Shape", "read", "write"]

NULL = Document("null")

_ERRORS_TOLD = 3
_PLAIN = frozenset({str, int, float, bool})


class Shape:
    """A type, as the form of documents. `field` names what they are in refusals: payload, output, checkpoint."""

    def __init__(self, annotation: Any, *, field: str, config: ConfigDict | None = None) -> None:
        """Raises `Invalid` for a type that pydantic cannot take."""
        self._field = field
        try:
            self._adapter: TypeAdapter[Any] = TypeAdapter(annotation, config=config)
        except PydanticUserError as error:
            raise Invalid(
                f"The type cannot be read from JSON: {discreet(error.message.splitlines()[0], bytes_max=400)}",
                field=field,
                remedy="Annotate it with a type that pydantic knows, such as a dataclass, a BaseModel or a TypedDict.",
            ) from None

    def read(self, document: str) -> Any:
        """The value that a document holds. Raises `PayloadInvalid`, naming the place, where it does not fit."""
        try:
            return self._adapter.validate_json(document, strict=True)
        except ValidationError as error:
            raise _refused(error, self._field) from None

    def write(self, value: object) -> Document:
        """The document of a value of this type. Raises `PayloadInvalid` for any other, and `PayloadTooLarge`."""
        try:
            checked = self._adapter.validate_python(value, strict=True)
            plain = self._serializer.to_python(checked, mode="json", by_alias=True, round_trip=True, warnings="error")
        except ValidationError as error:
            raise _refused(error, self._field) from None
        except (PydanticSerializationError, ValueError, RecursionError) as error:
            raise _unwritten(error, self._field) from None
        return documents.encode(plain, field=self._field)

    @cached_property
    def _serializer(self) -> SchemaSerializer:
        """Leaves NaN and infinity to be refused: by itself pydantic would write null where the type is Any."""
        return SchemaSerializer(self._adapter.core_schema, CoreConfig(ser_json_inf_nan="constants"))


def write(value: object, *, field: str) -> Document:
    """The document of a value, by its own type. Raises `PayloadInvalid` or `PayloadTooLarge`."""
    if value is None:
        return NULL
    if type(value) in _PLAIN:
        return documents.encode(value, field=field)
    try:
        plain = to_jsonable_python(value, by_alias=True, round_trip=True)
    except (PydanticSerializationError, ValueError, RecursionError) as error:
        raise _unwritten(error, field) from None
    return documents.encode(plain, field=field)


def read(document: str, annotation: Any) -> Any:
    """The checkpoint that a document holds, as this type. Raises as `Shape` and its `read` do."""
    return _of_checkpoint(annotation).read(document)


def _refused(error: ValidationError, field: str) -> PayloadInvalid:
    """The refusal that names the first fault by its path; values are not told, for they may be secret."""
    faults = error.errors(include_url=False, include_context=False, include_input=False)
    told = "; ".join(f"{field}{_path(each['loc'])}: {each['msg']}" for each in faults[:_ERRORS_TOLD])
    more = f"; and {len(faults) - _ERRORS_TOLD} more" if len(faults) > _ERRORS_TOLD else ""
    return PayloadInvalid(
        discreet(told + more, bytes_max=2_000),
        field=discreet(field + _path(faults[0]["loc"]), bytes_max=400),
        remedy="Give each value the type of its annotation, and the handler no argument that it has not.",
    )


def _unwritten(error: Exception, field: str) -> PayloadInvalid:
    return PayloadInvalid(
        f"the value cannot be written as JSON: {discreet(error, bytes_max=400)}",
        field=field,
        remedy="Use types that pydantic can write; store bytes as a blob.",
    )


def _path(steps: tuple[int | str, ...]) -> str:
    return "".join(
        f"[{step}]" if isinstance(step, int) else f".{step}" if re.fullmatch(r"\w{1,64}", step) else "[…]"
        for step in steps
    )


@lru_cache(maxsize=256)
def _of_checkpoint(annotation: Any) -> Shape:
    return Shape(annotation, field="checkpoint")
