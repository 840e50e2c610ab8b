"""What every command of the project shares: plain numbers, strict JSON, errors in one line."""

from __future__ import annotations

import json
import math
import re
import sys

import click

from landscape.parameters import ParameterError

DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)


class Number(click.ParamType):
    """A finite decimal number in plain ASCII: no nan, inf, underscores, decimal commas or hexadecimal."""

    name = "number"

    def convert(self, value, param, ctx):
        if isinstance(value, float):
            return value
        if is_plain_decimal(value):
            return float(value)
        self.fail(f"{value!r} is not a finite decimal number.", param, ctx)


class Count(click.ParamType):
    """A non-negative whole number in plain ASCII digits."""

    name = "count"

    def convert(self, value, param, ctx):
        if isinstance(value, int):
            return value
        if re.fullmatch(r"[0-9]{1,12}", value, re.ASCII):
            return int(value)
        self.fail(f"{value!r} is not a whole number.", param, ctx)


class Start(click.ParamType):
    """A start: numbers separated by commas."""

    name = "v,v,..."

    def convert(self, value, param, ctx):
        return tuple(NUMBER.convert(part, param, ctx) for part in value.split(","))


NUMBER, COUNT, START = Number(), Count(), Start()
AXIS = (NUMBER, NUMBER, COUNT)


def is_plain_decimal(text: str) -> bool:
    """Whether a text is a finite decimal number in plain ASCII."""
    return bool(DECIMAL.fullmatch(text)) and math.isfinite(float(text))


def strict_json(data) -> str:
    """One JSON object in ASCII, with null for what is not a finite number."""
    return json.dumps(_finite(data), indent=1, allow_nan=False)


def _finite(data):
    if isinstance(data, dict):
        return {str(key): _finite(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [_finite(value) for value in data]
    if isinstance(data, float):
        return data if math.isfinite(data) else None
    if isinstance(data, str):  # a file name in another encoding comes with surrogates, which are no JSON text
        return data.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return data


def run_command(command: click.Command, arguments=None) -> None:
    """Run a click command and exit: 0 done, 2 bad usage or value, 1 anything else; errors take one line."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        code = command.main(args=arguments, standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.ctx.get_help())
        code = 0
    except click.exceptions.Exit as error:
        code = error.exit_code
    except click.Abort:
        code = _complain("Interrupted.", 1)
    except click.ClickException as error:
        code = _complain(error.format_message(), error.exit_code)
    except ParameterError as error:
        code = _complain(_about_option(error), 2)
    except OSError as error:
        code = _complain(str(error), 1)
    sys.exit(code if isinstance(code, int) else 0)


def _about_option(error: ParameterError) -> str:
    return f"Invalid value for '--{error.parameter.replace('_', '-')}': must be {error.requirement}. Got {error.value!r}."


def _complain(text: str, code: int) -> int:
    click.echo("Error: " + " ".join(text.split()), err=True)
    return code
