"""Token models: what a batch of sequences comes to, with tokens that don't count.

In scope: `x` and `y` (tokens `[B, 5]`, `y` the next ones and 0 where there is none), `out` (`[B, 5, 6]`). What the other
programs have for each row stands here for each token.
"""

from program_text import Part

COUNTED = ["(y != 0)", "y.ne(0)", "(x != 0)", "(y > 0)"]
FLAT = "out.view({-1, 6}), y.view(-1)", "out.reshape({-1, 6}), y.reshape({-1})", "out.flatten(0, 1), y.flatten()"
OPTIONS = "torch::nn::functional::CrossEntropyFuncOptions()"


class Sequences:
    """Mixed into the grammar: replaces the expressions, the data and the models."""

    excluded = {"alias", "row_loop", "outputs"}

    def __init__(self, rng, number):
        super().__init__(rng, number)
        self.kind, self.columns = "tokens", 6
        self.carried, self.before = False, None  # what stands before the loop over the loader

    def flat(self):
        return self.rng.choice(FLAT)

    def error(self):
        back = self.pick("view_as(y)", "view({x.size(0), 5})", "reshape({-1, 5})", "view({-1, x.size(1)})")
        return self.pick(
            f"torch::nn::functional::cross_entropy({self.flat()}, {OPTIONS}.reduction(torch::kNone).ignore_index(0)).{back}",
            f"torch::nn::functional::cross_entropy({self.flat()}, {OPTIONS}.reduction(torch::kNone)).{back}",
            "-torch::log_softmax(out, 2).gather(2, y.unsqueeze(2)).squeeze(2)",
            "torch::cross_entropy_loss(out.transpose(1, 2), y, {}, at::Reduction::None)",
            "(torch::softmax(out, -1) - torch::one_hot(y, 6)).pow(2).sum(-1)")

    def row(self, depth=2):
        if self.risky(0.06):
            return self.coupled_row()
        if depth > 0 and self.chance(0.5):
            a = self.row(depth - 1)
            return self.pick(f"torch::tanh({a})", f"({a}) * {self.constant()}", f"torch::exp(-({a}).abs())",
                             lambda: f"({a} + {self.row(0)})", lambda: f"({a}) * ({self.row(0)})",
                             lambda: f"({a}) * {self.mask()}.to(torch::kDouble)", lambda: f"({a}).masked_fill({self.mask()}, 0.25)",
                             lambda: f"torch::where({self.mask()}, {a}, torch::zeros_like({a}))")
        return self.pick((3, self.error), "out.select(2, 1)", "torch::softmax(out, 2).select(2, 3)", "torch::logsumexp(out, 2)",
                         "std::get<0>(out.max(2))", "0.2 * x.to(torch::kDouble)", "out.pow(2).mean(2)",
                         "-(torch::softmax(out, -1) * torch::log_softmax(out, -1)).sum(-1)",
                         "(out.select(1, 0).sum(1, true) + 0.1 * y)", "torch::sigmoid(out).mean(-1)")

    def coupled_row(self):
        a = self.row(0)
        return self.pick(f"({a} - ({a}).mean())", f"torch::softmax({a}, 0)", f"({a}) * torch::rand_like({a})",
                         f"torch::dropout({a}, 0.2, true)", f"({a} + 0.1 * torch::randn({{x.size(0), 5}}))")

    def mask(self):
        own = self.rng.choice(COUNTED)
        return self.pick((3, own), f"((out.argmax(-1) == y) & {own})", "(x > 2)", f"((x < 4) & {own})",
                         f"(out.argmax(2).eq(y) * {own})", f"torch::logical_and({own}, x.ne(3))")

    def base_loss(self):
        e, m, flat = self.error(), self.rng.choice(COUNTED), self.flat()
        if self.family == "sum":
            return self.pick(f"(({e}) * {m}).sum()", f"({e}).sum()", f"(({e}) * {m}).sum() / {self.batch * 5}",
                             f"torch::nn::functional::cross_entropy({flat}, {OPTIONS}.ignore_index(0).reduction(torch::kSum))",
                             f"torch::cross_entropy_loss({flat}, {{}}, at::Reduction::Sum, 0)")
        if self.chance(0.45):  # what counts is another number on each rank
            return self.pick(
                f"torch::nn::functional::cross_entropy({flat}, {OPTIONS}.ignore_index(0))",
                f"torch::cross_entropy_loss({flat}, {{}}, at::Reduction::Mean, 0)",
                f"torch::nn::CrossEntropyLoss(torch::nn::CrossEntropyLossOptions().ignore_index(0))({flat})",
                f"(({e}) * {m}).sum() / {m}.sum()", f"(({e}) * {m}.to(torch::kDouble)).sum() / {m}.sum().clamp_min(1)",
                f"({e}).masked_select({m}).mean()", f"(({e}) * {m}).sum(1).div({m}.sum(1)).mean()")
        return self.pick(f"({e}).mean()", f"torch::cross_entropy_loss({flat})", f"torch::nn::CrossEntropyLoss()({flat})",
                         f"torch::cross_entropy_loss(out.transpose(1, 2), y)", f"(({e}) * {m}).mean()", f"({e}).sum(1).mean()",
                         f"({e}).sum() / (x.size(0) * x.size(1))", f"({e}).sum() / y.numel()",
                         f"torch::nll_loss(torch::log_softmax(out, -1).view({{-1, 6}}), y.view(-1))")

    def coupled_loss(self):
        return self.base_loss()

    def main_term(self):
        return self.base_loss()

    def scalar(self, depth=2):
        if self.risky(0.08):
            return self.coupled_scalar()
        if self.scalars and self.chance(0.15):
            return self.rng.choice(self.scalars)
        r = self.row()
        if self.family == "mean":
            return self.pick((3, f"({r}).mean()"), (2, self.base_loss), f"({r}).sum(1).mean()", f"({r}).sum() / x.size(0)",
                             f"({r}).mean(1).mean()", f"({r}).select(1, 4).mean()", "out.mean()",
                             f"({r}).sum() / y.numel()", lambda: f"{self.mask()}.to(torch::kDouble).mean()")
        return self.pick((3, f"({r}).sum()"), (2, self.base_loss), f"({r}).mean(1).sum()", f"({r}).select(1, 0).sum()", "out.sum()",
                         lambda: f"{self.mask()}.to(torch::kDouble).sum()")

    def coupled_scalar(self):
        r, m = self.row(1), self.mask()
        return self.pick(f"({r}).max()", f"({r}).norm()", f"(({r}) * {m}).sum() / ({m}.sum() + 1)", f"torch::exp(({r}).mean())")

    def critic(self):
        return []

    def model(self):
        self.call, self.parameters, self.model_type = self.pick("net->forward({})", "net({})"), "net->parameters()", "Net"
        self.model_variables = [("net", None)]
        kind = self.pick((2, "sequential"), (2, "linear"), (3, "GRU"), (3, "LSTM"), (2, "carried"))
        padding = self.pick("", ".padding_idx(0)")
        embedding = f"torch::nn::Embedding(torch::nn::EmbeddingOptions(6, 4){padding})"
        if kind == "sequential":
            self.model_type = "torch::nn::Sequential"
            self.call = "net->forward({})"
            return [Part(f"torch::nn::Sequential net({embedding}, torch::nn::Linear(4, 5), torch::nn::Tanh(), torch::nn::Linear(5, 6));")]
        members = [Part(f'torch::nn::Embedding table{{register_module("table", {embedding})}};')]
        if kind == "linear":
            forward = [Part("return head(torch::tanh(table(x)));")]
            width = 4
        else:
            layer, width = ("LSTM" if kind == "LSTM" else "GRU"), 5
            options = f"torch::nn::{layer}Options(4, 5).batch_first(true)" + self.pick("", ".num_layers(1)")
            members.append(Part(f'torch::nn::{layer} cell{{register_module("cell", torch::nn::{layer}({options}))}};'))
            forward = self.pick([Part("return head(std::get<0>(cell(table(x))));")],
                                [Part("auto states = std::get<0>(cell->forward(table->forward(x)));"), Part("return head->forward(states);")])
        members.append(Part(f'torch::nn::Linear head{{register_module("head", torch::nn::Linear({width}, 6))}};'))
        if kind == "carried":
            return self.carrying(members)
        self.parts += [Part("struct NetImpl : torch::nn::Module {", [
            Part("torch::Tensor forward(torch::Tensor x) {", forward), *members], "};"), Part("TORCH_MODULE(Net);")]
        if self.chance(0.3):
            self.model_type, self.call = "std::shared_ptr<NetImpl>", "net->forward({})"
            return [Part("auto net = std::make_shared<NetImpl>();")]
        return [Part("Net net;")]

    def carrying(self, members):
        """A model whose state goes from batch to batch, cut off between them."""
        self.carried, self.call = True, "std::get<0>(net->forward({}, {{}}))"
        self.parts += [Part("struct NetImpl : torch::nn::Module {", [
            Part("std::tuple<torch::Tensor, torch::Tensor> forward(torch::Tensor x, torch::Tensor state) {", [
                Part("auto states = cell->forward(table->forward(x), state);"),
                Part("return {head->forward(std::get<0>(states)), std::get<1>(states)};")]), *members], "};"),
            Part("TORCH_MODULE(Net);")]
        return [Part("Net net;")]

    def step(self):
        body, declared, lasting = super().step()
        if not self.carried or self.chance(0.2):
            return body, declared, lasting
        at = next(i for i, part in enumerate(body) if part.head.startswith("auto out = "))
        keep = self.pick("state = std::get<1>(both).detach();", "state = std::get<1>(both).detach().clone();",
                         "state = std::get<1>(both);\nstate = state.detach();")
        first, self.before = self.pick(
            (2, (f"if (x.size(0) != {self.batch}) continue;", f"auto state = torch::zeros({{1, {self.batch}, 5}});")),
            ("if (!state.defined() || state.size(1) != x.size(0)) state = torch::zeros({1, x.size(0), 5});", "torch::Tensor state;"))
        body[at:at + 1] = [Part(first), Part("auto both = net->forward(x, state);"), *map(Part, keep.split("\n")),
                           Part("auto out = std::get<0>(both);")]
        return body, declared, lasting

    def loop(self, name, body):
        loop = super().loop(name, body)
        return [Part(self.before), *loop] if name == "loader" and self.before else loop

    def before_step(self):
        return self.pick((8, lambda: []), lambda: [Part(f"if (x.size(0) < {self.batch}) continue;")],
                         lambda: [Part("x = x.clone();")], lambda: [Part("x = x.masked_fill(torch::rand({x.size(0), 5}) < 0.2, 0);")])
