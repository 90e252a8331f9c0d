"""``NamedTuple`` without the price of importing ``typing`` (half the start of a cold command).

Type checkers see ``typing.NamedTuple``; at run time a class body's annotations become the fields of a tuple, with
the defaults written there. Only what this package uses is here: construction, attributes, ``_make``,
``_asdict``, ``_replace``.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NamedTuple
else:
    from operator import itemgetter

    class NamedTuple(tuple):
        """An immutable record whose fields are the annotations of its class body."""

        __slots__ = ()
        _fields = ()
        _defaults = ()

        def __init_subclass__(cls):
            cls._fields = tuple(cls.__annotations__)
            cls._defaults = tuple(cls.__dict__[name] for name in cls._fields if name in cls.__dict__)
            for position, name in enumerate(cls._fields):
                setattr(cls, name, property(itemgetter(position)))

        def __new__(cls, *values, **named):  # noqa: D102 - as NamedTuple's
            fields = cls._fields
            if len(values) == len(fields) and not named:
                return tuple.__new__(cls, values)
            missing = len(fields) - len(values)
            if missing:
                defaults = dict(zip(fields[len(fields) - len(cls._defaults) :], cls._defaults, strict=True))
                try:
                    values += tuple(
                        named.pop(name) if name in named else defaults[name] for name in fields[len(values) :]
                    )
                except KeyError as error:
                    raise TypeError(f"{cls.__name__} misses its field {error}") from None
            if named or missing < 0:
                raise TypeError(f"{cls.__name__} has no field for {named or values[len(fields) :]}")
            return tuple.__new__(cls, values)

        @classmethod
        def _make(cls, values):
            return tuple.__new__(cls, values)

        def __getnewargs__(self):
            return tuple(self)

        def __repr__(self):
            pairs = zip(self._fields, self, strict=True)
            return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in pairs)})"

        def _asdict(self):
            return dict(zip(self._fields, self, strict=True))

        def _replace(self, **changes):
            return type(self)(**{**self._asdict(), **changes})


__all__ = ["NamedTuple"]
