"""Makers: the same values as by the class, at less cost."""

import copy
import pickle  # noqa: TID251 - values must survive it, whoever uses it
from dataclasses import FrozenInstanceError, dataclass, field, replace

import pytest

from executors.errors import ValidationError
from executors.makers import maker, mapper
from executors.messages import ModelReply
from executors.usage import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    first: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Value(Base):
    second: str = "two"
    third: list[int] = field(default_factory=list[int])


make = maker(Value)


def test_a_made_value_is_one_of_its_class_in_every_way() -> None:
    made, usual = make(first=1, third=[3]), Value(first=1, third=[3])
    assert made == usual
    assert type(made) is Value
    assert repr(made) == repr(usual)
    assert replace(made, second="2") == Value(first=1, second="2", third=[3])
    assert pickle.loads(pickle.dumps(made)) == copy.copy(made) == usual


def test_a_made_value_is_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        make(first=1).first = 2  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        del make(first=1).second  # pyright: ignore[reportAttributeAccessIssue]


def test_defaults_hold_and_factories_are_called_each_time() -> None:
    one, two = make(first=1), make(first=1)
    assert one == Value(first=1)
    assert one.third is not two.third


def test_what_the_class_refuses_is_refused() -> None:
    with pytest.raises(TypeError, match="first"):
        make()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="fourth"):
        make(first=1, fourth=4)  # type: ignore[call-arg]
    with pytest.raises(ValidationError, match="-1"):
        maker(Usage)(input=-1)


def test_a_subclass_of_a_made_class_is_made_as_ever() -> None:
    class Child(Value):
        pass

    assert Child(first=1).first == 1
    assert type(make(first=1)) is Value


def test_only_slotted_keyword_only_dataclasses_have_makers() -> None:
    @dataclass(frozen=True)
    class Loose:
        first: int

    @dataclass(frozen=True, slots=True)
    class Positional:
        first: int

    for kind in (Loose, Positional):
        with pytest.raises(TypeError, match="slotted"):
            maker(kind)


def test_a_mapper_reads_all_fields_in_their_order() -> None:
    reply = ModelReply(text="yes", stop="end", usage=Usage(input=1))
    found = mapper(ModelReply)(reply)
    assert list(found) == list(ModelReply.__dataclass_fields__)
    assert found["usage"] is reply.usage
    assert list(mapper(ModelReply, kind="a'b")(reply).items())[:2] == [
        ("kind", "a'b"),
        ("text", "yes"),
    ]
