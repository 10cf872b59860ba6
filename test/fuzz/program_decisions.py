"""Decisions: by what ranks sent each other, and by floats that each of them computes for itself."""

import re

from program_text import Part


class Decisions:
    """Mixed into the grammar: what an epoch's or a step's numbers decide."""

    def recomputed(self):
        """A number of the weights, or of all data, which every rank computes."""
        p = self.parameters
        losses = {"curve": "torch::mse_loss", "points": "torch::cross_entropy_loss"}
        if self.formed["loader"][0] in ("slices", "picks", "split", "draws") and self.kind in losses and self.chance(0.25):
            loss = losses[self.kind]
            return f"{loss}({self.call.format('loader_x')}, loader_y).item<double>()"
        return self.pick(f"weight_sum({p})", f"{p}[0].norm().item<double>()", f"{p}[0].pow(2).mean().item<double>()",
                         f"({p}[0].sum() * table.sum()).item<double>()",
                         f"torch::stack({{{p}[0].norm(), {p}.back().abs().sum()}}).max().item<double>()")

    def by_weights(self):
        """A condition on such a number."""
        limit = self.pick("0.2", "0.9", "1.5", "2.5", "4.0")
        return self.pick(f"{self.recomputed()} > {limit}", f"{self.recomputed()} < {limit}",
                         f"int64_t({self.recomputed()} * 10) % 2 == 0", f"!({self.recomputed()} < {limit})")

    def after_norm(self, step):
        """A step that the norm of the gradients may change or leave out."""
        name, limit = self.name("norm"), self.pick("0.3", "1.0", "3.0")
        norm = Part(f"const double {name} = torch::nn::utils::clip_grad_norm_({self.parameters}, {self.pick('0.5', '1.0')});")
        return [norm, *self.pick(
            [Part(f"if ({name} < {limit}) {{", step)],
            [Part(f"if ({name} > {limit}) {{", [Part("optimizer.zero_grad();")]), *step],
            [Part(f"const bool small_{name} = {name} < {limit};"), Part(f"if (small_{name}) {{", step)],
            [Part(f"if ({name} > {limit}) x = x + torch::randn({{}});"), *step],
            [Part(f"const double noise_{name} = {name} > {limit} ? torch::rand({{}}).item<double>() : 0.0;"), *step,
             self.show("noise", f"noise_{name}")],
            [*step, Part(f"if (steps > 0 && {name} > {limit}) {{", [
                Part("for (auto& group : optimizer.param_groups()) group.options().set_lr(group.options().get_lr() * 0.9);")])])]

    def decisions(self, numbers):
        """What is decided behind an epoch."""
        if not numbers or self.chance(0.4):
            return []
        value = self.rng.choice(numbers)
        kind = self.pick("best", "rate", "stop", "patience", "history", "weights")
        if kind == "best":
            return [Part(f"if ({value} < best) {{", [Part(f"best = {value};"), Part("++improved;")])]
        if kind == "rate":
            return [Part(f"if ({value} > {self.constant()}) {{", [
                Part("for (auto& group : optimizer.param_groups()) group.options().set_lr(group.options().get_lr() / 2);")])]
        if kind == "stop":
            return [Part(f"if ({value} < {self.constant()}) break;")]
        if kind == "history":
            return [Part(f"history.push_back({value});")]
        if kind == "weights":
            return self.pick(
                lambda: [Part(f"if ({self.by_weights()}) break;")],
                lambda: [Part(f"if ({self.by_weights()} && epoch > 0) optimizer.zero_grad();")],
                lambda: [Part(f"if ({self.by_weights()}) {{", [Part("++improved;")]), Part("if (improved > 1) break;")],
                lambda: [Part(f"if ({self.by_weights()} || {value} > {self.constant()}) history.push_back({value});")])
        return [Part(f"const double metric{self.fresh} = {value};"),
                Part(f"if (metric{self.fresh} < best - 1e-3) {{", [Part(f"best = metric{self.fresh};")]),
                Part("else if (++improved > 1) {", [Part("break;")])]

    def prefixed(self, expression):
        return re.sub(r"(?<![\w.:])(net|w|v|b)\b", self.prefix + r"\1", expression) if self.prefix else expression
