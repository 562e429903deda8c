"""Cases for every class of syntax nodes, on constants, single numbers, arrays and containers.

Operators are tried with every pair of operands below; other syntax has texts of its own. `test_table.py` asserts that
no class of `ast` is left out.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.support.language.case import Case, expression, statements

PAIRS = (
    ("7", "2"), ("-7", "2.5"), ("True", "True"), ("'a'", "'b'"), ("[1, 2]", "[3]"), ("(1,)", "(1,)"), ("{1}", "{1, 2}"),
    ("None", "None"), ("'ab'", "2"), ("np.arange(3)", "2"), ("np.arange(3) > 0", "np.arange(3) > 1"),
    ("n", "2"), ("2", "n"), ("n", "n"), ("n", "-3"), ("a", "2"), ("2.0", "a"), ("a", "a"), ("n", "a"), ("b", "b"),
    ("b", "n"), ("b", "True"), ("n", "'a'"), ("'a'", "n"), ("n", "None"), ("None", "a"), ("n", "[1, 2]"), ("(1, 2)", "n"),
    ("n", "(2, 3)"), ("a", "{'p': 1}"), ("n", "{1, 2}"), ("n", "range(5)"), ("n", "np.arange(3)"), ("n", "2**70"),
    ("x", "2"), ("2.0", "x"), ("x", "y"), ("x", "n"), ("a", "x"), ("k", "2"), ("k", "k"), ("k", "0.5"), ("k", "x"), ("m", "m"),
    ("m", "x"), ("m", "True"), ("m", "1"), ("b", "m"), ("A", "x[:2]"), ("A", "A"), ("x", "x[:2]"), ("x", "'a'"), ("x", "None"),
    ("x", "[1, 2, 3, 4]"), ("(1, 2, 3, 4)", "x"), ("x", "np.arange(4)"), ("np.arange(4)", "x"), ("2.5", "x"), ("x[0]", "2"),
    ("x[0]", "x[1]"), ("m[0]", "m[1]"),
    ("l", "l"), ("l", "2"), ("2", "l"), ("l", "n"), ("n", "l"), ("t", "t"), ("t", "(1,)"), ("l", "[1.0]"), ("l", "x[:3]"),
    ("x[:3]", "l"), ("d", "d"), ("v", "v"), ("l", "t"), ("l", "None"), ("'p'", "d"), ("3.0", "l"), ("a", "l"), ("n", "t"),
    ("x", "v"), ("n", "d"), ("[n, a]", "[n, a]"), ("(n, 1)", "(n, 2)"), ("d", "{'q': 1}"),
)  # fmt: skip
BINARY = {
    "Add": "+", "Sub": "-", "Mult": "*", "Div": "/", "FloorDiv": "//", "Mod": "%", "Pow": "**", "MatMult": "@",
    "BitAnd": "&", "BitOr": "|", "BitXor": "^", "LShift": "<<", "RShift": ">>",
}  # fmt: skip
COMPARE = {
    "Eq": "==", "NotEq": "!=", "Lt": "<", "LtE": "<=", "Gt": ">", "GtE": ">=", "In": "in", "NotIn": "not in", "Is": "is",
    "IsNot": "is not",
}  # fmt: skip
UNARY = {"USub": "-", "UAdd": "+", "Invert": "~", "Not": "not "}
OPERANDS = (
    "3",
    "2.5",
    "True",
    "[]",
    "'a'",
    "np.arange(3)",
    "n",
    "a",
    "b",
    "x",
    "k",
    "m",
    "A",
    "l",
    "t",
    "d",
    "v",
    "x[0]",
    "m[0]",
)
# Other syntax: texts of statements, or expressions.
TEXTS: dict[str, tuple[str, ...]] = {
    "BoolOp": (
        "0 or 3", "n and 2", "n or 2", "n and n", "a or n", "b and b", "b or n > 0", "n > 0 and a > 0", "n > 0 or 1 // n > 0",
        "x and 1", "x[0] or 1.0", "l and 1", "d or 1", "[] or n", "n and l", "not (b and n)", "None or n", "n or None", "n and 'a'",
    ),
    "Compare": ("1 < 2 < 3", "0 < n < 4", "0.0 < a <= 2.5", "x[0] < x[1] < x[2]", "0 < x < 2", "n == n == n", "0 < n != a"),
    "IfExp": (
        "1 if True else 2", "1 if n else 2", "n if b else a", "x if b else y", "1 if x else 2", "1 if l else 2", "l if b else [1.0, 2.0, 3.0]",
        "d if n else d", "'p' if b else 'q'", "None if b else 1", "x if b else A", "t if n > 0 else (0, 0)", "n if x[0] > 1 else 2",
        "l if b else t", "abs if b else len", "d[('p' if b else 'q')]", "1 if m[0] else 0", "x if n else 0",
    ),
    "Call": (
        "abs(-3)", "abs(n)", "max(*t)", "dict(p=n)", "dict(**d)", "(lambda p, *q, r=1, **s: (p, q, r, s))(n, a, *t, r=2, z=b)",
        "[len, sum][0](l)", "x.sum()", "x.sum(axis=0)", "n()", "x()", "str.upper('a')", "float.is_integer(a)", "int.__add__(n, 1)",
    ),
    "Attribute": (
        "np.pi", "n.real", "a.imag", "x.shape", "x.T", "x.ndim", "x.size", "x.dtype", "x.nbytes", "x.itemsize", "A.mT", "x.flat", "l.append", "d.keys",
        "x.nothing", "n.shape", "n.numerator", "b.real", "x.real", "x.base", "x.strides", "x.flags", "x.data", "a.__class__", "x.__class__", "x.__dict__",
    ),
    "Subscript": (
        "[1, 2, 3][1]", "'abc'[n]", "[10, 20, 30, 40][n]", "(10, 20, 30, 40)[n]", "{'p': 1}['p']", "{1: 10}[n]", "[[1], [2, 3]][n]", "['a', 'b', 'c', 'd'][n]",
        "n[0]", "x[0]", "x[-1]", "x[n]", "x[b]", "x[k]", "x[m]", "x[x > 1]", "A[0]", "A[0, 1]", "A[k % 2]", "A[n % 2, 0]", "A[:, None]", "A[..., 0]", "x[None]",
        "x[[0, 2]]", "x[(0,)]", "A[[0, 1], [1, 0]]", "A[k[:2] % 2, k[:2] % 2]", "x[1.5]", "x['a']", "x[9]", "A[(0, 1)]", "x[True]", "x[np.array([True, False, True, False])]",
        "A[n]", "k[k]", "x[np.int64(1)]", "x[()]", "A[m[:2]]",
        "l[0]", "l[n]", "l[-n]", "t[n % 2]", "d['p']", "d[n]", "d['z']", "v[0]", "v[n % 2]", "v[0][1]", "l[9]", "l[a]", "t[1.0]", "d[l[0]]",
    ),
    "Slice": (
        "[1, 2, 3][1:]", "'abc'[::-1]", "x[1:3]", "x[::-1]", "x[1:n]", "x[n:]", "x[:n]", "x[::2]", "x[-2:]", "x[::n]", "A[1:, :1]", "A[:, ::-1]", "x[5:]", "x[0:0]",
        "x[n:n + 2]", "l[1:]", "l[::-1]", "l[:n]", "t[:1]", "t[n:]", "x[-n:]", "x[1:-n]", "x[a:]", "x[None:2]", "range(5)[1:n]", "'abc'[:n]", "x[slice(1, 3)]", "x[slice(n)]",
    ),
    "Starred": ("[*[1, 2], 3]", "[*t, n]", "[*x]", "(*l, *t)", "[*d]", "{*[1, 2]}", "[*A]", "p, *q = l\nreturn p, q", "p, *q = x\nreturn p, q", "*p, q = t\nreturn p, q", "[*range(n)]", "[*'ab']"),
    "List": ("[1, [2]]", "[n, a]", "[x, A]", "[l, d]", "[]", "[n, 'a', None]"),
    "Tuple": ("(1, (2,))", "(n, a)", "(x, A)", "(l, d)", "()", "n,"),
    "Set": ("{1, 2}", "{n}", "{x}", "{'a'}", "{l}", "{t}"),
    "Dict": ("{'a': 1}", "{'a': n, **{'b': a}}", "{n: 1}", "{'a': x}", "{**d, 'p': n}", "{x: 1}", "{1: n, 1.0: a}", "{(1, 2): n}"),
    "ListComp": (
        "[i * 2 for i in range(3)]", "[i * n for i in range(3)]", "[i for i in range(n)]", "[i for i in l if i > 1]", "[i for i in range(4) if i % 2]", "[p + 1 for p in x]",
        "[p + q for p in l for q in t]", "[p for p in d]", "[p * 2 for p in d.values()]", "[row.sum() for row in A]", "[i for i in range(n) if i % 2]", "[(p := i) for i in t]",
        "[w for w in x if w > 1]", "[p for p in 'ab']", "[q for p in v for q in p]", "[f() for f in [lambda: i for i in range(3)]]",
    ),
    "SetComp": ("{i for i in range(3)}", "{i for i in l}", "{p for p in d}", "{i * n for i in range(2)}", "{i for i in x}"),
    "DictComp": ("{i: i * 2 for i in range(3)}", "{i: i * n for i in range(3)}", "{p: q for p, q in d.items()}", "{i: 1 for i in l}", "{i: x for i in range(2)}", "{i: 1 for i in range(n)}"),
    "GeneratorExp": ("sum(i for i in range(3))", "sum(i * n for i in range(3))", "list(i for i in l)", "max(p for p in x)", "any(p > 1 for p in x)", "tuple(i for i in range(n))", "(i for i in l)", "all(p > 0 for p in l)", "sorted(i for i in l)"),
    "comprehension": ("[p for p, q in zip(l, l)]", "[i for i, p in enumerate(x)]", "[p for p in zip(x, y)]", "[p for p in reversed(l)]"),
    "NamedExpr": ("(p := 3) + p", "(p := n) + p", "(p := x) + p", "[p := l, p]", "return (p if (p := n * 2) > 1 else -p)", "while (p := n) > 5:\n    n = n - 1\nreturn p"),
    "Lambda": ("(lambda p: p + 1)(2)", "(lambda p: p + 1)(n)", "(lambda p, q=n: p + q)(1)", "(lambda: x)()", "(lambda *p: p)(*l)", "(lambda **p: p)(**d)", "lambda: 1", "lambda: n"),
    "JoinedStr": ("f'{3}'", "f'{n}'", "f'{a:.2f}'", "f'{x}'", "f'{l}'", "f'{d}'", "f'{n!r}'", "f'{1.5:.3f}'", "f'{n=}'", "len(f'{n}')", "f'{n}' == '3'", "f'{n}' + 'a'", "f'{n:>{4}}'", "{f'{n}': 1}", "f'{n}'.upper()", "f'{[n]}'", "f'a{n}b'[0]", "print(f'{n} {a:.2f} {x}')", "print(f'{l} {d}')", "'a' + f'{b}'", "f'{n}' in ['3']", "str(n)", "str(l)", "'%d' % n", "'{}'.format(n)", "'%s' % l", "repr(x)", "str(x)", "'{:.1f}'.format(a)", "'a'.join([f'{n}'])"),
    "Constant": ("3", "'a'", "None", "...", "b'a'", "1j", "True", "2**70", "(1, 'a')", "1e400"),
    "Name": ("np", "abs", "nothing", "__name__", "n", "x", "l", "d"),
    "Assign": (
        "p = 3\nreturn p", "p = q = n\nreturn p, q", "p, q = n, a\nreturn q, p", "p, (q, r) = n, (a, 1)\nreturn p, q, r", "p, q = x[:2]\nreturn q, p", "[p, q] = t\nreturn q, p",
        "p, q, r = l\nreturn p + r", "p = [1, 2]\np[0] = n\nreturn p", "p = [1, 2]\np[n] = 5\nreturn p", "p = {}\np['a'] = n\nreturn p", "p = {}\np[n] = 1\nreturn p",
        "p = l\np[0] = 5.0\nreturn l, p", "p = d\np['p'] = 5.0\nreturn d, p", "p = x\np[0] = 5.0\nreturn x, p", "p = x.copy()\np[0] = 5.0\nreturn x, p", "p = np.zeros(3)\np[0] = a\nreturn p",
        "x[n] = 5.0\nreturn x", "x[1:3] = 0.0\nreturn x", "x[m] = 0.0\nreturn x", "A[0, 1] = a\nreturn A", "A[0] = 1.0\nreturn A", "p = A[0]\np[0] = 9.0\nreturn A", "p = x[1:]\np[0] = 9.0\nreturn x",
        "n, a = a, n\nreturn n, a", "p = [l, l]\np[0][0] = 7.0\nreturn p", "p = [[0] * 2] * 2\np[0][0] = n\nreturn p", "p = list(l)\np[0] = a\nreturn l, p", "p = l[:]\np[0] = a\nreturn l, p", "p = dict(d)\np['p'] = a\nreturn d, p",
        "p, q = n\nreturn p", "p, q = l\nreturn p", "p, q, *r = l\nreturn r", "v[0][0] = 5.0\nreturn v", "p = v\np[0] = v[1]\nreturn v", "l[1:] = [a]\nreturn l", "l[n:] = []\nreturn l", "d['r'] = n\nreturn d", "p = (l, 1)\np[0][0] = 2.0\nreturn l",
        "p = x\np = p + 1\nreturn x, p", "p = np.arange(3)\nq = p\nq[0] = 7\nreturn p", "x.shape = (2, 2)\nreturn x", "p = lambda: 1\np.q = n\nreturn p.q",
    ),
    "AnnAssign": ("p: int = 3\nreturn p", "p: int = n\nreturn p", "p: np.ndarray = x\nreturn p", "p: list\np = l\nreturn p", "p: int\nreturn n", "x[0]: float = 2.0\nreturn x"),
    "AugAssign": (
        "p = 3\np += n\nreturn p", "p = [1]\nq = p\nq += [n]\nreturn p", "p = (1,)\nq = p\nq += (n,)\nreturn p, q", "l += [1.0]\nreturn l", "p = l\np += [1.0]\nreturn l", "p = l\np *= 2\nreturn l", "d['p'] += 1\nreturn d", "l[0] += a\nreturn l",
        "p = x\np += 1\nreturn x", "x[0] += 1\nreturn x", "p = x[0:2]\np += 1\nreturn x", "p = x.copy()\np += 1\nreturn x, p", "k += 0.5\nreturn k", "k += 1\nreturn k", "p = k\np *= 2\nreturn k", "m &= False\nreturn m", "A[0] *= 2\nreturn A", "A[:, 0] += x[:2]\nreturn A",
        "p = {1}\nq = p\nq |= {2}\nreturn p", "p = {'a': n}\nq = p\nq |= {'b': 1}\nreturn p", "p = v[0]\np += 1\nreturn v", "v[0] += 1\nreturn v", "for p in v:\n    p += 1\nreturn v", "for p in l:\n    p += 1\nreturn l", "p = np.zeros(2)\np += a\nreturn p", "x /= 2\nreturn x", "k /= 2\nreturn k",
        "t += (1,)\nreturn t", "p = 'a'\np += 'b'\nreturn p", "n **= 2\nreturn n", "a //= 2\nreturn a", "A @= A\nreturn A", "k <<= 1\nreturn k", "p = [x]\np[0] += 1\nreturn x", "p = A.T\np += 1\nreturn A", "p = x.reshape(2, 2)\np += 1\nreturn x", "p = x.ravel()\np[0] = 3.0\nreturn x", "x += x\nreturn x", "x += y\nx -= y\nreturn x, y",
    ),
    "Delete": ("p = 1\ndel p\nreturn n", "del n\nreturn n", "p = [1, 2]\ndel p[0]\nreturn p", "del l[0]\nreturn l", "p = l\ndel p[1:]\nreturn l", "del d['p']\nreturn d", "del x[0]\nreturn x", "p = {'a': n}\ndel p['a']\nreturn p", "del l[n]\nreturn l"),
    "Expr": ("1\nreturn n", "n\nreturn n", "x.sum()\nreturn x", "l.append(1.0)\nreturn l", "'text'\nreturn n"),
    "Pass": ("pass\nreturn n", "if n > 0:\n    pass\nreturn n", "for i in range(n):\n    pass\nreturn x"),
    "Return": ("return", "return None", "return n", "return x, l", "if n > 0:\n    return 1\nreturn 2", "if n > 0:\n    return n\nreturn None", "if n > 0:\n    return x\nreturn y", "if n > 0:\n    return 'a'\nreturn 'b'", "if n > 0:\n    return l\nreturn t", "if n > 0:\n    return", "for p in l:\n    if p > 1:\n        return p\nreturn -1.0", "return l, l", "p = [n]\nreturn p, p"),
    "Assert": ("assert True\nreturn 1", "assert n > -5\nreturn n", "assert n > 0, 'small'\nreturn n", "assert n > 0, f'small {n}'\nreturn n", "assert x.sum() > 0\nreturn x", "assert l\nreturn l", "assert n\nreturn n", "assert 0, 'no'\nreturn n", "assert x\nreturn x", "assert d\nreturn d", "assert (x > -9).all(), x\nreturn x"),
    "Raise": ("raise ValueError('no')", "if n > 0:\n    raise ValueError('no')\nreturn n", "if n > 9:\n    raise ValueError(n)\nreturn n", "raise", "raise n", "if x.sum() > 99:\n    raise ValueError\nreturn x", "for p in l:\n    if p > 99:\n        raise IndexError\nreturn l", "if n == 5:\n    raise SystemExit\nreturn n"),
    "If": (
        "if True:\n    return 1\nreturn 2", "if n:\n    return 1\nreturn 2", "if a > 0:\n    p = 1\nelse:\n    p = 2\nreturn p", "if x:\n    return 1\nreturn 2", "if l:\n    return 1\nreturn 2", "if d:\n    return 1\nreturn 2", "if n > 0:\n    p = 1\nreturn p", "if n > 0:\n    p = 1\nelif n < 0:\n    p = 2.5\nelse:\n    p = 3\nreturn p",
        "if b:\n    l.append(1.0)\nreturn l", "if n > 0:\n    l[0] = 9.0\nreturn l", "p = l\nif n > 0:\n    p = [1.0, 2.0, 3.0]\np[0] = 5.0\nreturn l, p", "p = 'a'\nif n > 0:\n    p = 'b'\nreturn p", "if n > 0:\n    d['p'] = 9.0\nreturn d", "if x[0] > 1:\n    x = x + 1\nreturn x", "if b:\n    x[0] = 5.0\nreturn x", "p = None\nif n > 0:\n    p = n\nreturn p", "if n > 0:\n    del l[0]\nreturn l", "if b:\n    print('yes')\nreturn n", "if m.any():\n    return 1\nreturn 0", "p = x\nif b:\n    p += 1\nreturn x",
    ),
    "For": (
        "p = 0\nfor i in range(3):\n    p += i\nreturn p", "p = 0\nfor i in range(n):\n    p += i\nreturn p", "p = 0.0\nfor q in x:\n    p += q\nreturn p", "p = 0.0\nfor q in l:\n    p += q\nreturn p", "p = []\nfor q in d:\n    p.append(q)\nreturn p", "p = []\nfor i in range(n):\n    p.append(i)\nreturn p", "p = 0.0\nfor i, q in enumerate(x):\n    p += i * q\nreturn p",
        "p = 0.0\nfor q, r in zip(l, l):\n    p += q * r\nreturn p", "p = 0.0\nfor q, r in d.items():\n    p += r\nreturn p", "for i in range(n):\n    x = x + 1\nreturn x", "for i in range(n):\n    l[0] = l[0] + 1\nreturn l", "p = 0\nfor i in range(5):\n    if i == n:\n        break\n    p += i\nelse:\n    p = -1\nreturn p", "for i in range(n):\n    pass\nreturn i", "for i in range(3):\n    pass\nreturn i",
        "p = 1\nfor i in range(n, 0, -1):\n    p *= i\nreturn p", "p = 0\nfor i in range(0, 10, n):\n    p += 1\nreturn p", "for q in A:\n    q += 1\nreturn A", "p = 0\nfor i in range(n):\n    for j in range(i):\n        p += j\nreturn p", "for l[0] in t:\n    pass\nreturn l", "p = 0.0\nfor q, r in A:\n    p += q - r\nreturn p", "for i in range(n):\n    x[i % 4] = 0.0\nreturn x", "p = []\nfor q in x:\n    p.append(q * 2)\nreturn p", "p = 0\nfor i in n:\n    p += 1\nreturn p", "p = 0\nfor i in range(a):\n    p += 1\nreturn p",
        "p = 0\nfor i in reversed(range(n)):\n    p = p * 2 + i\nreturn p", "p = 0\nfor i, j in enumerate(range(n)):\n    p += j\nreturn p", "p = 0\nfor i in l[:]:\n    l.append(i)\nreturn l", "p = ''\nfor q in 'abc':\n    p += q\nreturn p", "for i in range(n):\n    print(i)\nreturn n", "p = 0\nfor i in range(n):\n    p = max(p, i)\nreturn p", "p = 0\nfor i in range(b):\n    p += 1\nreturn p",
    ),
    "While": (
        "p = 0\nwhile p < 3:\n    p += 1\nreturn p", "while n > 0:\n    n -= 1\nreturn n", "while n > 0:\n    n -= 1\nelse:\n    n = 7\nreturn n", "p = 0\nwhile True:\n    p += 1\n    if p > n:\n        break\nreturn p", "while x[0] > 0:\n    x = x - 1\nreturn x", "while l:\n    l.pop()\nreturn l", "p = []\nwhile n > 0:\n    p.append(n)\n    n -= 1\nreturn p", "while n > 0:\n    n -= 1\n    if n == 1:\n        continue\nreturn n", "while n:\n    n = n // 2 if n > 0 else 0\nreturn n",
        "while x.sum() > 0:\n    x -= 1\nreturn x", "while d['p'] > 0:\n    d['p'] -= 1\nreturn d", "while n > 0:\n    n -= 1\n    x = x * 2\nreturn x", "while n > 0:\n    l[0] += 1\n    n -= 1\nreturn l",
    ),
    "Break": ("for i in range(9):\n    if i == 2:\n        break\nreturn i", "p = 0\nfor i in range(9):\n    if i == n:\n        break\n    p = i\nreturn p", "p = 0.0\nfor q in x:\n    if q > 3:\n        break\n    p += q\nreturn p", "p = 0.0\nfor q in l:\n    if q > 2:\n        break\n    p += q\nreturn p"),
    "Continue": ("p = 0\nfor i in range(4):\n    if i == 2:\n        continue\n    p += i\nreturn p", "p = 0\nfor i in range(4):\n    if i == n:\n        continue\n    p += i\nreturn p", "p = 0.0\nfor q in x:\n    if q > 3:\n        continue\n    p += q\nreturn p", "p = 0.0\nfor q in l:\n    if q > 2:\n        continue\n    p += q\nreturn p"),
    "FunctionDef": (
        "def g(p):\n    return p + 1\nreturn g(2)", "def g(p):\n    return p + n\nreturn g(a)", "def g(p, q=n, *r, s=1, **z):\n    return p, q, r, s, z\nreturn g(a, w=2)", "def g(p):\n    p += 1\n    return p\nreturn g(x), x", "def g(p):\n    p.append(1.0)\ng(l)\nreturn l", "def g(p):\n    p[0] = 5.0\ng(x)\nreturn x", "def g():\n    return g\nreturn n",
        "@ut.function\ndef g(p):\n    return p + 1\nreturn g(n)", "@functools.cache\ndef g(p):\n    return p\nreturn g(2)", "@functools.cache\ndef g(p):\n    return p\nreturn g(n)", "def g(p, /, q, *, r):\n    return p, q, r\nreturn g(n, q=1, r=2)", "def g(p=[]):\n    p.append(n)\n    return p\nreturn g(), g()", "def g():\n    return n\nn = 5\nreturn g()", "def g():\n    x[0] = 5.0\ng()\nreturn x", "@ut.function\ndef g(p):\n    p.append(1.0)\n    return 1\ng(l)\nreturn l", "@ut.function\ndef g(p):\n    p += 1\n    return 1\ng(x)\nreturn x",
    ),
    "AsyncFunctionDef": ("async def g():\n    return 1\nreturn n",),
    "Await": ("async def g():\n    await g()\nreturn n", "async def g():\n    await g()\nreturn x"),
    "AsyncFor": ("async def g():\n    async for i in n:\n        pass\nreturn n",),
    "AsyncWith": ("async def g():\n    async with n:\n        pass\nreturn n",),
    "ClassDef": ("class C:\n    pass\nreturn n", "class C:\n    q = n\nreturn C.q", "class C:\n    def __init__(self, p):\n        self.p = p\nreturn C(x).p", "class C(list):\n    pass\nreturn C(l)"),
    "Try": (
        "try:\n    p = 1\nexcept ValueError:\n    p = 2\nreturn p", "try:\n    p = 1 // n\nexcept ZeroDivisionError:\n    p = 0\nreturn p", "try:\n    p = x[n]\nexcept IndexError:\n    p = 0.0\nreturn p", "try:\n    p = d['z']\nexcept KeyError:\n    p = 0.0\nreturn p", "try:\n    p = l[0]\nfinally:\n    q = 1\nreturn p", "try:\n    p = int('a')\nexcept ValueError as e:\n    p = 5\nelse:\n    p = 6\nreturn p",
    ),
    "TryStar": ("try:\n    p = n\nexcept* ValueError:\n    p = 2\nreturn p", "try:\n    p = 1\nexcept* ValueError:\n    p = 2\nreturn p"),
    "ExceptHandler": ("try:\n    raise ValueError\nexcept (ValueError, TypeError):\n    return n", "try:\n    raise ValueError\nexcept:\n    return x"),
    "With": ("with np.errstate(all='ignore'):\n    p = 1\nreturn p", "with np.errstate(all='ignore'):\n    p = n / 2\nreturn p", "with open('a', 'w') as p:\n    pass\nreturn x", "with l:\n    pass\nreturn l", "with ut.device('cpu'):\n    p = n\nreturn p"),
    "Import": ("import math\nreturn math.pi", "import math\nreturn math.sqrt(abs(a))", "import os.path\nreturn n", "import numpy as np2\nreturn np2.sum(x)", "import nothing_like_it\nreturn n", "import copy\nreturn copy.copy(l)"),
    "ImportFrom": ("from math import pi\nreturn pi", "from math import sin as p\nreturn p(a)", "from math import nothing\nreturn n", "from functools import reduce\nreturn reduce(max, l)"),
    "Global": ("global SOME\nSOME = 3\nreturn SOME", "global SOME\nSOME = n\nreturn SOME", "global SOME\nSOME = x\nreturn x"),
    "Nonlocal": ("p = 1\ndef g():\n    nonlocal p\n    p = 2\ng()\nreturn p", "p = n\ndef g():\n    nonlocal p\n    p += 1\ng()\nreturn p", "p = x\ndef g():\n    nonlocal p\n    p = p + 1\ng()\nreturn p", "p = l\ndef g():\n    nonlocal p\n    p = p + [1.0]\ng()\nreturn p"),
    "Yield": ("def g():\n    yield 1\nreturn list(g())", "def g():\n    yield n\nreturn list(g())", "def g():\n    yield x\nreturn sum(g())", "yield n", "def g():\n    for p in l:\n        yield p\nreturn sum(g())"),
    "YieldFrom": ("def g():\n    yield from [1]\nreturn list(g())", "def g():\n    yield from l\nreturn list(g())", "def g():\n    yield from x\nreturn list(g())"),
    "Match": ("match 3:\n    case 3:\n        return 1\nreturn 2", "match n:\n    case 3:\n        return 1\n    case _:\n        return 2", "match x:\n    case _:\n        return 1", "match l:\n    case [p, *q]:\n        return p"),
    "MatchValue": ("match n:\n    case 3:\n        return 1\nreturn 2", "match 'a':\n    case 'a':\n        return 1\nreturn 2"),
    "MatchSingleton": ("match None:\n    case None:\n        return 1\nreturn 2", "match b:\n    case True:\n        return 1\nreturn 2"),
    "MatchSequence": ("match (1, 2):\n    case (p, q):\n        return p\nreturn 3", "match t:\n    case (p, q):\n        return p\nreturn 3", "match x:\n    case [p, q]:\n        return p\nreturn 3"),
    "MatchStar": ("match [1, 2]:\n    case [p, *q]:\n        return q\nreturn 3", "match l:\n    case [p, *q]:\n        return q\nreturn []"),
    "MatchMapping": ("match {'a': 1}:\n    case {'a': p}:\n        return p\nreturn 3", "match d:\n    case {'p': p}:\n        return p\nreturn 3.0"),
    "MatchClass": ("match 3:\n    case int():\n        return 1\nreturn 3", "match n:\n    case int():\n        return 1\nreturn 3", "match a:\n    case float(p):\n        return p\nreturn 3.0", "match x:\n    case np.ndarray():\n        return 1\nreturn 3"),
    "MatchAs": ("match 3:\n    case p:\n        return p", "match n:\n    case p if p > 0:\n        return p\n    case _:\n        return -1"),
    "MatchOr": ("match 3:\n    case 1 | 3:\n        return 1\nreturn 2", "match n:\n    case 1 | 3:\n        return 1\n    case _:\n        return 2"),
}  # fmt: skip
# Abstract classes, ways to parse, and what Python keeps for old programs.
NO_SYNTAX = frozenset((
    "AST", "mod", "stmt", "expr", "expr_context", "boolop", "operator", "unaryop", "cmpop", "excepthandler", "pattern", "type_ignore",
    "slice", "type_param", "Module", "Interactive", "Expression", "FunctionType", "TypeIgnore", "Suite", "AugLoad", "AugStore", "Param", "Index", "ExtSlice",
    "Num", "Str", "Bytes", "NameConstant", "Ellipsis",
))  # fmt: skip
_NEWER = {
    "TypeAlias": "type P = int\nreturn n", "TypeVar": "def g[P](p: P) -> P:\n    return p\nreturn g(n)",
    "ParamSpec": "def g[**P](p):\n    return p\nreturn g(n)", "TypeVarTuple": "def g[*P](p):\n    return p\nreturn g(n)",
    "TemplateStr": "return t'{n}'", "Interpolation": "return t'{n}'",
}  # fmt: skip


def classes() -> list[str]:
    """The classes of syntax nodes of this Python."""
    found = {name: value for name, value in vars(ast).items() if isinstance(value, type) and issubclass(value, ast.AST)}
    return sorted(name for name in found if name not in NO_SYNTAX and not name.startswith("_"))


def case_of(row: str, text: str) -> Case:
    first = text.partition("\n")[0]
    is_statement = (
        "\n" in text or first.split()[0] in ("return", "raise", "assert", "yield", "pass") or "return" in text
    )
    return (statements if is_statement else expression)("syntax", row, text)


def cases() -> Iterator[Case]:
    """Every case of syntax."""
    for row, sign in BINARY.items():
        for left, right in PAIRS:
            if right != "2**70" or row not in ("Pow", "LShift"):  # Python would compute it
                yield expression("syntax", row, f"{left} {sign} {right}")
    for row, sign in COMPARE.items():
        for left, right in PAIRS:
            if row not in ("Is", "IsNot") or not left[0].isalnum() or left.isalpha():
                yield expression("syntax", row, f"{left} {sign} {right}")
    for row, sign in UNARY.items():
        for operand in OPERANDS:
            yield expression("syntax", row, f"{sign}{operand}")
    newer = {name: (text,) for name, text in _NEWER.items() if hasattr(ast, name)}
    for row, texts in {**TEXTS, **newer}.items():
        for text in texts:
            if row != "TryStar" or hasattr(ast, "TryStar"):
                yield case_of(row, text)
