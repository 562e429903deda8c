"""Names that a module does not have: what other frameworks call a thing, and what to write here instead.

>>> print(unknown_name("ut", "vmap", ["map"], FRAMEWORKS))
`ut` has no `vmap`
<BLANKLINE>
hint: every function has a map: f.map(xs), or ut.map(f, xs) inside a captured function
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from undertow.errors import UndertowError, UnknownName

_FUNCTION = "decorate the function with @ut.function: it is captured and compiled at its first call"
_MAP = "every function has a map: f.map(xs), or ut.map(f, xs) inside a captured function"
_LOOP = "write an ordinary `for` or `while` loop, or recursion, in an @ut.function: it is captured as it stands"
_BRANCH = "write an ordinary `if` in an @ut.function, or ut.cond(test, f, g, *args)"
_NUMPY = "the functions of NumPy are in ut itself (ut.sum, ut.exp), and np.sum(x) works on captured values too"
_ARRAY = "arguments and results are NumPy arrays: np.array([1.0, 2.0]); inside a captured function, ut.asarray([x, y])"
_CONTAINERS = "containers are arguments and results as they are; use a comprehension, such as [f(x) for x in xs]"
_GRADIENTS = "gradients are functions of functions: ut.grad(f)(x), ut.value_and_grad(f)(x), ut.vjp(f, x)"
_RANDOM = "random numbers are in ut.random; `with ut.options(seed=0)` makes them repeatable"
_NEURAL = "there are no layers: write ut.matmul(x, w) + b, ut.relu(x), ut.softmax(x); models of trees are in ut.models"
_DTYPES = "the dtypes are ut.bool, ut.i32, ut.i64, ut.f32, ut.f64, ut.c64 and ut.c128"
_DEVICE = "runs are on the CPU, on all cores; ut.options(threads=2) limits them"
_MADE = "the first call captures it; f.graph(*args) and f.plan(*args) show what was made"
_RUNS = "call the function: f(x); f.run(x, stats=True) also counts what the run did"
_OPTIMIZERS = "optimizers are in ut.optim, as ut.optim.Adam(1e-3)"
_PARAMETERS = (
    "any float or array is a parameter: keep it in an attribute, a list or a dict, and differentiate by that; "
    "ut.Variable keeps state"
)
_PARALLEL = "nothing needs it: calls that do not depend on each other run together, as one batch"
_TREES = "any nested tuple, list, dict or object is a tree; treebanks are in ut.data"
_SOWN = "write ut.sow(value, at=k) in the function, and ut.reap(f, n)(x) around it"

# What a name means in JAX, PyTorch, TensorFlow, Numba or Cilk, and what stands for it here.
FRAMEWORKS: Mapping[str, str] = {
    **dict.fromkeys(("jit", "njit", "compile", "defun", "Defun", "script", "recursive", "pjit"), _FUNCTION),
    **dict.fromkeys(("vmap", "pmap", "vectorize", "vectorized_map", "map_fn", "xmap", "batch"), _MAP),
    **dict.fromkeys(("scan", "fori_loop", "foldl", "foldr", "associative_scan", "reduce", "prange"), _LOOP),
    **dict.fromkeys(("switch", "case", "select_n"), _BRANCH),
    **dict.fromkeys(("lax", "np", "numpy", "jnp", "onp"), _NUMPY),
    **dict.fromkeys(("tensor", "Tensor", "array", "constant", "convert_to_tensor", "from_numpy", "ndarray"), _ARRAY),
    **dict.fromkeys(("tree", "tree_map", "tree_util", "tree_leaves", "tree_flatten", "nest", "pytree"), _CONTAINERS),
    **dict.fromkeys(("autograd", "gradients", "gradient", "GradientTape", "backward", "linearize"), _GRADIENTS),
    "jacrev": "write ut.jacobian(f)",
    "jacfwd": 'write ut.jacobian(f, mode="fwd")',
    **dict.fromkeys(("rand", "randn", "randint", "manual_seed", "seed", "set_seed", "PRNGKey", "key", "rng"), _RANDOM),
    **dict.fromkeys(("nn", "layers", "keras", "Module", "Linear", "Sequential"), _NEURAL),
    **dict.fromkeys(("cuda", "device_put", "devices", "cpu", "gpu", "to"), _DEVICE),
    **dict.fromkeys(("Session", "run", "call", "evaluate", "block_until_ready"), _RUNS),
    "float32": "it is ut.f32",
    "float64": "it is ut.f64",
    "double": "it is ut.f64",
    "float": "it is ut.f64; ut.f32 is single precision",
    "int32": "it is ut.i32",
    "int64": "it is ut.i64",
    "int": "it is ut.i64",
    "long": "it is ut.i64",
    "bool_": "it is ut.bool",
    **dict.fromkeys(("int8", "int16", "uint8", "uint16", "uint32", "uint64", "i8", "i16", "u8", "u32", "u64"), _DTYPES),
    **dict.fromkeys(("float16", "half", "bfloat16", "f16", "bf16", "dtype"), _DTYPES),
    "no_grad": "nothing is recorded unless ut.grad asks; ut.stop_gradient(x) treats a value as a constant",
    "detach": "write ut.stop_gradient(x)",
    "stop_grad": "write ut.stop_gradient(x)",
    "remat": "write ut.checkpoint(f)",
    **dict.fromkeys(("each", "record", "harvest", "call_and_reap", "register_forward_hook"), _SOWN),
    "cat": "write ut.concat([x, y])",
    "concatenate": "write ut.concat([x, y])",
    "cast": "write ut.astype(x, ut.f32)",
    "unsqueeze": "write ut.expand_dims(x, axis=0), or x[None]",
    "mm": "write ut.matmul(x, y), or x @ y",
    "bmm": "write ut.matmul(x, y), or x @ y",
    "power": "write ut.pow(x, y), or x ** y",
    "placeholder": "arguments of an @ut.function are its inputs; compat.v1 has TensorFlow's placeholders",
    **dict.fromkeys(("spawn", "parallel", "autobatch", "cilk_spawn", "cilk_for", "fork", "async_"), _PARALLEL),
    "sync": "nothing needs it: a value is waited for where it is used",
    "debug": "print(x) and assert work in captured functions; ut.options(trace=\"run.jsonl\") records a run",
    "pure_callback": "Python cannot be called from a graph: call it before or after the captured function",
    "py_function": "Python cannot be called from a graph: call it before or after the captured function",
    **dict.fromkeys(("optimizers", "optax", "Optimizer", "SGD", "Adam", "AdamW", "Adagrad", "RMSprop"), _OPTIMIZERS),
    **dict.fromkeys(("Parameter", "Param", "ParameterCollection", "get_variable", "lookup_parameters"), _PARAMETERS),
    **dict.fromkeys(("Tree", "Node", "trees", "List", "ADT"), _TREES),
    **dict.fromkeys(("distributions", "Normal", "Bernoulli", "Categorical"), _RANDOM),
    "minimize": "take steps in a loop: ut.value_and_grad(f), and an optimizer of ut.optim",
    "fft": "np.fft works on captured values",
    "partial": "functools.partial works on captured functions, and in them",
    **dict.fromkeys(("trace", "profiler", "profile"), "ut.options(trace=\"run.jsonl\") records a run"),
    **dict.fromkeys(("config", "flags", "set_num_threads"), "ut.options has all settings: help(ut.options)"),
    "compat": "import it by name: import undertow.compat.v1 as tf",
    "pi": "write math.pi or np.pi",
    "e": "write math.e or np.e",
    "inf": "write math.inf or np.inf",
    "nan": "write math.nan or np.nan",
    "newaxis": "write None: x[:, None]",
}  # fmt: skip

# The same for methods of a captured function.
METHODS: Mapping[str, str] = {
    **dict.fromkeys(("grad", "backward", "gradient", "vjp", "jvp", "value_and_grad"), _GRADIENTS),
    **dict.fromkeys(("vmap", "pmap", "batch", "vectorize", "starmap"), "write f.map(xs)"),
    **dict.fromkeys(("lower", "compile", "jit", "trace", "get_concrete_function"), _MADE),
    **dict.fromkeys(("cache_clear", "clear_cache", "reset", "recompile"), "f.clear() forgets what was captured"),
    **dict.fromkeys(("py_func", "fn", "func", "python_function"), "write f.__wrapped__, or f.run(x, engine='python')"),
    "eval": _RUNS,
    "options": "write f.run(x, max_depth=100), or `with ut.options(max_depth=100)`",
    "save": "write ut.save(f, path)",
}  # fmt: skip


def unknown_name(owner: str, name: str, known: Iterable[str], elsewhere: Mapping[str, str] = {}) -> UnknownName:
    """The error of a name that the module or function `owner` does not have; `known` are those that it has."""
    import difflib  # an error may take its time, an import may not

    if name in elsewhere:
        hint = elsewhere[name]
    elif close := difflib.get_close_matches(name, [k for k in known if not k.startswith("_")], 3, 0.66):
        swapped = [k for k in close if sorted(k) == sorted(name)]  # two letters in the wrong order
        hint = f"did you mean `{owner}.{[*swapped, *close][0]}`?"
    else:
        hint = f"dir({owner}) lists what it has"
    return UnknownName(f"`{owner}` has no `{name}`", hint=hint)


def reason(fault: Exception, hint: str) -> tuple[str, str]:
    """What a fault says, in a sentence about what it made impossible; and its own hint if it has one."""
    return (fault.what, fault.hint) if isinstance(fault, UndertowError) else (str(fault), hint)
