"""Recursion without functions: Yaghi's intensional programs, and an evaluator for them, in one file.

    python docs/intensional.py

It needs Python 3.10 and nothing else; it does not import Undertow. A. Yaghi (The Intensional Implementation Technique
for Functional Languages, PhD thesis, Warwick 1984) turned first-order functional programs into programs without
functions: definitions of plain variables, whose values depend on a context, a list of numbers. The programs below are
in the notation of Kostopoulou's thesis (section 4.2), as `undertow graph FILE:FUNCTION --intensional` prints them.

Take the factorial, called with 5:

    result = call_0(fac)
    fac = if (n <= 1) then 1 else n * call_1(fac)
    n = actuals(5, n - 1)

The two calls of fac are numbered 0 and 1. `call_i(fac)`, in the context c, is the value of fac in the context i:c,
which is c with i put in front. `actuals(5, n - 1)`, in the context i:c, is its argument number i in the context c. So a
formal parameter asks the call that it came from, in the context in which that call was made. Nothing is copied or
substituted, and there is no stack of arguments. The context is what Undertow calls the tag of a token.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Generator
from dataclasses import dataclass, field

# =====================================================================================================
# Part 1. Contexts
# =====================================================================================================
#
# A context is a list of numbers, the innermost call first. Contexts get as long as the recursion is deep, so a
# program that runs needs them without copying: each is made once, by putting a number in front of another one. Then
# equal lists are one object, and looking something up by its context costs the same however long the list is.


@dataclass(eq=False)
class Context:
    """A list of numbers: `label`, and then the numbers of `rest`."""

    label: int = -1
    rest: Context | None = None
    longer: dict[int, Context] = field(default_factory=dict)  # label -> the context that has it in front of this one

    def push(self, label: int) -> Context:
        """This list with a number in front."""
        if label not in self.longer:
            self.longer[label] = Context(label, self)
        return self.longer[label]

    def numbers(self) -> list[int]:
        """The list itself."""
        found: list[int] = []
        at = self
        while at.rest is not None:
            found.append(at.label)
            at = at.rest
        return found


# =====================================================================================================
# Part 2. Programs
# =====================================================================================================
#
# A program is a set of definitions `name = expression`, one on each line. Names that have no definition are inputs.


@dataclass(frozen=True)
class Number:
    """The same in every context."""

    value: int | float | bool


@dataclass(frozen=True)
class Variable:
    """The value of a definition, in this context."""

    name: str


@dataclass(frozen=True)
class Call:
    """`call_i(name)`: the value of a definition in the context with i in front."""

    label: int
    name: str


@dataclass(frozen=True)
class Actuals:
    """`actuals(a, b, ...)`: the argument whose number stands in front of the context, in the rest of it."""

    arguments: tuple[Expression, ...]


@dataclass(frozen=True)
class If:
    """`if (test) then a else b`: one of the two."""

    test: Expression
    then: Expression
    other: Expression


@dataclass(frozen=True)
class Apply:
    """An operation on values, all in this context."""

    function: Callable[..., int | float | bool]
    arguments: tuple[Expression, ...]


Expression = Number | Variable | Call | Actuals | If | Apply
Program = dict[str, Expression]

# Operators between two operands by how tightly they bind, the loosest first. Comparisons do not chain.
INFIX: tuple[dict[str, Callable[..., int | float | bool]], ...] = (
    {"or": lambda a, b: a or b},
    {"and": lambda a, b: a and b},
    {},  # here `not` stands
    {"==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge},
    {"|": operator.or_},
    {"&": operator.and_},
    {"+": operator.add, "-": operator.sub},
    {"*": operator.mul, "/": operator.truediv, "//": operator.floordiv, "%": operator.mod},
)
NOT, SIGN = 2, len(INFIX)
FUNCTIONS: dict[str, Callable[..., int | float | bool]] = {
    "abs": abs, "minimum": min, "maximum": max, "sqrt": math.sqrt, "exp": math.exp, "log": math.log, "sin": math.sin,
    "cos": math.cos, "tan": math.tan, "tanh": math.tanh, "floor": math.floor, "ceil": math.ceil, "trunc": math.trunc,
    "sign": lambda a: (a > 0) - (a < 0), "square": lambda a: a * a, "gcd": math.gcd, "isnan": math.isnan,
    "isinf": math.isinf, "isfinite": math.isfinite, "where": lambda c, a, b: a if c else b,
    "i32": int, "i64": int, "f32": float, "f64": float, "bool": bool,
}  # fmt: skip
CONSTANTS = {"true": True, "false": False, "inf": math.inf, "nan": math.nan}
TOKEN = re.compile(r"\s*(\d+\.?\d*(?:e[+-]?\d+)?|\w+|\*\*|//|[<>=!]=|[-+*/%<>&|(),])")


def parse(text: str) -> Program:
    """The definitions of a text."""
    program: Program = {}
    for line in filter(str.strip, text.splitlines()):
        name, _, right = line.partition(" = ")
        reader = Reader(right)
        program[name.strip()] = reader.expression()
        assert reader.next() == "", f"{line!r} goes on after its expression"
    return program


class Reader:
    """Reads an expression by recursive descent: as deep as parentheses are nested in the text, whatever the data."""

    def __init__(self, text: str) -> None:
        self.tokens = TOKEN.findall(text)
        assert "".join(self.tokens) == re.sub(r"\s", "", text), f"{text!r} has a character that nothing begins with"
        self.at = 0

    def next(self) -> str:
        """The next token; "" at the end."""
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self, *wanted: str) -> str:
        """The next token, which must be one of these, if any are given."""
        token = self.next()
        assert token and (not wanted or token in wanted), f"{token!r} instead of {' or '.join(wanted) or 'an operand'}"
        self.at += 1
        return token

    def expression(self) -> Expression:
        """`if (test) then a else b`, or operators."""
        if self.next() != "if":
            return self.infix(0)
        self.take("if")
        self.take("(")
        test = self.expression()
        self.take(")")
        self.take("then")
        then = self.expression()
        self.take("else")
        return If(test, then, self.expression())

    def infix(self, level: int) -> Expression:
        """Operators that bind at least as tightly as those of this level; they group to the left."""
        if level == SIGN:
            return self.signed()
        if level == NOT and self.next() == "not":
            self.take("not")
            return Apply(operator.not_, (self.infix(NOT),))
        found = self.infix(level + 1)
        while self.next() in INFIX[level]:
            function = INFIX[level][self.take()]
            found = Apply(function, (found, self.infix(level + 1)))
        return found

    def signed(self) -> Expression:
        """A minus in front; powers bind more tightly, and group to the right."""
        if self.next() == "-":
            self.take("-")
            return Apply(operator.neg, (self.signed(),))
        base = self.operand()
        if self.next() == "**":
            self.take("**")
            return Apply(operator.pow, (base, self.signed()))
        return base

    def operand(self) -> Expression:
        """A number, a name, a call, or something in parentheses."""
        token = self.take()
        if token == "(":
            inside = self.expression()
            self.take(")")
            return inside
        if token[0].isdigit():
            return Number(int(token) if token.isdigit() else float(token))
        if token in CONSTANTS:
            return Number(CONSTANTS[token])
        if self.next() != "(":
            return Variable(token)
        self.take("(")
        arguments = [self.expression()]
        while self.take(",", ")") == ",":
            arguments.append(self.expression())
        if token == "actuals":
            return Actuals(tuple(arguments))
        if (numbered := re.fullmatch(r"call_(\d+)", token)) is not None:
            (called,) = arguments
            assert isinstance(called, Variable), "only names can be called"
            return Call(int(numbered[1]), called.name)
        return Apply(FUNCTIONS[token], tuple(arguments))


# =====================================================================================================
# Part 3. EVAL
# =====================================================================================================
#
# Eduction: to know the value of an expression in a context, ask for what it needs, in the contexts in which it needs
# that. Values that are found are kept in a store (the WAREHOUSE), so that nothing is computed twice.
#
# What an expression asks for is written below as a generator. It yields a demand, an expression and a context, and is
# sent the value. The machine that answers keeps the generators that wait in a list, so Python does not recurse,
# however deep the calls of the program are.

Value = int | float | bool
Demands = Generator[tuple["Expression", Context], Value, Value]


class Evaluator:
    """Runs a program with these inputs. A list in `told` gets each demand that the warehouse cannot answer."""

    def __init__(self, program: Program, inputs: dict[str, Value] | None = None) -> None:
        self.program = program
        self.inputs = inputs or {}
        self.warehouse: dict[tuple[str, Context], Value] = {}
        self.empty = Context()
        self.told: list[str] | None = None

    def run(self, name: str = "result") -> Value:
        """The value of a variable in the empty context."""
        waiting = [self.demands(Variable(name), self.empty)]
        value: Value | None = None
        while True:
            try:
                # A generator is started with None, and then sent each value that it has asked for.
                expression, context = waiting[-1].send(value)  # type: ignore[arg-type]
            except StopIteration as done:
                waiting.pop()
                value = done.value
                if not waiting:
                    assert value is not None
                    return value
            else:
                waiting.append(self.demands(expression, context))
                value = None

    def demands(self, expression: Expression, context: Context) -> Demands:
        """EVAL(expression, context)."""
        match expression:
            case Number(number):
                return number
            case Variable(name) if name not in self.program:
                return self.inputs[name]
            case Variable(name):
                if (name, context) not in self.warehouse:
                    if self.told is not None:
                        self.told.append(f"EVAL({name}, {context.numbers()})")
                    self.warehouse[name, context] = yield self.program[name], context
                return self.warehouse[name, context]
            case Call(label, name):
                return (yield Variable(name), context.push(label))
            case Actuals(arguments):
                assert context.rest is not None, "`actuals` in the empty context"
                return (yield arguments[context.label], context.rest)
            case If(test, then, other):
                is_true = yield test, context
                return (yield (then if is_true else other), context)
            case Apply(function, arguments):
                values: list[Value] = []
                for argument in arguments:
                    values.append((yield argument, context))
                return function(*values)


# =====================================================================================================
# Part 4. Programs to run
# =====================================================================================================

THESIS = """
result = call_0(f) + call_1(f)
f = call_0(g)
g = y
x = actuals(4, 5)
y = actuals(x + 1)
"""

FACTORIAL = """
result = call_0(factorial)
factorial = if (n <= 1) then 1 else n * call_1(factorial)
n = actuals(input_n, n - 1)
"""

FIBONACCI = """
result = call_0(fibonacci)
fibonacci = if (n <= 1) then n else call_1(fibonacci) + call_2(fibonacci)
n = actuals(input_n, n - 1, n - 2)
"""

ACKERMANN = """
result = call_0(ackermann)
ackermann = if (m == 0) then n + 1 else if (n == 0) then call_1(ackermann) else call_3(ackermann)
m = actuals(input_m, m - 1, m, m - 1)
n = actuals(input_n, 1, n - 1, call_2(ackermann))
"""

TAKEUCHI = """
result = call_0(takeuchi)
takeuchi = if (x <= y) then z else call_4(takeuchi)
x = actuals(input_x, x - 1, y - 1, z - 1, call_1(takeuchi))
y = actuals(input_y, y, z, x, call_2(takeuchi))
z = actuals(input_z, z, x, y, call_3(takeuchi))
"""

EVEN = """
result = call_0(even)
even = if (n == 0) then true else call_0(odd)
odd = if (n_2 == 0) then false else call_1(even)
n = actuals(input_n, n_2 - 1)
n_2 = actuals(n - 1)
"""


def evaluate(text: str, **inputs: Value) -> Value:
    """The result of a program; what it calls `input_n` is given as `n`."""
    return Evaluator(parse(text), {f"input_{name}": value for name, value in inputs.items()}).run()


def show_the_thesis() -> None:
    """The example of the thesis, demand by demand."""
    evaluator = Evaluator(parse(THESIS))
    evaluator.told = []
    assert evaluator.run() == 11
    print("The program of the thesis:")
    print(THESIS)
    print("Its demands, in their order:\n")
    for line in evaluator.told:
        print(f"  {line}")
    print("\nand result is 11.")
    assert "EVAL(y, [0, 1])" in evaluator.told and "EVAL(x, [1])" in evaluator.told


def takeuchi(x: int, y: int, z: int) -> int:
    """The function of that program, for Python."""
    return z if x <= y else takeuchi(takeuchi(x - 1, y, z), takeuchi(y - 1, z, x), takeuchi(z - 1, x, y))


def show_recursion() -> None:
    """Recursive functions, each against Python's own."""
    print("\nRecursive functions:\n")
    rows = [
        ("factorial(20)", evaluate(FACTORIAL, n=20), math.factorial(20)),
        ("fibonacci(20)", evaluate(FIBONACCI, n=20), 6765),
        ("ackermann(2, 3)", evaluate(ACKERMANN, m=2, n=3), 9),
        ("takeuchi(7, 4, 0)", evaluate(TAKEUCHI, x=7, y=4, z=0), takeuchi(7, 4, 0)),
        ("even(101)", evaluate(EVEN, n=101), False),
    ]
    for call, found, expected in rows:
        assert found == expected, (call, found, expected)
        print(f"  {call:18} = {found}")


def show_depth_and_laziness() -> None:
    """Contexts are data: their length is limited by memory. What is not demanded is not computed."""
    depth = 50_000
    assert evaluate(EVEN, n=depth) is True
    print(f"\neven({depth:,}) is true: {depth:,} nested calls, and Python's stack is as deep as before.")
    lazy = "result = call_0(first)\nfirst = a\na = actuals(7)\nb = actuals(call_0(b))"
    assert evaluate(lazy) == 7
    print("first(7, endless) = 7: nobody demanded the second argument.")


if __name__ == "__main__":
    show_the_thesis()
    show_recursion()
    show_depth_and_laziness()
