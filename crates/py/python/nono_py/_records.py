"""Values of the library as Python objects: ``Record``, whose data are those of ``--json``, and its attributes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from html import escape
from typing import Any, ClassVar, Generic, NoReturn, TypeVar, overload

_T = TypeVar("_T")


class Field(Generic[_T]):
    """A read-only attribute of a record: the field of its data with this name, or what ``get`` makes of them."""

    def __init__(self, doc: str, get: Callable[[Any], _T] | None = None) -> None:
        self.__doc__ = doc
        self._get = get

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, record: None, owner: type) -> Field[_T]: ...
    @overload
    def __get__(self, record: Record, owner: type) -> _T: ...
    def __get__(self, record: Record | None, owner: type) -> Field[_T] | _T:
        if record is None:
            return self
        if self._get is not None:
            return self._get(record)
        value: _T = copied(record._value(self._name))
        return value

    def __set__(self, record: Record, value: NoReturn) -> NoReturn:
        raise AttributeError(f"{type(record).__name__}.{self._name} is read-only")


class Record:
    """A value of the library. ``more`` is what its attributes have beyond the data of ``--json``."""

    __slots__ = ("_data", "_more")
    _shown: ClassVar[tuple[str, ...]] = ()

    def __init__(self, data: Mapping[str, Any], more: Mapping[str, Any] | None = None) -> None:
        self._data = data
        self._more = {} if more is None else more

    def __init_subclass__(cls) -> None:
        if Record not in cls.__bases__:
            raise TypeError(f"{cls.__bases__[0].__name__} cannot be subclassed")
        # The name it is imported by.
        cls.__module__ = "nono_py"

    def _value(self, name: str) -> Any:
        return self._more[name] if name in self._more else self._data.get(name)

    def to_dict(self) -> dict[str, Any]:
        """All values as a plain dict, as in ``--json``."""
        return {name: copied(value) for name, value in self._data.items()}

    def __repr__(self) -> str:
        values = ((name, getattr(self, name)) for name in self._shown)
        shown = (f"{name}={len(value) if isinstance(value, list) else repr(value)}" for name, value in values)
        return f"{type(self).__name__}({', '.join(shown)})"


def copied(value: Any) -> Any:
    """Plain data, of which the caller may change every list and dict."""
    if isinstance(value, dict):
        return {name: copied(one) for name, one in value.items()}
    return [copied(one) for one in value] if isinstance(value, list) else value


def pairs(name: str, *keys: str) -> Callable[[Any], list[Any]]:
    """A list of dicts as a list of tuples."""
    return lambda record: [tuple(copied(one[key]) for key in keys) for one in record._value(name) or ()]


def visible(value: object) -> str:
    """Text for HTML, with control and formatting characters, and surrogates, shown as escapes."""
    text = "" if value is None else str(value)
    return escape("".join(char if char.isprintable() else ascii(char)[1:-1] for char in text))


def table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """A table of HTML; the cells are escaped here."""
    titles = "".join(f"<th>{visible(title)}</th>" for title in head)
    body = "".join(f"<tr>{''.join(f'<td>{visible(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>"
