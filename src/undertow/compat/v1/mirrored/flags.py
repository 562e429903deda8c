"""`tf.app.flags`: options of a program, read from its command line when the first one is asked for."""

from __future__ import annotations

import argparse
import sys
from typing import Any

__all__ = ["FLAGS", "DEFINE_bool", "DEFINE_boolean", "DEFINE_float", "DEFINE_integer", "DEFINE_string"]


class Flags:
    """The values of flags, as attributes. Other arguments of the command line stay as they are."""

    def __init__(self) -> None:
        self.__dict__["_parser"] = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
        self.__dict__["_values"] = {}
        self.__dict__["_is_parsed"] = False

    def define(self, name: str, default: Any, help: str, kind: Any) -> None:
        """Add a flag; one that there is already gets this default."""
        is_new = name not in self._values
        self._values[name] = default
        if is_new:
            names = [f"--{name}"] + ([f"--no{name}"] if kind is bool else [])
            how: dict[str, Any] = {"action": _Switch, "nargs": "?"} if kind is bool else {"type": kind}
            self._parser.add_argument(*names, dest=name, default=argparse.SUPPRESS, help=help, **how)
        self.__dict__["_is_parsed"] = False

    def _parse(self) -> None:
        if not self._is_parsed:
            known, _ = self._parser.parse_known_args(sys.argv[1:])
            self._values.update(vars(known))
            self.__dict__["_is_parsed"] = True

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        self._parse()
        if name not in self._values:
            raise AttributeError(f"there is no flag {name!r}: define it with tf.app.flags.DEFINE_string, or its kind")
        return self._values[name]

    def __setattr__(self, name: str, value: Any) -> None:
        self._parse()
        self._values[name] = value

    def __repr__(self) -> str:
        return "the flags of this program"

    def flag_values_dict(self) -> dict[str, Any]:
        """All flags and their values."""
        self._parse()
        return dict(self._values)


class _Switch(argparse.Action):
    """--flag, --flag=false, --noflag."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        is_on = values is None or str(values).lower() in ("true", "t", "1", "yes")
        setattr(namespace, self.dest, is_on and option_string != f"--no{self.dest}")


FLAGS = Flags()


def DEFINE_string(flag_name: str, default_value: Any, docstring: str) -> None:
    """A flag that is a text."""
    FLAGS.define(flag_name, default_value, docstring, str)


def DEFINE_integer(flag_name: str, default_value: Any, docstring: str) -> None:
    """A flag that is a whole number."""
    FLAGS.define(flag_name, default_value, docstring, int)


def DEFINE_float(flag_name: str, default_value: Any, docstring: str) -> None:
    """A flag that is a number."""
    FLAGS.define(flag_name, default_value, docstring, float)


def DEFINE_boolean(flag_name: str, default_value: Any, docstring: str) -> None:
    """A flag that is on or off."""
    FLAGS.define(flag_name, default_value, docstring, bool)


DEFINE_bool = DEFINE_boolean
