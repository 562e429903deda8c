"""Rival: PyTorch, batched by levels by hand. Forward and backward are written out, or the latter is left to autograd.

Written out, the gradient of a weight is one product per batch, and the classes of all nodes are another one. What the
backward pass multiplies gradients with is computed for all levels at once, before it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from .forests import Tree
from .levels import levels
from .networks import EPSILON, RATE, WIDTHS, Params

VERSION = torch.__version__
torch.set_num_threads(1)


class Batch:
    """The schedule as tensors. Python works on lists of views, one for each level: slices one by one cost more."""

    def __init__(self, trees: list[Tree]) -> None:
        plan = levels(trees)
        self.sizes, self.leaves, self.nodes = plan.sizes, plan.leaves, plan.nodes
        self.inner = self.nodes - self.leaves
        self.above = plan.sizes[1:]  # sizes of levels of inner nodes
        self.pairs = [2 * size for size in self.above]
        self.children = torch.from_numpy(plan.children).split(self.pairs)
        self.parents = torch.from_numpy(plan.parents).split(plan.sizes)
        self.words = torch.from_numpy(plan.words)
        self.labels = torch.from_numpy(plan.labels)
        self.roots = torch.from_numpy(plan.roots)
        self.plan = plan

    def rows(self) -> tuple[Tensor, Tensor]:
        """The words that occur, each once, and which of them each leaf has."""
        found, inverse = np.unique(self.plan.words, return_inverse=True)
        return torch.from_numpy(found), torch.from_numpy(inverse.reshape(-1))


class Network:
    """Parameters and Adagrad; a subclass has the network itself."""

    def __init__(self, model: str, params: Params) -> None:
        self.state, self.embedding = WIDTHS[model]
        self.params = {name: torch.from_numpy(self.arranged(name, value).copy()) for name, value in params.items()}
        self.squares = {name: torch.zeros_like(value) for name, value in self.params.items()}

    def arranged(self, name: str, value: np.ndarray) -> np.ndarray:
        """The layout in which a parameter is kept."""
        d = self.state
        if name == "V":  # [i, (k, j)]: one product gives a matrix for every node
            return np.ascontiguousarray(value.transpose(0, 2, 1)).reshape(2 * d, -1)
        if name in ("Wx", "bx", "Wh", "bh"):  # update last, so that all gates with a sigmoid are neighbours
            gates = np.split(value, value.shape[-1] // d, -1)
            return np.concatenate([*gates[:2], *gates[3:], gates[2]], -1)
        return value

    def adagrad(self, gradients: dict[str, Tensor], rows: Tensor, embedding: Tensor) -> None:
        names = list(gradients)
        given = [gradients[name] for name in names]
        squares = [self.squares[name] for name in names]
        torch._foreach_addcmul_(squares, given, given, 1.0)
        scales = torch._foreach_sqrt(squares)
        torch._foreach_add_(scales, EPSILON)
        torch._foreach_addcdiv_([self.params[name] for name in names], given, scales, -RATE)
        square = self.squares["E"].index_select(0, rows).addcmul_(embedding, embedding)
        self.squares["E"].index_copy_(0, rows, square)
        self.params["E"].index_add_(0, rows, embedding.div_(square.sqrt_().add_(EPSILON)), alpha=-RATE)

    def logits(self, states: Tensor) -> Tensor:
        return torch.addmm(self.params["bu"], states, self.params["U"])


class ByHand(Network):
    """`forward` keeps what `backward` needs when asked to; `backward` gives gradients of weights and embeddings."""

    def forward(self, batch: Batch, keep: bool) -> Tensor:
        raise NotImplementedError

    def backward(self, batch: Batch, states: Tensor, from_classes: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        raise NotImplementedError

    @torch.inference_mode()
    def loss(self, trees: list[Tree]) -> float:
        batch = Batch(trees)
        return cross_entropy(self.logits(self.forward(batch, False)), batch.labels, reduction="sum").item()

    @torch.inference_mode()
    def train(self, trees: list[Tree]) -> float:
        batch = Batch(trees)
        states = self.forward(batch, True)
        logs = torch.log_softmax(self.logits(states), 1)
        chosen = torch.from_numpy(batch.plan.chosen)
        loss = logs.view(-1).index_select(0, chosen).sum()
        slopes = logs.exp_()
        slopes.view(-1).index_add_(0, chosen, torch.full((batch.nodes,), -1.0))
        gradients, embedding = self.backward(batch, states, torch.mm(slopes, self.params["U"].t()))
        gradients["U"], gradients["bu"] = torch.mm(states.t(), slopes), slopes.sum(0)
        rows, which = batch.rows()
        summed = torch.zeros(len(rows), self.embedding).index_add_(0, which, embedding)
        self.adagrad(gradients, rows, summed)
        return -loss.item()

    @torch.inference_mode()
    def infer(self, trees: list[Tree]) -> list[int]:
        batch = Batch(trees)
        return self.logits(self.forward(batch, False).index_select(0, batch.roots)).argmax(1).tolist()


class TreeRNN(ByHand):
    """Also the RNTN, which adds a bilinear term."""

    def __init__(self, model: str, params: Params) -> None:
        super().__init__(model, params)
        self.is_tensor = model == "rntn"

    def forward(self, batch: Batch, keep: bool) -> Tensor:
        d, params = self.state, self.params
        states = torch.empty(batch.nodes, d)
        below = torch.empty(batch.inner, 2 * d)
        matrices = (
            torch.empty(batch.inner if keep else max(batch.above, default=0), d * 2 * d) if self.is_tensor else None
        )
        leaves, *levels = states.split(batch.sizes)
        torch.index_select(params["E"], 0, batch.words, out=leaves)
        inputs, flat = below.split(batch.above), below.view(-1, d).split(batch.pairs)
        kept = matrices.split(batch.above) if matrices is not None and keep else None
        W, b = params["W"], params["b"]
        for level, (children, x, rows, state) in enumerate(zip(batch.children, inputs, flat, levels, strict=True)):
            torch.index_select(states, 0, children, out=rows)
            torch.addmm(b, x, W, out=state)
            if matrices is not None:
                q = kept[level] if kept else matrices[: batch.above[level]]
                torch.mm(x, params["V"], out=q)
                state.unsqueeze(2).baddbmm_(q.view(-1, d, 2 * d), x.unsqueeze(2))
            state.tanh_()
        if keep:
            self.kept = below, matrices
        return states

    def backward(self, batch: Batch, states: Tensor, from_classes: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        d, params = self.state, self.params
        below, matrices = self.kept
        upwards = torch.empty(2 * batch.inner + 1, d)  # gradients of children, as `batch.children` has them
        upwards[-1] = 0  # nothing comes from above a root
        wide = upwards[:-1].view(-1, 2 * d).split(batch.above)
        factors = torch.mul(states[batch.leaves :], states[batch.leaves :]).neg_().add_(1)
        slopes = torch.empty(batch.inner, d)
        leaves, *levels = from_classes.split(batch.sizes)
        views = [levels, batch.parents[1:], factors.split(batch.above), slopes.split(batch.above), wide]
        if self.is_tensor:
            outer = torch.empty(batch.inner, d, 2 * d)
            views += [
                below.split(batch.above),
                outer.split(batch.above),
                matrices.view(-1, d, 2 * d).split(batch.above),
            ]
            V = params["V"].t()
        W = params["W"].t()
        for gradient, parents, factor, slope, out, *more in zip(*map(reversed, views), strict=True):
            torch.mul(gradient.add_(upwards.index_select(0, parents)), factor, out=slope)
            torch.mm(slope, W, out=out)
            if more:
                x, product, q = more
                torch.mul(slope.unsqueeze(2), x.unsqueeze(1), out=product)
                out.addmm_(product.view(-1, d * 2 * d), V)
                out.unsqueeze(1).baddbmm_(slope.unsqueeze(1), q)
        gradients = {"W": torch.mm(below.t(), slopes), "b": slopes.sum(0)}
        if self.is_tensor:
            gradients["V"] = torch.mm(below.t(), outer.view(-1, d * 2 * d))
        return gradients, leaves.add_(upwards.index_select(0, batch.parents[0]))


class TreeLSTM(ByHand):
    """Gates side by side: input, output, (forget left, forget right,) update."""

    def forward(self, batch: Batch, keep: bool) -> Tensor:
        d, params, leaves = self.state, self.params, batch.leaves
        states, memory, squashed = (torch.empty(batch.nodes, d) for _ in range(3))
        embedded = params["E"].index_select(0, batch.words)
        first = torch.addmm(params["bx"], embedded, params["Wx"])
        first[:, : 2 * d].sigmoid_()
        first[:, 2 * d :].tanh_()
        torch.mul(first[:, :d], first[:, 2 * d :], out=memory[:leaves])
        torch.tanh(memory[:leaves], out=squashed[:leaves])
        torch.mul(first[:, d : 2 * d], squashed[:leaves], out=states[:leaves])
        gates = torch.empty(batch.inner, 5 * d)
        below, past = torch.empty(batch.inner, 2 * d), torch.empty(batch.inner, 2 * d)
        views = [batch.children, gates.split(batch.above)]
        views += [part.split(batch.above) for part in (gates[:, : 4 * d], *gates.split(d, 1))]
        views += [below.split(batch.above), below.view(-1, d).split(batch.pairs)]
        views += [past.view(-1, d).split(batch.pairs), *(part.split(batch.above) for part in past.split(d, 1))]
        views += [part.split(batch.sizes)[1:] for part in (states, memory, squashed)]
        W, b = params["Wh"], params["bh"]
        for children, gate, soft, i, o, fl, fr, u, x, flat, rows, cl, cr, h, c, t in zip(*views, strict=True):
            torch.index_select(states, 0, children, out=flat)
            torch.index_select(memory, 0, children, out=rows)
            torch.addmm(b, x, W, out=gate)
            soft.sigmoid_()
            u.tanh_()
            torch.mul(i, u, out=c)
            c.addcmul_(fl, cl).addcmul_(fr, cr)
            torch.tanh(c, out=t)
            torch.mul(o, t, out=h)
        if keep:
            self.kept = embedded, first, squashed, gates, below, past
        return states

    def backward(self, batch: Batch, states: Tensor, from_classes: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        d, params, leaves = self.state, self.params, batch.leaves
        embedded, first, squashed, gates, below, past = self.kept
        upwards, memories = torch.empty(2 * batch.inner + 1, d), torch.empty(2 * batch.inner + 1, d)
        upwards[-1] = memories[-1] = 0
        slopes = torch.empty(batch.inner, 5 * d)
        views = [part.split(batch.sizes)[1:] for part in (from_classes, squashed)]
        views += [batch.parents[1:], *(g.split(batch.above) for g in gates.split(d, 1))]
        views += [
            slopes.split(batch.above),
            slopes[:, : 4 * d].split(batch.above),
            gates[:, : 4 * d].split(batch.above),
        ]
        views += [s.split(batch.above) for s in slopes.split(d, 1)]
        views += [part.split(batch.above) for part in past.split(d, 1)]
        views += [upwards[:-1].view(-1, 2 * d).split(batch.above)]
        views += [part.split(batch.above) for part in memories[:-1].view(-1, 2 * d).split(d, 1)]
        W = params["Wh"].t()
        for (
            dh, t, parents, i, o, fl, fr, u, slope, soft_slope, soft, di, do, dfl, dfr, du, cl, cr, out, ml, mr
        ) in zip(*map(reversed, views), strict=True):  # fmt: skip
            dh.add_(upwards.index_select(0, parents))
            dc = torch.mul(t, t).neg_().add_(1).mul_(o).mul_(dh).add_(memories.index_select(0, parents))
            torch.mul(dc, u, out=di)
            torch.mul(dh, t, out=do)
            torch.mul(dc, cl, out=dfl)
            torch.mul(dc, cr, out=dfr)
            soft_slope.mul_(torch.mul(soft, soft).neg_().add_(soft))
            torch.mul(u, u, out=du).neg_().add_(1).mul_(i).mul_(dc)
            torch.mul(dc, fl, out=ml)
            torch.mul(dc, fr, out=mr)
            torch.mm(slope, W, out=out)
        gradients = {"Wh": torch.mm(below.t(), slopes), "bh": slopes.sum(0)}
        dh = from_classes[:leaves].add_(upwards.index_select(0, batch.parents[0]))
        i, o, u = first.split(d, 1)
        t = squashed[:leaves]
        dc = torch.mul(t, t).neg_().add_(1).mul_(o).mul_(dh).add_(memories.index_select(0, batch.parents[0]))
        slopes = torch.empty(leaves, 3 * d)
        di, do, du = slopes.split(d, 1)
        torch.mul(dc, u, out=di)
        torch.mul(dh, t, out=do)
        soft = first[:, : 2 * d]
        slopes[:, : 2 * d].mul_(torch.mul(soft, soft).neg_().add_(soft))
        torch.mul(u, u, out=du).neg_().add_(1).mul_(i).mul_(dc)
        gradients |= {"Wx": torch.mm(embedded.t(), slopes), "bx": slopes.sum(0)}
        return gradients, torch.mm(slopes, params["Wx"].t())


class Autograd(Network):
    """The same levels, and the backward pass left to PyTorch."""

    def __init__(self, model: str, params: Params) -> None:
        super().__init__(model, params)
        self.model = model

    def states(self, batch: Batch, params: dict[str, Tensor], embedded: Tensor) -> Tensor:
        d = self.state
        if self.model == "treelstm":
            i, o, u = torch.addmm(params["bx"], embedded, params["Wx"]).split(d, 1)
            memory = i.sigmoid() * u.tanh()
            states = o.sigmoid() * memory.tanh()
        else:
            states = embedded
        for children in batch.children:
            x = states.index_select(0, children).view(-1, 2 * d)
            if self.model == "treelstm":
                soft, u = torch.addmm(params["bh"], x, params["Wh"]).split([4 * d, d], 1)
                i, o, f = soft.sigmoid().split([d, d, 2 * d], 1)
                left, right = (f * memory.index_select(0, children).view(-1, 2 * d)).split(d, 1)
                new = i * u.tanh() + left + right
                memory = torch.cat([memory, new])
                states = torch.cat([states, o * new.tanh()])
                continue
            layer = torch.addmm(params["b"], x, params["W"])
            if self.model == "rntn":
                layer = layer + torch.bmm((x @ params["V"]).view(-1, d, 2 * d), x.unsqueeze(2)).squeeze(2)
            states = torch.cat([states, layer.tanh()])
        return states

    @torch.inference_mode()
    def loss(self, trees: list[Tree]) -> float:
        batch = Batch(trees)
        states = self.states(batch, self.params, self.params["E"].index_select(0, batch.words))
        return cross_entropy(self.logits(states), batch.labels, reduction="sum").item()

    def train(self, trees: list[Tree]) -> float:
        batch = Batch(trees)
        rows, which = batch.rows()
        params = {name: value.detach().requires_grad_() for name, value in self.params.items() if name != "E"}
        embedding = self.params["E"].index_select(0, rows).requires_grad_()
        states = self.states(batch, params, embedding.index_select(0, which))
        loss = cross_entropy(torch.addmm(params["bu"], states, params["U"]), batch.labels, reduction="sum")
        *found, rows_found = torch.autograd.grad(loss, [*params.values(), embedding])
        with torch.no_grad():
            self.adagrad(dict(zip(params, found, strict=True)), rows, rows_found)
        return loss.item()

    @torch.inference_mode()
    def infer(self, trees: list[Tree]) -> list[int]:
        batch = Batch(trees)
        states = self.states(batch, self.params, self.params["E"].index_select(0, batch.words))
        return self.logits(states.index_select(0, batch.roots)).argmax(1).tolist()


def make(model: str, params: Params, variant: str = "") -> Any:
    if variant == "autograd":
        return Autograd(model, params)
    return (TreeLSTM if model == "treelstm" else TreeRNN)(model, params)
