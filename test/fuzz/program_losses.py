"""Terms of losses: sums by a size, weights of rows and classes, penalties of the weights, a second loss beside the first."""

from program_text import Part


class Losses:
    """Mixed into the grammar: more of what `loss()` gives."""

    def loss(self):
        if self.chance(0.6):
            return super().loss()
        parts = [Part(f"auto loss = {self.outlined(self.main_term(), 'torch::Tensor')};")]
        for more in self.rng.sample([self.auxiliary, self.weights_penalty, self.ramp], self.rng.choice([0, 1, 1, 2])):
            parts += more()
        return parts

    def sample_weights(self):
        """A positive number for each row."""
        return self.pick("torch::sigmoid(x.select(1, 0))", "(1 + x.select(1, 1).abs())", "torch::exp(-x.select(1, 2))",
                         f"({self.mask()}.to(torch::kDouble) + 0.5)", f"torch::where({self.mask()}, 2.0, 0.5)")

    def main_term(self):
        e = self.error()
        if self.family == "sum" or self.chance(0.4):
            return self.divided_sum(e)
        w, m = self.sample_weights(), self.mask()
        weighted = self.pick(
            f"(({e}) * {w}).sum() / {w}.sum()", f"(({e}) * {w}).mean()", f"(({e}) * {w}).sum() / {w}.sum().clamp_min(1e-6)",
            f"(({e}) * {w} / {w}.sum()).sum()",
            f"(({e}) * {m}.to(torch::kDouble)).sum() / {m}.sum().clamp_min(1)",
            f"(({e}) * {m}).sum() / {m}.sum().to(torch::kDouble).clamp_min(1)")
        if self.kind != "points":
            return weighted
        weights = self.pick("table", "torch::tensor({0.5, 1.0, 2.0})", "table / table.sum()")
        return self.pick(
            (2, weighted), f"torch::cross_entropy_loss(out, y, {weights})", f"torch::nll_loss(torch::log_softmax(out, 1), y, {weights})",
            f"torch::nn::functional::cross_entropy(out, y, torch::nn::functional::CrossEntropyFuncOptions().weight({weights}))",
            f"torch::nn::CrossEntropyLoss(torch::nn::CrossEntropyLossOptions().weight({weights}))(out, y)")

    def divided_sum(self, e):
        size = (self.pick(f"{self.batch}", f"{self.batch}.0", f"static_cast<double>({self.batch})") if self.family == "sum"
                else self.pick("x.size(0)", "y.size(0)", "static_cast<double>(x.size(0))", "y.sizes()[0]"))
        forms = [f"({e}).sum() / {size}", f"({e}).sum().div({size})", f"(1.0 / {size}) * ({e}).sum()"]
        if self.kind == "points":
            forms += [f"torch::cross_entropy_loss(out, y, {{}}, at::Reduction::Sum) / {size}",
                      f"torch::cross_entropy_loss(out, y, table, at::Reduction::Sum) / {size}"]
        if self.kind == "curve":
            forms.append(f"torch::mse_loss(out, y, at::Reduction::Sum) / {size}")
            if self.family == "mean":
                forms.append("(out - y).pow(2).sum() / y.numel()")
        return self.rng.choice(forms)

    def auxiliary(self):
        """A second loss with its weight, and often what it comes to."""
        name = self.name("aux")
        shown = [self.show(name, f"{name}.item<double>()")] if self.chance(0.3) else []
        add = self.pick(f"loss = loss + {self.constant()} * {name};", f"loss += {self.constant()} * {name};",
                        f"loss = torch::add(loss, {name}, 0.3);")
        return [Part(f"auto {name} = {self.outlined(self.scalar(1), 'torch::Tensor')};"), Part(add), *shown]

    def weights_penalty(self):
        p, n = self.parameters, self.name("penalty")
        loops = [[Part(f"for (const auto& p : {p}) loss = loss + 1e-3 * p.pow(2).sum();")],
                 [Part(f"torch::Tensor {n} = torch::zeros({{}});"), Part(f"for (auto& p : {p}) {n} += p.square().sum();"),
                  Part(f"loss = loss + 0.5e-2 * {n};")],
                 [Part(f"auto {n} = torch::zeros({{1}});"), Part(f"for (auto& p : {p}) {n} = {n} + p.abs().sum();"),
                  Part(f"loss = loss + 1e-3 * {n}.squeeze();")],
                 [Part(f"std::vector<torch::Tensor> {n};"), Part(f"for (auto& p : {p}) {n}.push_back(p.norm());"),
                  Part(f"loss = loss + 0.01 * torch::stack({n}).sum();")]]
        if "parameters()" in p:
            named = p.replace("parameters()", "named_parameters()")
            loops.append([Part(f"for (const auto& item : {named}) {{", [
                Part('if (item.key().find("bias") == std::string::npos) loss = loss + 1e-3 * item.value().pow(2).sum();')])])
        return self.rng.choice(loops)

    def ramp(self):
        """A term that grows with the steps."""
        name = self.name("ramp")
        return [Part(f"const double {name} = {self.pick('std::min(1.0, 0.2 * steps)', 'steps < 2 ? 0.0 : 0.5', '1.0 / (1 + steps)')};"),
                Part(f"loss = loss + {name} * {self.scalar(1)};")]
