"""A value is compared, hashed and shown by its fields, as a frozen dataclass is."""

from dataclasses import asdict, dataclass, field, replace

from backburner.model.values import value


@value
class Point:
    x: int
    y: int = 0
    secret: str = field(default="hunter2", repr=False)
    note: str = field(default="", compare=False)


@value
class Nothing:
    pass


@value
class Odd:  # noqa: PLW1641 - it is given one, as a frozen dataclass is
    number: int

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Odd) and self.number % 2 == other.number % 2

    def __repr__(self) -> str:
        return "odd"


@dataclass(frozen=True, slots=True)
class Frozen:
    x: int
    y: int = 0


def test_it_is_compared_and_hashed_by_what_it_holds() -> None:
    assert Point(1) == Point(1, note="other")
    assert hash(Point(1)) == hash(Point(1, note="other"))
    assert len({Point(1), Point(2), Point(1, 2), Point(1)}) == 3
    assert Nothing() == Nothing()
    assert hash(Nothing()) == hash(Nothing())


def test_it_is_not_equal_to_another_kind_with_the_same_fields() -> None:
    @value
    class Other(Point):
        pass

    assert Point(1) != Other(1)
    assert Point(1) != Frozen(1)
    assert Nothing() != Point(1)


def test_it_is_shown_as_a_dataclass_is_without_what_is_not_to_be_seen() -> None:
    assert repr(Frozen(1, 2)) == "Frozen(x=1, y=2)"
    assert repr(Point(1, 2)) == "Point(x=1, y=2, note='')"
    assert repr(Nothing()) == "Nothing()"


def test_what_a_class_says_itself_counts() -> None:
    assert Odd(1) == Odd(3)
    assert repr(Odd(1)) == "odd"
    assert hash(Odd(1)) == hash(Odd(1))


def test_it_is_a_dataclass_with_slots() -> None:
    assert replace(Point(1), y=5) == Point(1, 5)
    assert asdict(Frozen(1)) == {"x": 1, "y": 0}
    assert asdict(Point(1))["secret"] == "hunter2"
    assert not hasattr(Point(1), "__dict__")
