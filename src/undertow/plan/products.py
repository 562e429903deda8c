"""Collected products x.T @ g, which sum over rows: those of all lanes become one matrix product.

An outer product of vectors is such a product with one row per lane. The product may have been reshaped or transposed.
Operators that served the collect alone are removed.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

from undertow.plan.plan import Collect, Item, Op, Operand, Plan, Program
from undertow.plan.walk import Place, items_in, use_counts, with_programs

_RESHAPES = ("reshape", "expand_dims", "squeeze")


def find_products(plan: Plan) -> Plan:
    """The plan with collects that take the factors of a product. It must still be unordered."""
    if not any(kernel.op == "matmul" for kernel in plan.kernels):
        return plan
    uses = use_counts(plan)
    changed: dict[Place, Program] = {}
    for number, region in enumerate(plan.regions):
        if not any(isinstance(item, Collect) for program in region.programs for item in program.unordered):
            continue
        products = _Products(plan, number, uses[number])
        written = [[products.product(item) for item in program.unordered] for program in region.programs]
        for k, program in enumerate(region.programs):
            changed[number, k] = _without(replace(program, unordered=tuple(written[k])), products.absorbed)
    return with_programs(plan, changed)


def _without(program: Program, absorbed: Set[str]) -> Program:
    """A program without some operators. They are pure, so no other item has to wait for them."""
    kept = [n for n, item in enumerate(program.unordered) if not (isinstance(item, Op) and item.node in absorbed)]
    place = {n: k for k, n in enumerate(kept)}
    after = tuple((place[a], place[b]) for a, b in program.after if a in place and b in place)
    return replace(program, unordered=tuple(program.unordered[n] for n in kept), after=after)


class _Products:
    def __init__(self, plan: Plan, region: int, uses: list[int]) -> None:
        self.plan = plan
        self.region = region
        self.uses = uses
        self.absorbed: set[str] = set()  # nodes that are no longer computed
        ops = (item for item in items_in(plan.regions[region]) if isinstance(item, Op))
        self.makers = {to: op for op in ops for to in op.outputs}

    def product(self, item: Item) -> Item:
        """A collect of a product as one of its factors; any other as it is."""
        if not isinstance(item, Collect) or item.kind != "whole":
            return item
        path: list[Op] = []  # from the collect to the product
        at = item.values[0]
        while (next_ := self.reshaped(at)) is not None:
            path.append(self.makers[at])
            at = next_
        is_turned = (turned := self.transposed(at)) is not None
        if turned is not None:
            path.append(self.makers[at])
            at = turned
        factors = self.factors(at)
        if factors is None:
            return item
        product = self.makers[at]
        path.append(product)
        for step in path:
            if self.uses[step.outputs[0]] != 1:
                break
            self.absorbed.add(step.node)
        else:
            for side, factor in zip(product.inputs, factors, strict=True):
                if side >= 0 and side != factor and self.uses[side] == 1:
                    self.absorbed.add(self.makers[side].node)
        return replace(item, kind="product", values=factors[::-1] if is_turned else factors)

    def made_by(self, value: Operand, *ops: str) -> Op | None:
        maker = self.makers.get(value)
        return maker if maker is not None and maker.kernel >= 0 and self.plan.kernels[maker.kernel].op in ops else None

    def is_static(self, value: Operand) -> bool:
        return self.plan.type_of(self.region, value).is_static

    def reshaped(self, value: Operand) -> Operand | None:
        """The value that a value is a reshape of, or None."""
        maker = self.made_by(value, *_RESHAPES)
        if maker is None or len(maker.inputs) != 1:
            return None
        return maker.inputs[0] if self.is_static(maker.inputs[0]) and self.is_static(value) else None

    def transposed(self, value: Operand) -> Operand | None:
        """The matrix that a value is the transpose of, or None."""
        maker = self.made_by(value, "transpose")
        if maker is None or self.plan.kernels[maker.kernel].attrs["axes"] != (1, 0) or not self.is_static(value):
            return None
        return maker.inputs[0]

    def factors(self, value: Operand) -> tuple[Operand, Operand] | None:
        """The x and g of a product x.T @ g; of an outer product, the two vectors."""
        maker = self.made_by(value, "matmul")
        if maker is None:
            return None
        left, right = maker.inputs
        types = [self.plan.type_of(self.region, x) for x in maker.inputs]
        if not all(type_.is_static and type_.rank == 2 for type_ in types):
            return None
        if types[0].shape[1] == 1:
            x, g = self.reshaped(left), self.reshaped(right)
            if x is not None and g is not None and all(self.plan.type_of(self.region, y).rank == 1 for y in (x, g)):
                return x, g
        turned = self.transposed(left)
        return None if turned is None else (turned, right)
