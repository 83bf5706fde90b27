"""Plain frozen records that cost next to nothing to define: there are many kinds of them, and each start pays for all."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, TypeVar

from typing_extensions import Self

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_how: object) -> Callable[[type], type]:
        """Only type checkers ask."""
        return lambda cls: cls


Own = TypeVar("Own", bound="Record")


@dataclass_transform(frozen_default=True)
class Record:
    """What a frozen dataclass is, without code that is made for each class: fields are what is annotated."""

    field_names: ClassVar[tuple[str, ...]] = ()
    """The names of all fields, in order."""

    def __init_subclass__(cls) -> None:
        """The fields of the class that it extends come first."""
        if "__dataclass_fields__" in cls.__dict__:
            raise TypeError(f"{cls.__name__} is a record by what it extends: it needs no `@dataclass`")
        cls.field_names = (*cls.field_names, *cls.__annotations__)

    def __init__(self, *args: Any, **named: Any) -> None:
        """By position or by name; what is not given has its default."""
        fields = self.field_names
        given = dict(zip(fields, args, strict=False)) | named
        if len(given) != len(args) + len(named) or not given.keys() <= set(fields):
            raise TypeError(f"{type(self).__name__} takes {', '.join(fields)}")
        for name in fields:
            if name not in given and not hasattr(type(self), name):
                raise TypeError(f"{type(self).__name__} was given no {name}")
            self.__dict__[name] = given[name] if name in given else getattr(type(self), name)

    def but(self, **changes: Any) -> Self:
        """The same with some fields changed."""
        return type(self)(**(self.__dict__ | changes))

    def __setattr__(self, name: str, value: object) -> NoReturn:
        """Nothing is changed afterwards."""
        raise AttributeError(f"{type(self).__name__} is frozen")

    def __delattr__(self, name: str) -> NoReturn:
        """Nor taken away."""
        raise AttributeError(f"{type(self).__name__} is frozen")

    def __eq__(self, other: object) -> bool:
        """Records are equal when all their fields are."""
        return type(self) is type(other) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        """As the fields in order."""
        return hash(tuple(self.__dict__.values()))

    def __repr__(self) -> str:
        """As it is made."""
        fields = ", ".join(f"{name}={value!r}" for name, value in self.__dict__.items())
        return f"{type(self).__name__}({fields})"
