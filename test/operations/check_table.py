#!/usr/bin/env python3
"""Every row of rules/operations.yaml against LibTorch, values and gradients.

The samples (samples.txt) become one C++ program, and `accelerate-migrate --dump=placements` tells how each result lies on
the ranks. Then torch computes them on a batch as a whole, and on the same batch cut unevenly into two and three parts and
into parts without rows: put together as the placement says, values and gradients must be equal. Of the same samples on
tensors that are whole, with as many dimensions as they have or read from a file, the tool must not say another number of
dimensions than the result has. Where the tool says that a
result is none of these (U), none of them may fit, unless the sample ends in `| refused`: it fits by accident or could be
followed one day. A row without a sample is an error.

--mutate SEED gives every row another row's kind at random: every one that changes what the tool says of a sample must be
caught.
"""
import argparse
import ast
import collections
import os
import random
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

import torch
import yaml
from torch import nn
from torch.nn import functional as F

from translate import cpp

ROWS = 7
SPLITS = [(5, 2), (4, 1, 2), (3, 0, 4)]
# What isn't arithmetic on tensors, or makes tensors of numbers: lit tests cover these kinds.
UNSAMPLED = {"metadata", "item", "number", "replicated", "tuple"}
UNSAMPLED_NAMES = {"std::get": "every sample of a tuple takes it", "len": "not LibTorch's", "AnyModule": "C++ alone: lit",
                   "Functional": "C++ alone: lit", "Tensor": "a constructor: lit", "from_blob": "C++ alone: lit",
                   "toType": "C++ alone, as `to`", "cuda": "needs a GPU, as `cpu`", "pin_memory": "needs a GPU, as `cpu`",
                   "tensor_data": "C++ alone, as `data`", "variable_data": "C++ alone, as `data`",
                   "set_requires_grad": "C++ alone, as `requires_grad_`", "range": "deprecated, as `arange`",
                   "alias": "C++ alone, as `detach`", "type": "C++ alone, as `to`", "data": "C++ alone, as `detach`",
                   "requires_grad": "C++ alone, as `detach`", "mT": "a property in Python, as `adjoint`",
                   "mH": "a property in Python, as `adjoint`", "nbytes": "a property in Python, as `numel`",
                   "sizes": "C++ alone: lit", "slice": "C++ alone, as `narrow`", "index": "C++ alone: lit",
                   "empty": "holds no numbers yet", "empty_like": "holds no numbers yet", "new_empty": "holds no numbers yet",
                   "equal_to": "no operation of LibTorch 2.11", "TransformerEncoder": "a stack of its layer",
                   "TransformerDecoder": "a stack of its layer", "unique_dim": "C++ alone, as `unique_consecutive`",
                   "pad_sequence": "takes a batch's rows as a list: lit",
                   "torch::nn::utils::rnn::pad_sequence": "as `pad_sequence`",
                   "special_log_softmax": "as `log_softmax`; Python names its type otherwise"}
NOISE = {"noise", "noise-like", "noise-module"}
ANNOTATIONS = {"throws-without-rows", "nan-without-rows", "drops-out", "keeps-statistics", "writes-weight"}

Input = collections.namedtuple("Input", "name shape domain batch")
Sample = collections.namedtuple("Sample", "row inputs text line refused")


def read_table(path):
    """Kinds by name, and the lists of names that annotate rows."""
    with open(path, encoding="utf-8") as f:
        data = yaml.load(f, Loader=yaml.BaseLoader)
    kinds, annotations = {}, {key: set() for key in ANNOTATIONS}
    for kind, names in data.items():
        for name in names:
            plain = name.split("(")[0]
            if kind in ANNOTATIONS:
                annotations[kind].add(plain)
            else:
                kinds[plain] = kind
    return kinds, annotations


def read_samples(path):
    """`NAMES | x=b,3 w=5,3 | EXPRESSION [| refused]`; OP stands for each of the names."""
    samples = []
    with open(path, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            line = line.split("#")[0].strip()
            if not line:
                continue
            names, inputs, text, *rest = [part.strip() for part in line.split("|")]
            if rest not in ([], ["refused"]):
                sys.exit("samples.txt:%d: '%s' isn't known; `refused` is" % (number, rest[0]))
            parsed = []
            for item in inputs.split():
                name, shape = item.split("=")
                shape, _, domain = shape.partition(":")
                shape = [s for s in shape.split(",") if s]
                batch = shape.index("b") if "b" in shape else None
                parsed.append(Input(name, tuple(ROWS if s == "b" else int(s) for s in shape), domain, batch))
            for name in names.split():
                samples.append(Sample(name, tuple(parsed), text.replace("OP", re.sub(r"^(special|fft|linalg)_", "", name.split("::")[-1])), number, bool(rest)))
    return samples


def make(spec):
    """Numbers in which no accident hides: no two equal, on both sides of zero unless the domain says otherwise."""
    kind = spec.domain
    if kind.startswith("int"):
        return torch.randint(0, int(kind[3:]), spec.shape)
    if kind.startswith("label"):
        return torch.randint(1, int(kind[5:]) + 1, spec.shape)
    if kind.startswith("fill"):
        return torch.full(spec.shape, int(kind[4:]))
    if kind.startswith("const"):
        return torch.full(spec.shape, float(kind[5:]))
    if kind == "bool":
        return torch.rand(spec.shape) > 0.5
    x = torch.rand(spec.shape)
    x = {"": x * 1.8 - 0.9, "unit": x * 0.8 + 0.1, "above": x + 1.5, "log": torch.log(x * 0.8 + 0.1),
         "sign": torch.sign(x - 0.5)}.get(kind) if kind not in ("spd", "wide", "prob", "complex") else x
    if kind == "wide":
        x = x * 9 - 4.5
    if kind == "spd":
        x = x @ x.mT + 0.5 * torch.eye(spec.shape[-1])
    if kind == "prob":
        x = x / x.sum(-1, keepdim=True)
    return x


def program(samples, read):
    lines = ["#include <torch/torch.h>", "namespace F = torch::nn::functional;",
             "torch::Tensor of_file(const char* path) { torch::Tensor x; torch::load(x, path); return x; }", "int main() {",
             "torch::nn::Linear model(784, 10);",
             "auto loader = torch::data::make_data_loader(torch::data::datasets::MNIST(\"data\")"
             ".map(torch::data::transforms::Stack<>()), 64);",
             "torch::optim::SGD optimizer(model->parameters(), 0.1);", "for (auto& batch : *loader) {"]
    first = len(lines) + 1
    for sample in samples:
        text = "{ "
        for spec in sample.inputs:
            if read:
                made = 'of_file("%s")' % spec.name
            elif spec.batch is None:
                made = "torch::ones({%s})" % ", ".join(map(str, spec.shape))
            else:
                moved = [-1] + [s for i, s in enumerate(spec.shape) if i != spec.batch]
                made = "batch.data.reshape({%s})" % ", ".join(map(str, moved))
                made += ".movedim(0, %d)" % spec.batch if spec.batch else ""
            cast = ".to(torch::kLong)" if spec.domain.startswith(("int", "label", "fill")) else ".to(torch::kBool)" if spec.domain == "bool" else ""
            text += "auto %s = %s%s; " % (spec.name, made, cast)
        lines.append(text + "auto r = %s; (void)(r); }" % cpp(sample.text))
    lines += ["optimizer.zero_grad();", "torch::nll_loss(model(batch.data), batch.target).backward();", "optimizer.step();",
              "}", "}", ""]
    return "\n".join(lines), first


def placements(tool, rules, flags, samples, read=False):
    text, first = program(samples, read)
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "samples.cpp"), "w", encoding="utf-8") as f:
            f.write(text)
        env = dict(os.environ, GIT_CEILING_DIRECTORIES=os.path.dirname(folder))
        done = subprocess.run([tool, "--dump=placements", "--rules-dir=" + rules, "samples.cpp", "--", *flags], cwd=folder, env=env,
                              capture_output=True, text=True, timeout=500)
        broken = re.findall(r"samples\.cpp:(\d+):\d+:? (?:fatal )?error:? (.*)", done.stderr + done.stdout)
        for line, what in broken:
            index = int(line) - first
            where = "samples.txt:%d" % samples[index].line if 0 <= index < len(samples) else "the program's line " + line
            print("%s: its C++ doesn't compile: %s\n  %s" % (where, what, text.split("\n")[int(line) - 1]))
        if broken or done.returncode not in (0, 1):
            sys.exit("the tool can't read the samples:\n" + done.stderr[-2000:])
    found = {}
    for line in done.stdout.split("\n"):
        match = re.match(r"samples\.cpp:(\d+):\d+: r: (.*)", line)
        if match:
            found[int(match.group(1)) - first] = match.group(2)
    # What is brought together first would be none of these by itself.
    for line, how in re.findall(r"^samples\.cpp:(\d+):\d+: accelerator: (.*)$", done.stdout, re.M):
        if 0 <= int(line) - first < len(samples):
            found[int(line) - first] = "U: `%s` stands in it" % how
    return [found.get(i, "R") for i in range(len(samples))]


class Everywhere:
    """LibTorch's at:: functions: Python keeps some of them in other places."""
    def __getattr__(self, name):
        for place in (torch, F, torch._C._nn, torch._C):
            if hasattr(place, name):
                return getattr(place, name)
        raise AttributeError(name)


def compute(sample, values, seed):
    torch.manual_seed(seed)
    return eval(sample.text, {"torch": Everywhere(), "F": F, "nn": nn}, dict(values))


def evaluate(sample, values, seed=0):
    result = compute(sample, values, seed)
    if isinstance(result, (bool, int)):
        result = torch.tensor(int(result))
    return torch.view_as_real(result.resolve_conj()) if result.is_complex() else result


def leaves(values):
    return {n: v.clone().requires_grad_(v.is_floating_point()) for n, v in values.items()}


def gradients(result, values, cotangent):
    wanted = [n for n, v in values.items() if v.requires_grad]
    if not wanted or not result.requires_grad:
        return {}
    try:
        grads = torch.autograd.grad(result, [values[n] for n in wanted], cotangent, allow_unused=True)
    except RuntimeError as error:  # NotImplementedError is one
        if "is not implemented" not in str(error):
            raise
        return {}
    return {n: torch.zeros_like(values[n]) if g is None else g for n, g in zip(wanted, grads)}


def close(a, b):
    return a.shape == b.shape and torch.allclose(a.to(torch.float64), b.to(torch.float64), rtol=1e-7, atol=1e-9, equal_nan=True)


def woven(parts, outer):
    """Rows that were merged with `outer` dimensions' worth of places in front of them, in the whole's order."""
    return torch.cat([p.reshape(outer, -1, *p.shape[1:]) for p in parts], 1).flatten(0, 1)


def outer_of(parts, weights, whole):
    """By how much rows were merged, None if they weren't."""
    for outer in range(2, whole.shape[0] // ROWS + 1):
        fits = whole.shape[0] % (outer * ROWS) == 0 and all(
            p.dim() == whole.dim() and p.shape[0] * ROWS == whole.shape[0] * w for p, w in zip(parts, weights))
        if fits and close(woven(parts, outer), whole):
            return outer
    return None


PICKED = "S(0) picked"  # rows that a mask picked


def put_together(kind, parts, weights, whole):
    """The whole as the placement says, or None if the parts can't be such parts."""
    try:
        if kind == "W":
            parts, weights = zip(*[(p, w) for p, w in zip(parts, weights) if w])
            outer = outer_of(parts, weights, whole)
            return woven(parts, outer) if outer else None
        if kind == PICKED:  # as many rows as the mask says, of each rank
            return torch.cat([p for p, w in zip(parts, weights) if w])
        if kind.startswith("S"):
            dim = int(kind[2:-1])
            if dim >= whole.dim():
                return None
            parts, weights = zip(*[(p, w) for p, w in zip(parts, weights) if w])
            # A dimension that was merged into the batch's has so many times its rows.
            if any(p.dim() != whole.dim() or p.shape[dim] * ROWS != whole.shape[dim] * w for p, w in zip(parts, weights)):
                return None
            return torch.cat(parts, dim)
        parts, weights = zip(*[(p, w) for p, w in zip(parts, weights) if w])  # the rank without rows has none to give
        if kind.startswith("X"):
            return getattr(torch.stack(parts), "amax" if kind == "X(max)" else "amin")(0)
        if kind in ("P", "L"):
            return sum(p.to(whole.dtype) for p in parts)
        if kind == "A":
            return sum(p * w for p, w in zip(parts, weights)) / sum(weights)
        return parts[0] if all(close(p, parts[0]) for p in parts) else None
    except (RuntimeError, IndexError):
        return None


class Checker:
    def __init__(self, kinds, annotations):
        self.kinds, self.annotations = kinds, annotations
        self.throws, self.nan = set(), set()

    def check(self, sample, claim):
        """What is wrong with the claim, or None."""
        kind, _, rest = claim.partition(" of ")
        dims = re.match(r"(\d+) dimensions", rest)
        kind, noisy = without_flags(kind.split(":")[0])
        if noisy and self.kinds[sample.row] not in NOISE:
            return "it draws nothing at random"
        torch.manual_seed(sample.line)
        values = {spec.name: make(spec) for spec in sample.inputs}
        inputs = leaves(values)
        whole = evaluate(sample, inputs)
        if dims and kind != "L" and int(dims.group(1)) != whole.dim() - (1 if self.complex(sample, values) else 0):
            return "it has %d dimensions, not %s" % (whole.dim(), dims.group(1))
        noise = not close(whole.detach(), evaluate(sample, values, seed=1)) and "nn." not in sample.text
        if noise != (self.kinds[sample.row] in ("noise", "noise-like") and "eval" not in sample.text):
            return "it is %sdrawn at random" % ("" if noise else "not ")
        cotangent = torch.rand(whole.shape) + 0.5
        grads = gradients(whole, inputs, cotangent)
        for split in SPLITS:
            wrong = self.compare(sample, kind, values, whole.detach(), split, cotangent, grads, noise)
            if wrong:
                return "cut into %s: %s" % (split, wrong)
        return None

    def complex(self, sample, values):
        result = compute(sample, values, 0)
        return isinstance(result, torch.Tensor) and result.is_complex()

    def compare(self, sample, kind, values, whole, split, cotangent, grads, noise):
        parts, locals_, at = [], [], 0
        batched = {spec.name: spec.batch for spec in sample.inputs if spec.batch is not None}
        if not batched:
            return None if kind == "R" else "nothing of it is of the batch"
        for rows in split:
            mine = leaves({n: v.narrow(batched[n], at, rows) if n in batched else v for n, v in values.items()})
            try:
                parts.append(evaluate(sample, mine))
            except (RuntimeError, IndexError, ValueError, AssertionError) as error:
                if rows:
                    return None if kind == "U" else "it fails: %s" % str(error).split("\n")[0]
                self.throws.add(sample.row)
                return None
            locals_.append(mine)
            at += rows
        detached = [p.detach() for p in parts]
        if 0 in split and kind in ("A", "P") and "x.mean(" not in sample.text and detached[split.index(0)].isnan().any():
            self.nan.add(sample.row)
        if kind == "U":
            if 0 in split:
                return None
            for other in ["P", "A", "R", PICKED] + ["S(%d)" % d for d in range(whole.dim())]:
                joined = put_together(other, detached, split, whole)
                if joined is not None and close(joined, whole):
                    self.fits[sample].add(other)
                else:
                    self.misfits[sample].add(other)
            return None
        joined = put_together(kind, detached, split, whole)
        if joined is None:
            return "the parts aren't %s" % kind
        if noise or self.kinds[sample.row] in NOISE:
            return None if joined.shape == whole.shape else "its shape isn't the whole's"
        if self.kinds[sample.row] == "coupled-module":
            return "nothing couples its rows" if close(joined, whole) else None
        if not close(joined, whole):
            return "values differ as %s" % kind
        sums = {n: torch.zeros_like(g) for n, g in grads.items()}
        at = picked = 0
        outer = outer_of(*zip(*[(p, w) for p, w in zip(detached, split) if w]), whole) if kind == "W" else None
        for rows, part, mine in zip(split, parts, locals_):
            piece = cotangent
            if kind == PICKED:
                piece = cotangent.narrow(0, picked, part.shape[0])
                picked += part.shape[0]
            elif kind.startswith("S"):
                dim = int(kind[2:-1])
                times = cotangent.shape[dim] // ROWS
                piece = cotangent.narrow(dim, at * times, rows * times)
            elif kind == "W":
                times = cotangent.shape[0] // (outer * ROWS)
                piece = cotangent.reshape(outer, -1, *cotangent.shape[1:]).narrow(1, at * times, rows * times)
                piece = piece.flatten(0, 1)
            elif kind == "A":
                piece = cotangent * (rows / ROWS)
            elif kind == "R":
                piece = cotangent / len(split)
            if rows:
                for n, g in gradients(part, mine, piece).items():
                    if n in batched:
                        sums[n].narrow(batched[n], at, rows).copy_(g)
                    else:
                        sums[n] += g
            at += rows
        for n, g in grads.items():
            if not close(sums[n], g) and kind[0] not in "RX":
                return "gradients with respect to %s differ as %s" % (n, kind)
        return None

    def counted(self, sample, claim):
        """What is wrong with the dimensions that a result of whole tensors is said to have, or None."""
        said = re.search(r" of (\d+) dimensions", claim)
        torch.manual_seed(sample.line)
        result = evaluate(sample, {spec.name: make(spec) for spec in sample.inputs})
        dims = result.dim() - (1 if self.complex(sample, {spec.name: make(spec) for spec in sample.inputs}) else 0)
        return "it has %d dimensions, not %s" % (dims, said.group(1)) if said and int(said.group(1)) != dims else None

    def run(self, samples, claims):
        """Failures by sample; U is one if something simpler fits every cut."""
        failures = {}
        self.fits = collections.defaultdict(set)
        self.misfits = collections.defaultdict(set)
        for sample, claim in zip(samples, claims):
            self.fits.pop(sample, None)
            if claim.startswith("U"):
                self.fits[sample] = set()
            try:
                wrong = self.check(sample, claim)
            except Exception as error:  # pylint: disable=broad-except
                wrong = "the sample fails: %s: %s" % (type(error).__name__, str(error).split("\n")[0])
            simpler = self.fits.pop(sample, set()) - self.misfits.pop(sample, set())
            if not wrong and sample.refused and not claim.startswith("U"):
                wrong = "it isn't refused any more"
            if not wrong and simpler and not sample.refused:
                wrong = "it is simply " + " or ".join(sorted(simpler))
            if wrong:
                failures[sample] = (claim, wrong)
        return failures


def without_flags(kind):
    """`S(0) noisy` -> `S(0)`, True; how equal what is whole is (`R recomputed`) doesn't show on one machine."""
    plain = re.sub(r" (recomputed|outside|noisy)\b", "", kind)
    return plain, kind.endswith(" noisy")


def otherwise(kind, old, new):
    """Whether a claim says something else than the right one, not merely more or less."""
    (old, _, rank), (new, _, new_rank) = old.split(":")[0].partition(" of "), new.split(":")[0].partition(" of ")
    old, new = without_flags(old)[0], without_flags(new)[0]
    if old == new:
        return bool(rank and new_rank) and rank != new_rank
    if new == "U" and kind in NOISE | {"coupled-module"}:
        return False  # drawn at random: that it could have been followed doesn't show in the values
    return (old, new) != ("L", "P")  # a number of rows is a sum


def mutated(path, kinds, rng):
    """The table with every sampled row under another kind, and what became of each."""
    pool = {"row-wise": "NAME", "linear": "NAME", "sum": "NAME(dims=all)", "mean": "NAME(dims=all)", "coupled": "NAME",
            "along-dim": "NAME(dim=1)", "over-dim": "NAME(dim=1)", '"bIX->bOX"': "NAME", '"...i,...i->... linear"': "NAME",
            "unsqueeze": "NAME(dim=0)", "transpose": "NAME(dim0=0, dim1=1)", "loss": "NAME", "factory": "NAME",
            '"ij->ji"': "NAME", '"...I->..."': "NAME"}
    data = collections.defaultdict(list)
    became = {}
    with open(path, encoding="utf-8") as f:
        table = yaml.load(f, Loader=yaml.BaseLoader)
    for kind, names in table.items():
        if kind in ANNOTATIONS:
            continue
        for name in names:
            plain = name.split("(")[0]
            if kind in UNSAMPLED or plain in UNSAMPLED_NAMES:
                data['"%s"' % kind].append(name)
                continue
            new = rng.choice([k for k in pool if k.strip('"') != kind])
            became[plain] = (kind, new.strip('"'))
            data[new].append(pool[new].replace("NAME", plain))
    text = "".join("%s: [%s]\n" % (kind, ", ".join('"%s"' % n for n in names)) for kind, names in data.items())
    return text, became


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", required=True)
    parser.add_argument("--rules", required=True)
    parser.add_argument("--samples", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "samples.txt"))
    parser.add_argument("--flags", required=True, help="the flags that find LibTorch's headers")
    parser.add_argument("--mutate", type=int, metavar="SEED")
    parser.add_argument("--only", help="check the samples of one row, and show what the tool says of them")
    options = parser.parse_args()
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(2)
    flags = shlex.split(options.flags)
    table = os.path.join(options.rules, "operations.yaml")
    kinds, annotations = read_table(table)
    samples = read_samples(options.samples)
    errors = ["samples.txt:%d: '%s' isn't in the table" % (s.line, s.row) for s in samples if s.row not in kinds]
    needed = {n for n, kind in kinds.items() if kind not in UNSAMPLED and n not in UNSAMPLED_NAMES}
    errors += ["'%s' has no sample" % n for n in sorted(needed - {s.row for s in samples})]
    if errors:
        sys.exit("\n".join(errors))
    if options.only:
        samples = [s for s in samples if s.row == options.only]
    checker = Checker(kinds, annotations)
    if options.mutate is None:
        claims = placements(options.tool, options.rules, flags, samples)
        failures = checker.run(samples, claims)
        whole = [s._replace(inputs=tuple(spec._replace(batch=None) for spec in s.inputs)) for s in samples]
        told = 0
        for read in (False, True):
            for sample, claim in zip(whole, placements(options.tool, options.rules, flags, whole, read)):
                told += " dimensions" in claim
                wrong = checker.counted(sample, claim)
                if wrong:
                    failures[sample] = (claim + (" of tensors read from files" if read else " of whole tensors"), wrong)
        for sample, (claim, wrong) in failures.items():
            print("samples.txt:%d: %s: %s\n  the tool says %s, but %s" % (sample.line, sample.row, sample.text, claim, wrong))
        if options.only:
            for sample, claim in zip(samples, claims):
                print("%s: %s" % (sample.text, claim))
            return 1 if failures else 0
        status = bool(failures)
        for key, found in [("throws-without-rows", checker.throws), ("nan-without-rows", checker.nan - checker.throws)]:
            listed = annotations[key]
            if found != listed:
                status = True
                print("%s: add %s; remove %s" % (key, sorted(found - listed), sorted(listed - found)))
        print("%d rows, %d samples, %d cuts each, %d numbers of dimensions of whole results: %d failures"
              % (len(needed), len(samples), len(SPLITS), told, len(failures)))
        return 1 if status else 0
    text, became = mutated(table, kinds, random.Random(options.mutate))
    with tempfile.TemporaryDirectory() as folder:
        rules = os.path.join(folder, "rules")
        shutil.copytree(options.rules, rules)
        with open(os.path.join(rules, "operations.yaml"), "w", encoding="utf-8") as f:
            f.write(text)
        before = placements(options.tool, options.rules, flags, samples)
        checker.kinds = {n: became[n][1] if n in became else kind for n, kind in kinds.items()}
        claims = placements(options.tool, rules, flags, samples)
        failures = checker.run(samples, claims)
    other = {s.row for s, old, new in zip(samples, before, claims) if otherwise(kinds[s.row], old, new)}
    caught = {sample.row for sample in failures}
    missed = sorted(set(became) & other - caught)
    for name in missed:
        print("not caught: %s as %s instead of %s" % (name, became[name][1], became[name][0]))
    print("seed %d: %d rows under another kind, %d of them say something else, %d of these not caught"
          % (options.mutate, len(became), len(other & set(became)), len(missed)))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
