"""Random expressions over a batch: rows, tensors of no dimensions, numbers, conditions.

What is in scope: `x` (rows of 4), `y` (the targets), `out` (the model's rows of `columns`), and per task `kind` what
`y` means. Expressions are smooth and free of ties, so that what differs on ranks by more than rounding is wrong.
"""

import random


# Rows of `[B, 1]` beside `[B]`: every row meets every row, which the tool can't always see and then remarks.
JOINED = {"curve": ["torch::mse_loss(out, y.squeeze(1))", "(out - y.flatten()).pow(2).mean()"],
          "gaps": ["(out - y.select(1, 0)).pow(2).mean()", "(out * y.select(1, 1)).square().sum()"]}


class Expressions:
    def __init__(self, rng: random.Random):
        self.rng = rng
        self.kind = rng.choice(["curve", "curve", "points", "points", "gaps"])
        self.columns = {"curve": 1, "points": 3, "gaps": 1}[self.kind]
        self.batch = rng.choice([3, 4, 4, 5, 6])
        # The last batch is full, or has one or two rows: then a rank of three has none.
        self.count = self.batch * rng.choice([2, 3]) + rng.choice([0, 1, 1, 2, 3])
        self.family = self.pick((3, "mean"), (2, "sum"))
        self.budget = rng.choice([0, 0, 0, 0, 1, 1, 2])  # of what needn't have an exact migration
        self.helpers = []  # lines of functions that expressions call
        self.numbers = []  # names of numbers in scope
        self.integers = []
        self.scalars = []  # names of tensors of no dimensions in scope
        self.in_loop = False
        self.fresh = 0

    def chance(self, p):
        return self.rng.random() < p

    def pick(self, *choices):
        """One of the choices, each alone (weight 1) or as (weight, choice); functions are called."""
        weighted = [c if isinstance(c, tuple) and isinstance(c[0], int) else (1, c) for c in choices]
        choice = self.rng.choices([c[1] for c in weighted], [c[0] for c in weighted])[0]
        return choice() if callable(choice) else choice

    def risky(self, p):
        if self.budget > 0 and self.chance(p):
            self.budget -= 1
            return True
        return False

    def name(self, stem):
        self.fresh += 1
        return f"{stem}{self.fresh}"

    def constant(self):
        return self.pick("0.1", "0.25", "0.3", "0.5", "0.7", "1.3", "2.0")

    # --- one number for each row

    def error(self):
        """How wrong the model is, for each row."""
        if self.kind == "points":
            return self.pick(
                "torch::nn::functional::cross_entropy(out, y, torch::nn::functional::CrossEntropyFuncOptions()"
                ".reduction(torch::kNone))",
                "-torch::log_softmax(out, 1).gather(1, y.unsqueeze(1)).squeeze(1)",
                "torch::nll_loss(torch::log_softmax(out, -1), y, {}, at::Reduction::None)",
                "(torch::softmax(out, 1) - torch::one_hot(y, 3)).pow(2).sum(1)",
                "torch::logsumexp(out, 1) - (out * torch::one_hot(y, 3).to(out.dtype())).sum(-1)")
        if self.kind == "curve":
            return self.pick(
                "(out - y).pow(2).squeeze(1)",
                "(out - y).square().sum(1)",
                "torch::mse_loss(out, y, at::Reduction::None).mean(1)",
                "torch::log(torch::cosh(out - y)).flatten()",
                "torch::smooth_l1_loss(out, y, at::Reduction::None).view({x.size(0)})",
                "torch::sqrt((out - y).pow(2) + 0.01).select(1, 0)")
        return self.pick("(out.squeeze(1) - y.select(1, 0)).pow(2)", "torch::pow(out.view(-1) - y.select(1, 0), 2)",
                         "torch::mse_loss(out.squeeze(-1), y.select(1, 0), at::Reduction::None)")

    def row(self, depth=2):
        if self.risky(0.06):
            return self.coupled_row()
        if depth > 0 and self.chance(0.55):
            a = self.row(depth - 1)
            return self.pick(
                f"torch::tanh({a})", f"torch::exp(-({a}).abs())", f"({a}) * {self.constant()}",
                f"torch::log1p(({a}).pow(2))", f"({a}) / (1 + ({a}).square())",
                lambda: f"({a} + {self.row(depth - 1)})", lambda: f"({a} - {self.row(depth - 1)})",
                lambda: f"({a}) * ({self.row(depth - 1)})",
                lambda: f"torch::where({self.mask()}, {a}, torch::zeros_like({a}))",
                lambda: f"torch::where({self.mask()}, {a}, {self.row(0)})",
                lambda: f"({a}) * {self.mask()}.to(torch::kDouble)", lambda: f"({a}).masked_fill({self.mask()}, 0.5)",
                lambda: f"torch::maximum({a}, {self.row(0)})",
                f"torch::stack({{{a}, x.select(1, 2)}}, 1).mean(1)",
                f"torch::cat({{({a}).unsqueeze(1), x}}, 1).sum(1)",
                f"({a}) * torch::ones({{x.size(0)}})", f"({a} + torch::full({{x.size(0)}}, 0.5))")
        return self.pick(
            (3, self.error), "x.select(1, 0)", "x.sum(1)", "out.mean(1)", "out.select(1, 0)", "x.pow(2).mean(1)",
            "torch::norm(x, 2, 1)", "(x * x).sum(-1)", "out.sum({1})", "out.narrow(1, 0, 1).squeeze(1)",
            "std::get<0>(x.max(1))", self.lookup, "x.index({torch::indexing::Slice(), 1})", "x.transpose(0, 1).sum(0)",
            "torch::matmul(x, torch::ones({4}))", "x.transpose(0, 1)[3]", "x.reshape({x.size(0), 2, 2}).sum({1, 2})",
            "x.view({-1, 4}).select(1, 1)", "torch::sigmoid(out).mean(1)", "torch::logsumexp(x, 1)")

    def lookup(self):
        """A table's entries for the rows."""
        index = "y" if self.kind == "points" else "(x.select(1, 2) > 0).to(torch::kLong)"
        return self.pick(f"table.index_select(0, {index})", f"table.index({{{index}}})",
                         f"table.gather(0, {index})", f"torch::embedding(table.unsqueeze(1), {index}).squeeze(1)",
                         f"table.unsqueeze(0).expand({{x.size(0), 3}}).gather(1, {index}.unsqueeze(1)).squeeze(1)")

    def coupled_row(self):
        a = self.row(0)
        return self.pick(f"({a} - ({a}).mean())", f"({a}) / ({a}).sum()", f"torch::softmax({a}, 0)",
                         f"({a}).cumsum(0)", f"({a}).flip(0)", f"({a}) * torch::arange(x.size(0))",
                         f"({a} + 0.1 * torch::randn({{x.size(0)}}))", f"({a}) * torch::rand_like({a})",
                         f"({a} + 0.1 * torch::randn_like({a}))", f"torch::dropout({a}, 0.2, true)",
                         f"({a}) * torch::ones({{{self.batch}}})", f"std::get<0>(torch::sort({a}))",
                         f"({a}) + x[0].sum()", f"({a}) * torch::randn({{1}})",
                         f"({a}) * torch::bernoulli(torch::full({{x.size(0)}}, 0.5))")

    def mask(self):
        """Which rows: a tensor of bool."""
        own = {"points": ["(y == 1)", "y.ne(0)", "(out.argmax(1) == y)", "y.eq(out.argmax(-1))", "(y > 0)"],
               "curve": ["(y.squeeze(1) > 0.2)", "(y > 0.1).flatten()", "((out - y).abs().squeeze(1) < 0.3)"],
               "gaps": ["(y.select(1, 1) > 0.5)", "y.select(1, 1).gt(0.5)", "y.select(1, 1).to(torch::kBool)"]}[self.kind]
        return self.pick(*own, "(x.select(1, 0) > 0.1)", "(x.select(1, 1) < 0.3)", "(out.select(1, 0) > 0.05)",
                         f"({self.rng.choice(own)} & (x.select(1, 3) < 0.6))",
                         f"torch::logical_or({self.rng.choice(own)}, x.select(1, 2) > 0.4)")

    # --- tensors of no dimensions

    def base_loss(self):
        """A mean over the rows or their sum, as `family` says: the two don't add up on ranks."""
        e, mean = self.error(), self.family == "mean"
        if self.risky(0.1):
            return self.coupled_loss()
        own = f"({e}).mean()" if mean else f"({e}).sum()"
        if self.kind == "points":
            if mean:
                return self.pick(
                    own, "torch::cross_entropy_loss(out, y)", "torch::nn::functional::cross_entropy(out, y)",
                    "torch::nll_loss(torch::log_softmax(out, 1), y)", "torch::nn::CrossEntropyLoss()(out, y)",
                    "torch::nn::functional::nll_loss(torch::log_softmax(out, -1), y)",
                    "torch::nn::functional::cross_entropy(out, y, torch::nn::functional::CrossEntropyFuncOptions()"
                    ".label_smoothing(0.1))")
            return self.pick(
                own, "torch::cross_entropy_loss(out, y, {}, at::Reduction::Sum)",
                "torch::nn::functional::cross_entropy(out, y, torch::nn::functional::CrossEntropyFuncOptions()"
                ".reduction(torch::kSum))",
                "torch::nn::CrossEntropyLoss(torch::nn::CrossEntropyLossOptions().reduction(torch::kSum))(out, y)")
        if self.kind == "curve":
            if mean:
                return self.pick(
                    own, "torch::mse_loss(out, y)", "torch::nn::functional::mse_loss(out, y)",
                    "torch::nn::MSELoss()(out, y)", "torch::huber_loss(out, y)", "torch::smooth_l1_loss(out, y)",
                    "(out - y).pow(2).mean()", "(out - y).pow(2).sum() / x.size(0)", "torch::mean(torch::square(out - y))")
            return self.pick(
                own, "torch::mse_loss(out, y, at::Reduction::Sum)", f"(out - y).pow(2).sum() / {self.batch}",
                "torch::nn::functional::mse_loss(out, y, torch::nn::functional::MSELossFuncOptions(torch::kSum))",
                "torch::nn::MSELoss(torch::nn::MSELossOptions().reduction(torch::kSum))(out, y)")
        m = "y.select(1, 1)"
        return f"(({e}) * {m}).mean()" if mean else f"(({e}) * {m}).sum()"

    def coupled_loss(self):
        """Rows against rows, or weighted by what the rows say."""
        e, m = self.error(), self.mask()
        own = {"points": ["torch::cross_entropy_loss(out, y, torch::full({3}, 0.5))",
                          "torch::nll_loss(torch::log_softmax(out, 1), y, {}, at::Reduction::Mean, 1)"],
               **JOINED}[self.kind]
        return self.pick(*[(2, form) for form in own], f"(({e}) * {m}).sum() / ({m}.sum() + 1)", f"({e}).index({{{m}}}).sum()",
                         f"(({e}) * {m}).sum() / {m}.sum()", f"({e}).mean() + 0.1 * ({e}).sum()",
                         f"({e}).mean() * ({e}).mean()")

    def scalar(self, depth=2):
        """A tensor of no dimensions that can be added to the loss."""
        if self.risky(0.08):
            return self.coupled_scalar()
        if self.scalars and self.chance(0.15):
            return self.rng.choice(self.scalars)
        if depth > 0 and self.chance(0.3):
            a = self.scalar(depth - 1)
            return self.pick(f"{self.constant()} * ({a})", f"({a}) / {self.constant()}", f"-({a})",
                             lambda: f"({a} + {self.scalar(depth - 1)})", lambda: f"({a} - {self.scalar(0)})")
        r = self.row()
        if self.family == "mean":
            return self.pick((3, f"({r}).mean()"), (2, self.base_loss), f"torch::mean({r})", f"({r}).sum() / x.size(0)",
                             f"({r}).mean(0, false)", "out.mean()", "out.sum(1).mean()", "x.mean()",
                             "out.mean(at::IntArrayRef({0})).sum()", "(out * out).mean(at::IntArrayRef({0, 1}))",
                             lambda: f"{self.mask()}.to(torch::kDouble).mean()")
        return self.pick((3, f"({r}).sum()"), (2, self.base_loss), f"torch::sum({r})", f"({r}).sum() / {self.batch}",
                         f"({r}).sum(0)", "out.sum()", "out.sum(0).sum()", f"({r}).sum(at::IntArrayRef({{0}}))",
                         f"torch::stack({{({r}).sum(), out.sum()}}).sum()",
                         lambda: f"{self.mask()}.to(torch::kDouble).sum()")

    def coupled_scalar(self):
        a = self.row(1)
        m = self.mask()
        return self.pick(f"({a}).max()", f"({a}).min()", f"({a}).std()", f"({a}).norm()", f"({a}).var(0)",
                         f"({a}).mean().pow(2)", f"torch::sqrt(({a}).pow(2).sum() + 0.1)",
                         f"torch::exp(-({a}).mean())", f"({a}).mean() * ({self.row(0)}).mean()",
                         f"({a}).sum() / (({self.row(0)}).pow(2).sum() + 1)",
                         f"(({a}) * {m}).sum() / ({m}.sum() + 1)", f"({a}).index({{{m}}}).sum()",
                         f"({a}).masked_select({m}).mean()", f"torch::logsumexp({a}, 0)", f"({a})[0]",
                         "x.t().mm(out).pow(2).sum()", "torch::mm(out, out.t()).mean()", f"({a}).median()",
                         "out.sum(0).pow(2).sum()", "out.mean(at::IntArrayRef(0)).norm()")

    # --- numbers, which decide nothing about gradients: anything can be reduced

    def statistic(self):
        """A tensor of no dimensions that is only looked at."""
        if not self.risky(0.15):
            family, self.family = self.family, self.pick("mean", "sum")
            saved, self.scalars = self.scalars, []  # of the loss's family
            a = self.scalar(1)
            self.family, self.scalars = family, saved
            return a
        a = self.row(1)
        return self.pick(f"({a}).mean().pow(2)", f"({a}).pow(2).mean().sqrt()", f"torch::exp(-({a}).mean())",
                         f"({a}).mean() * ({self.row(0)}).sum()", f"({a}).sum() / ({self.row(0)}).pow(2).sum()",
                         f"(({a}) * {self.mask()}).sum() / (1 + {self.mask()}.sum())", f"({a}).max()",
                         f"({a}).abs().max()", "out.mean(at::IntArrayRef({0})).norm()")

    def number(self, depth=2):
        if self.numbers and self.chance(0.3):
            return self.rng.choice(self.numbers)
        if self.integers and self.chance(0.1):
            return f"static_cast<double>({self.rng.choice(self.integers)})"
        if depth > 0 and self.chance(0.45):
            a, c = self.number(depth - 1), self.constant()
            return self.pick(
                f"{c} * {a}", f"({a}) / {c}", f"({a} + {c})", f"std::sqrt(std::abs({a}))", f"std::exp(-std::abs({a}))",
                lambda: f"({a} + {self.number(depth - 1)})", lambda: f"({a} - {self.number(depth - 1)})",
                lambda: f"({a}) * ({self.number(depth - 1)})", lambda: f"({a}) / (1.5 + std::abs({self.number(0)}))",
                lambda: f"std::max<double>({a}, {self.number(0)})", lambda: f"std::min<double>({a}, {c})",
                lambda: f"({a} > {c} ? {self.number(0)} : {c})", lambda: f"std::pow({a}, 2)",
                f"({a}) * x.size(0)", f"({a}) / x.size(0)", f"({a}) * {self.batch}")
        return self.pick((4, lambda: f"({self.statistic()}).item<double>()"), "static_cast<double>(x.size(0))",
                         *([f"({self.statistic()}).item().toDouble()"] if self.risky(0.1) else []),
                         lambda: f"static_cast<double>({self.integer(0)})",
                         lambda: f"({self.statistic()}).detach().item<double>()",
                         lambda: f"({self.statistic()}).cpu().item<double>()")

    def integer(self, depth=1):
        if self.integers and self.chance(0.25):
            return self.rng.choice(self.integers)
        if depth > 0 and self.chance(0.25):
            a = self.integer(depth - 1)
            return self.pick(f"({a} + {self.integer(0)})", f"2 * {a}", f"({a}) / 2", f"({a}) % 3",
                             f"std::max<int64_t>({a}, {self.integer(0)})")
        return self.pick((3, lambda: f"({self.mask()}).sum().item<int64_t>()"), "x.size(0)", "y.size(0)",
                         lambda: f"torch::count_nonzero({self.mask()}).item<int64_t>()", "x.numel()",
                         "x.sizes()[0]", lambda: f"({self.mask()}).sum().item<int>()",
                         *(["y.sum().item<int64_t>()"] if self.kind == "points" else []))

    def condition(self):
        return self.pick((3, lambda: f"{self.number(1)} > {self.constant()}"),
                         lambda: f"{self.number(1)} < {self.number(0)}",
                         (2, lambda: f"{self.integer()} > {self.rng.choice([1, 2, 3])}"),
                         f"x.size(0) < {self.batch}", f"x.size(0) == {self.batch}",
                         lambda: f"!({self.number(0)} < {self.constant()})",
                         lambda: f"{self.number(0)} > {self.constant()} && {self.integer()} > 1",
                         lambda: f"{self.integer()} % 2 == 0", lambda: f"std::isfinite({self.number(1)})",
                         *([self.by_weights] if self.in_loop else []))
