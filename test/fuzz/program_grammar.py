"""Random training functions: models, loops, losses, accumulators, decisions, evaluation."""

import re

from program_batches import Batches
from program_decisions import Decisions
from program_expressions import Expressions
from program_text import Case, Part


class Accumulator:
    """A variable that outlives a step: how it's declared, added to and looked at."""

    def __init__(self, name, type, initial, update, uses, shown=()):
        self.name, self.type, self.initial, self.update, self.uses = name, type, initial, update, uses
        self.shown = list(shown)  # statements that print it

    def declaration(self):
        return Part(f"{self.type} {self.name} = {self.initial};")


class Grammar(Batches, Decisions, Expressions):
    excluded = ()  # kinds of accumulators

    def __init__(self, rng, number):
        super().__init__(rng)
        self.number_of_case = number
        self.parts = []  # of helper functions
        self.passed, self.model_variables, self.has_critic = [], [], False
        self.loader_types = {}
        self.epochs = 2

    # --- showing

    def show(self, label, value, type="double"):
        """A statement that prints."""
        if type == "tensor":
            return Part(f'std::cout << "{label} " << {value} << std::endl;')
        if self.risky(0.03):  # also called with what is equal on all ranks
            return Part(self.pick(f'report("{label}", {value});', f'say("{label} ", {value});'))
        if type == "int64_t":
            return Part(self.pick(
                f'std::printf("{label} %lld\\n", static_cast<long long>({value}));',
                f'std::cout << "{label} " << {value} << std::endl;',
                f'std::cout << "{label} " + std::to_string({value}) + "\\n";'))
        return Part(self.pick(
            (4, f'std::printf("{label} %.10f\\n", {value});'),
            (2, f'std::cout << "{label} " << std::fixed << std::setprecision(10) << {value} << std::endl;'),
            f'std::cout << "{label} " + std::to_string({value}) << "\\n";',
            f"{{ char text[64]; std::snprintf(text, sizeof text, \"{label} %.9f\", {value}); std::puts(text); }}",
            f'{{ std::ostringstream line; line << std::setprecision(12) << "{label} " << {value} << "\\n"; '
            f"std::cout << line.str(); }}"))

    # --- helper functions

    IN_SCOPE = {name: "torch::Tensor" for name in ("x", "y", "out", "table")}

    def outlined(self, expression, type):
        """The same value by way of a function, or as it is."""
        if self.chance(0.7):
            return expression
        known = dict(self.IN_SCOPE, **{n: "torch::Tensor" for n in self.scalars}, **{n: "double" for n in self.numbers},
                     **{n: "int64_t" for n in self.integers})
        used = [n for n in known if re.search(rf"(?<![\w.:]){n}\b", expression)]
        if not used:
            return expression
        name = self.name("f")
        how = self.pick("const", "value", "template", "lambda", "struct")
        if how == "template":
            types = ", ".join(f"typename T{i}" for i in range(len(used)))
            parameters = ", ".join(f"const T{i}& {n}" for i, n in enumerate(used))
            body = re.sub(r"\.(item|to|data_ptr)<", r".template \1<", expression)
            self.parts.append(Part(f"template <{types}>\n{type} {name}({parameters}) {{", [Part(f"return {body};")]))
            return f"{name}({', '.join(used)})"
        kind = "{}" if how == "value" else "const {}&"
        parameters = ", ".join(f"{kind.format(known[n])} {n}" for n in used)
        if how == "lambda" and self.in_loop:
            captures = self.pick("&", "=")
            return f"[{captures}]() -> {type} {{ return {expression}; }}()"
        if how == "struct":
            self.parts.append(Part(f"struct {name.upper()} {{", [
                Part(f"{type} operator()({parameters}) const {{", [Part(f"return scale * ({expression});")]),
                Part(f"{type} scale{{1}};" if type != "torch::Tensor" else "double scale{1};")], "};"))
            return f"{name.upper()}()({', '.join(used)})"
        self.parts.append(Part(f"{type} {name}({parameters}) {{", [Part(f"return {expression};")]))
        return f"{name}({', '.join(used)})"

    # --- accumulators

    def accumulator(self):
        rng, name = self.rng, self.name("a")
        kind = self.pick(*[(w, k) for k, w in {
            "sum": 4, "weighted": 3, "mean": 1, "count": 3, "correct": 2, "tensor": 2, "classes": 2, "vector": 2,
            "extreme": 2, "last": 1, "smooth": 1, "map": 1, "meter": 2, "confusion": 1, "per_class": 2,
            "guarded": 2, "product": 1, "alias": 1, "array": 1, "window": 1, "row_loop": 2}.items() if k not in self.excluded],
            *([(9, "outputs")] if "outputs" not in self.excluded and self.risky(0.2) else []))
        v = self.outlined(self.number(), "double")
        if kind in ("sum", "weighted", "mean", "extreme", "last", "smooth", "guarded"):
            float_type = "float" if self.chance(0.05) else "double"
            update = {
                "sum": lambda: self.pick(f"{name} += {v};", f"{name} = {name} + {v};", f"{name} -= {v};",
                                         f"{name} += {self.constant()} * {v};"),
                "weighted": lambda: self.pick(f"{name} += {v} * x.size(0);", f"{name} += x.size(0) * {v};",
                                              f"{name} += {v} * static_cast<double>(y.size(0));"),
                "mean": lambda: f"{name} += ({v}) / x.size(0);",
                "extreme": lambda: self.pick(f"{name} = std::max<double>({name}, {v});",
                                             f"if ({v} > {name}) {name} = {v};",
                                             f"{name} = {v} < {name} ? {v} : {name};"),
                "last": lambda: f"{name} = {v};",
                "smooth": lambda: self.pick(f"{name} = 0.9 * {name} + 0.1 * {v};",
                                            f"{name} += 0.2 * ({v} - {name});"),
                "guarded": lambda: self.pick(f"if ({self.condition()}) {name} += {v};",
                                             f"{name} += {self.condition()} ? {v} : 0.0;",
                                             f"if ({self.condition()}) {name} += {v}; else {name} -= 0.5;"),
            }[kind]()
            return Accumulator(name, float_type, "0", [Part(update)],
                               ["{a}", "{a} / batches", "{a} / seen", f"{{a}} / {self.count}", "2 * {a}",
                                "std::sqrt(std::abs({a}))"])
        if kind in ("count", "correct"):
            what = self.integer() if kind == "count" else f"({self.mask()}).sum().item<int64_t>()"
            what = self.outlined(what, "int64_t")
            update = self.pick((3, f"{name} += {what};"), f"{name} = {name} + {what};",
                               f"if ({self.condition()}) ++{name};", f"if ({self.condition()}) {name} += {what};")
            type = self.pick("int64_t", "int64_t", "size_t", "double") if kind == "correct" else "int64_t"
            return Accumulator(name, type, "0", [Part(update)],
                               ["static_cast<double>({a}) / seen", f"static_cast<double>({{a}}) / {self.count}",
                                "100.0 * {a} / seen", "1.0 * {a}"])
        if kind == "tensor":
            s = self.outlined(self.statistic(), "torch::Tensor")
            update = self.pick(f"{name} += ({s}).detach();", f"{name} = {name} + ({s}).detach();",
                               f"{name}.add_(({s}).detach());", f"{name} = {name} + ({s}).detach() * x.size(0);",
                               f"{name} = torch::maximum({name}, ({s}).detach());")
            return Accumulator(name, "torch::Tensor", "torch::zeros({})", [Part(update)],
                               ["{a}.item<double>()", "({a} / batches).item<double>()", "{a}.item<double>() / seen",
                                "{a}.pow(2).item<double>()"])
        if kind == "classes" and self.kind == "points":
            update = self.pick(f"{name} += torch::one_hot(y, 3).sum(0);",
                               f"{name} += torch::one_hot(out.argmax(1), 3).sum(0).to(torch::kDouble);",
                               f"{name} += torch::softmax(out, 1).sum(0).detach();",
                               f"{name} += torch::bincount(y, {{}}, 3);",
                               f"{name}.index_add_(0, y, torch::ones({{y.size(0)}}));",
                               f"{name} = {name} + torch::softmax(out, 1).mean(0).detach();",
                               f"for (int64_t c = 0; c < 3; ++c) {name}[c] += (y == c).sum();")
            return Accumulator(name, "torch::Tensor", "torch::zeros({3})", [Part(update)],
                               ["{a}[1].item<double>()", "({a} / {a}.sum())[0].item<double>()",
                                "{a}.max().item<double>()", "({a} / seen).sum().item<double>()"])
        if kind == "product":
            return Accumulator(name, "double", "1", [Part(self.pick(
                f"{name} *= 1 + 0.1 * std::tanh({v});", f"{name} *= {v};", f"{name} = {name} * (1 - 0.1 * {v});"))],
                ["{a}", "std::tanh({a})"])
        if kind == "alias":
            rows = self.pick("torch::stack({x.sum(), out.sum().detach(), x.pow(2).sum()})", "out.detach().sum() * table",
                             "x.sum(0).narrow(0, 0, 3)", "torch::cat({x.sum(0), out.detach().sum(0)}).narrow(0, 1, 3)")
            update = self.pick(
                [Part(f"auto {name}_alias = {name};"), Part(f"{name}_alias += {rows};")],
                [Part(f"auto& {name}_alias = {name};"), Part(f"{name}_alias = {name}_alias + {rows};")],
                [Part(f"{name}.select(0, 1).add_(({rows})[0]);")], [Part(f"{name}.narrow(0, 1, 2) += ({rows}).narrow(0, 0, 2);")],
                [Part(f"{name}.index_put_({{2}}, ({rows})[1]);")], [Part(f"{name}.copy_({name} + {rows});")],
                [Part(f"{name}[0] += ({rows})[2];")], [Part(f"{name}.mul_(0.5).add_({rows});")],
                [Part(f"add_{name}({name}, {rows});")])
            if update[0].head.startswith("add_"):
                self.parts.append(Part(f"void add_{name}(torch::Tensor to, const torch::Tensor& what) {{", [
                    Part("to += what;")]))
            return Accumulator(name, "torch::Tensor", "torch::zeros({3})", update,
                               ["{a}[0].item<double>()", "{a}.sum().item<double>()", "({a} / {a}.abs().sum())[1].item<double>()"])
        if kind == "array":
            i = self.pick("steps % 3", "0", "x.size(0) % 3")
            update = self.pick(f"{name}[{i}] += {v};", f"{name}[{i}] = {v};", f"{name}[{i}] += ({v}) * x.size(0);")
            return Accumulator(name, self.pick("std::array<double, 3>", "std::array<double, 4>"), "{}", [Part(update)],
                               ["{a}[0]", "{a}[0] + {a}[1] + {a}[2]", "{a}[2] / seen"])
        if kind == "window":
            return Accumulator(name, "double", "0", [Part(f"{name} += {v};"), Part("if (batches % 2 == 1) {", [
                self.show(self.name("w"), f"{name} / 2"), Part(f"{name} = 0;")])], ["{a}"])
        if kind == "confusion" and self.kind == "points":
            update = self.pick(
                [Part(f"{name} += torch::one_hot(y, 3).t().mm(torch::one_hot(out.argmax(1), 3));")],
                [Part(f"{name} += torch::bincount(y * 3 + out.argmax(1), {{}}, 9).view({{3, 3}});")],
                [Part("for (int64_t c = 0; c < 3; ++c) {", [
                    Part(f"for (int64_t d = 0; d < 3; ++d) {name}[c][d] += ((y == c) & (out.argmax(1) == d)).sum();")])],
                [Part("for (int64_t i = 0; i < y.size(0); ++i) {", [
                    Part(f"{name}[y[i].item<int64_t>()][out.argmax(1)[i].item<int64_t>()] += 1;")])])
            return Accumulator(name, "torch::Tensor", "torch::zeros({3, 3}, torch::kLong)", update,
                               ["static_cast<double>({a}[1][1].item<int64_t>())",
                                "static_cast<double>({a}.trace().item<int64_t>()) / seen",
                                "{a}.diagonal().sum().item<double>() / {a}.sum().item<double>()"])
        if kind == "per_class" and self.kind == "points":
            array = self.pick("std::vector<int64_t>", "std::array<int64_t, 3>", "std::vector<double>")
            initial = "{}" if "array" in array else f"{array}(3, 0)"
            update = Part("for (int64_t c = 0; c < 3; ++c) {", [
                Part(f"auto of_class = y.eq(c);" if self.chance(0.5) else "auto of_class = (y == c);"),
                Part(self.pick(f"{name}[c] += of_class.sum().item<int64_t>();",
                               f"{name}[c] += (of_class & (out.argmax(1) == c)).sum().item<int64_t>();"))])
            return Accumulator(name, array, initial, [update],
                               ["1.0 * {a}[0]", "1.0 * {a}[1] / seen", "1.0 * ({a}[0] + {a}[2]) / (1 + {a}[1])"])
        if kind == "vector":
            return Accumulator(name, "std::vector<double>", "{}", [Part(self.pick(
                f"{name}.push_back({v});", f"{name}.emplace_back({v});"))],
                ["std::accumulate({a}.begin(), {a}.end(), 0.0)", "{a}.back()", "{a}[0]",
                 "*std::max_element({a}.begin(), {a}.end())", "static_cast<double>({a}.size())"])
        if kind == "map":
            return Accumulator(name, "std::map<std::string, double>", "{}", [Part(f'{name}["one"] += {v};'),
                               Part(f'{name}["two"] += {self.number(1)} * x.size(0);')],
                               ['{a}["one"]', '{a}["two"] / seen'])
        if kind == "meter":
            self.parts.append(Part(f"struct Meter{name} {{", [
                Part("double total = 0, weight = 0;"),
                Part("void add(double value, double n = 1) {", [Part("total += value * n;"), Part("weight += n;")]),
                Part("double mean() const { return total / weight; }")], "};"))
            update = self.pick(f"{name}.add({v});", f"{name}.add({v}, x.size(0));", f"{name}.add({v}, {self.integer()});")
            return Accumulator(name, f"Meter{name}", "{}", [Part(update)], ["{a}.mean()", "{a}.total", "{a}.weight"])
        if kind == "outputs":
            what = self.pick("out.detach()", f"({self.row(1)}).detach()")
            return Accumulator(name, "std::vector<torch::Tensor>", "{}", [Part(f"{name}.push_back({what});")],
                               ["torch::cat({a}).mean().item<double>()", "torch::cat({a}).sum().item<double>()",
                                "torch::cat({a}).flatten()[1].item<double>()",
                                "static_cast<double>(torch::cat({a}).size(0))"])
        if kind == "row_loop":
            test = {"points": "out.argmax(1)[i].item<int64_t>() == y[i].item<int64_t>()",
                    "curve": "out[i].item<double>() > y[i].item<double>()",
                    "gaps": "y[i][1].item<double>() > 0.5"}[self.kind]
            type, body = self.pick(
                (3, ("int64_t", f"if ({test}) ++{name};")), ("int64_t", f"{name} += {test};"),
                ("double", f"{name} += out[i].abs().sum().item<double>();"),
                ("double", f"{name} = std::max({name}, out[i].abs().max().item<double>());"))
            bound, loop = self.pick((2, ([], "for (int64_t i = 0; i < x.size(0); ++i) {")),
                                    ([Part(f"const int64_t n_{name} = y.size(0);")],
                                     f"for (int64_t i = 0; i != n_{name}; i++) {{"))
            if self.chance(0.2):
                self.parts.append(Part(f"void count_{name}({type}& {name}, const torch::Tensor& x, const torch::Tensor& y, "
                                       f"const torch::Tensor& out) {{", [*bound, Part(loop, [Part(body)])]))
                bound, loop = [], None
            update = [*bound, Part(loop, [Part(body)])] if loop else [Part(f"count_{name}({name}, x, y, out);")]
            return Accumulator(name, type, "0", update, ["1.0 * {a}", "1.0 * {a} / seen"])
        return self.accumulator()

    def locals(self):
        """Names for values of the step."""
        parts = []
        for _ in range(self.rng.choice([0, 0, 1, 2])):
            kind = self.pick("number", "integer", "scalar")
            name = self.name("v")
            if kind == "number":
                parts.append(Part(f"const double {name} = {self.outlined(self.number(), 'double')};"))
                self.numbers.append(name)
            elif kind == "integer":
                parts.append(Part(f"auto {name} = {self.outlined(self.integer(), 'int64_t')};"))
                self.integers.append(name)
            else:
                parts.append(Part(f"auto {name} = {self.outlined(self.scalar(), 'torch::Tensor')};"))
                self.scalars.append(name)
        return parts

    # --- models and optimizers

    def model(self):
        """Declares `net`; how it is called and what its parameters are."""
        k = self.columns
        self.call, self.parameters = "net->forward({})", "net->parameters()"
        self.model_variables = [("net", None)]
        kind = self.pick("holder", "holder", "object", "shared", "linear", "sequential", "leaf")
        layer = self.pick((5, None), "torch::nn::LayerNorm(torch::nn::LayerNormOptions({6}))",
                          *(["torch::nn::Dropout(0.2)"] if self.risky(0.3) else []))
        if kind == "linear":
            self.call = self.pick("net({})", "net->forward({})")
            self.model_type = "torch::nn::Linear"
            return [Part(f"torch::nn::Linear net(4, {k});")]
        if kind == "sequential":
            middle = f"{layer}, " if layer else ""
            self.model_type = "torch::nn::Sequential"
            return [Part(f"torch::nn::Sequential net(torch::nn::Linear(4, 6), {middle}torch::nn::Tanh(), "
                         f"torch::nn::Linear(6, {k}));")]
        if kind == "leaf":
            self.call, self.parameters = "torch::tanh(({}).mm(w)).mm(v) + b", "std::vector<torch::Tensor>{w, v, b}"
            self.model_type = None
            self.model_variables = [(name, "torch::Tensor") for name in ("w", "v", "b")]
            return [Part("auto w = torch::randn({4, 5}, torch::requires_grad());"),
                    Part(f"auto v = torch::randn({{5, {k}}}).requires_grad_();"),
                    Part(f"auto b = torch::zeros({{{k}}}, torch::requires_grad());")]
        forward = "first->forward(x)"
        members = [Part("torch::nn::Linear first{register_module(\"first\", torch::nn::Linear(4, 6))};")]
        if layer:
            type = layer.split("(")[0]
            members.append(Part(f'{type} middle{{register_module("middle", {layer})}};'))
            forward = f"middle->forward({forward})"
        members.append(Part(f'torch::nn::Linear second{{register_module("second", torch::nn::Linear(6, {k}))}};'))
        activation = self.pick("torch::tanh", "torch::sigmoid", "torch::gelu", "torch::silu", "torch::softplus")
        self.parts.append(Part("struct NetImpl : torch::nn::Module {", [
            Part("torch::Tensor forward(torch::Tensor x) {", [Part(f"return second->forward({activation}({forward}));")]),
            *members], "};"))
        if kind == "holder":
            self.parts.append(Part("TORCH_MODULE(Net);"))
            self.call = self.pick("net({})", "net->forward({})")
            self.model_type = "Net"
            return [Part("Net net;")]
        if kind == "shared":
            self.model_type = "std::shared_ptr<NetImpl>"
            return [Part("auto net = std::make_shared<NetImpl>();")]
        self.call, self.parameters, self.model_type = "net.forward({})", "net.parameters()", "NetImpl"
        return [Part("NetImpl net;")]

    def optimizer(self):
        p = self.parameters
        self.optimizer_type, options = self.pick(
            ("SGD", "0.05"), ("SGD", "torch::optim::SGDOptions(0.02).momentum(0.9)"),
            ("SGD", "torch::optim::SGDOptions(0.05).weight_decay(0.01)"), ("Adam", "torch::optim::AdamOptions(0.01).eps(1e-3)"),
            ("AdamW", "torch::optim::AdamWOptions(0.01).eps(1e-3)"),
            ("RMSprop", "torch::optim::RMSpropOptions(0.01).eps(1e-3)"))
        return [Part(f"torch::optim::{self.optimizer_type} optimizer({p}, {options});")]

    def penalty(self):
        p = self.parameters
        how = self.pick("loop", "first", "helper")
        name = self.name("penalty")
        if how == "loop":
            return name, [Part(f"auto {name} = torch::zeros({{}});"),
                          Part(f"for (const auto& p : {p}) {name} = {name} + p.pow(2).sum();")]
        if how == "first":
            return name, [Part(f"auto {name} = {p}[0].{self.pick('pow(2).sum()', 'abs().mean()', 'norm()')};")]
        f = self.name("f")
        self.parts.append(Part(f"torch::Tensor {f}(const std::vector<torch::Tensor>& parameters) {{", [
            Part("auto sum = torch::zeros({});"), Part("for (const auto& p : parameters) sum += p.pow(2).sum();"),
            Part("return sum;")]))
        return name, [Part(f"auto {name} = {f}({p});")]

    # --- the loops

    def loss(self):
        """Statements that define `loss`."""
        parts = []
        base = self.outlined(self.base_loss(), "torch::Tensor")
        terms = [base]
        for _ in range(self.rng.choice([0, 0, 1, 1, 2])):
            terms.append(f"{self.constant()} * {self.outlined(self.scalar(), 'torch::Tensor')}")
        if self.chance(0.2):
            name, more = self.penalty()
            parts += more
            terms.append(f"0.01 * {name}")
        if len(terms) > 1 and self.chance(0.4):
            parts.append(Part(f"auto loss = {terms[0]};"))
            parts += [Part(self.pick(f"loss = loss + {t};", f"loss += {t};")) for t in terms[1:]]
        else:
            parts.append(Part(f"auto loss = {' + '.join(terms)};"))
        return parts

    def update(self):
        """From the loss to the weights."""
        if self.has_critic:
            target = self.row(0)
            return [Part("optimizer.zero_grad();"), Part("loss.backward();"), Part("optimizer.step();"),
                    Part("auto judged = critic(out.detach()).squeeze(1);"),
                    Part(f"auto judgement = (judged - ({target}).detach()).pow(2).mean();"),
                    Part("critic_optimizer.zero_grad();"), Part("judgement.backward();"), Part("critic_optimizer.step();"),
                    self.show(self.name("j"), "judgement.item<double>()")]
        zero = Part(self.pick("optimizer.zero_grad();", "optimizer.zero_grad();",
                              f"for (auto& p : {self.parameters}) if (p.grad().defined()) p.grad().zero_();"))
        clip = [Part(self.pick(f"torch::nn::utils::clip_grad_norm_({self.parameters}, 0.5);",
                               f"torch::nn::utils::clip_grad_value_({self.parameters}, 0.1);"))] if self.chance(0.25) else []
        if self.chance(0.12):
            name = self.name("norm")
            clip = [Part(f"auto {name} = torch::nn::utils::clip_grad_norm_({self.parameters}, 1.0);"),
                    self.show("norm", name)]
        step = [Part("optimizer.step();")]
        how = self.pick((6, "plain"), "accumulate", "two", "guarded", "normed")
        if how == "accumulate":
            return [Part(self.pick("(loss / 2).backward();", "loss.backward();")),
                    Part("if (steps % 2 == 1) {", [*clip, *step, Part("optimizer.zero_grad();")])]
        if how == "two":
            return [zero, Part("loss.backward({}, /*retain_graph=*/true);"),
                    Part(f"auto other = {self.outlined(self.scalar(), 'torch::Tensor')} + 0.0 * out.sum();"),
                    Part("(0.3 * other).backward();"), *clip, *step]
        if how == "normed":
            return [zero, Part("loss.backward();"), *self.after_norm(step)]
        if how == "guarded":
            return [zero, Part(f"if ({self.condition()}) {{", [Part("loss.backward();"), *clip, *step])]
        return [zero, Part("loss.backward();"), *clip, *step]

    def side_effects(self):
        """What stands in the loop beside the training."""
        parts = []
        for _ in range(self.rng.choice([0, 1, 1, 2])):
            label = self.name("s")
            show = self.pick((3, lambda: self.show(label, self.outlined(self.number(), "double"))),
                             lambda: self.show(label, self.outlined(self.integer(), "int64_t"), "int64_t"),
                             lambda: self.show(label, f"({self.statistic()})", "tensor"))
            parts.append(self.pick(
                (4, show), (4, Part("if (steps % 2 == 0) {", [show])), (2, Part(f"if ({self.condition()}) {{", [show])),
                Part("switch (steps % 3) {", [Part("case 0: {", [show, Part("break;")]), Part("default: break;")])))
        return parts

    def after_loop(self, accumulators):
        parts = []
        for a in accumulators:
            parts += a.shown
            for use in self.rng.sample(a.uses, min(len(a.uses), self.rng.choice([1, 1, 2]))):
                value = use.format(a=a.name)
                if self.chance(0.15):
                    parts.append(Part(f"if ({value} > {self.constant()}) {{", [
                        Part('std::printf("above\\n");') if self.chance(0.5) else Part("++improved;")]))
                else:
                    parts.append(self.show(self.name("m"), value))
        return parts

    def evaluation(self):
        saved = self.numbers, self.integers, self.scalars
        self.numbers, self.integers, self.scalars = [], [], []
        declared = [self.accumulator() for _ in range(self.rng.choice([1, 1, 2]))]
        body = [Part(f"auto out = {self.call.format('x')};"), *self.locals()]
        for a in declared:
            body += a.update
        body += [Part("seen += x.size(0);"), Part("++batches;")]
        inner = [Part("torch::NoGradGuard no_grad;"), *[a.declaration() for a in declared],
                 Part("int64_t seen = 0, batches = 0;"), *self.loop("held_out", body), *self.after_loop(declared)]
        self.numbers, self.integers, self.scalars = saved
        if self.model_type is not None and self.chance(0.6):
            access = "net." if self.model_type == "NetImpl" else "net->"
            inner = [Part(f"{access}eval();"), *inner, Part(f"{access}train();")]
        # What is decided behind the epoch may be about these.
        use = self.rng.choice(declared[0].uses).format(a=declared[0].name)
        return [Part("double validated = 0;"), Part("{", [*inner, Part(f"validated = {use};")])]

    def case(self):
        self.passed = []  # what an epoch needs, with its type (None: a template's)
        setup = self.rows("loader", self.count, self.batch, self.pick("0.0", "0.5"), True)
        evaluates = self.chance(0.4)
        if evaluates:
            batch = self.rng.choice([2, 3, 4, 7])
            setup += self.rows("held_out", self.rng.choice([5, 6, 7, 9]), batch, "2.5", False)
        models = self.model() + self.optimizer()
        if self.chance(0.15):
            models += self.critic()
        body, declared, lasting = self.step()
        train = self.loop("loader", self.before_step() + body)
        epoch = [a.declaration() for a in declared] + [Part("int64_t seen = 0, batches = 0;")] + train
        epoch += self.after_loop(declared)
        if evaluates:
            epoch += self.evaluation()
        numbers = [use.format(a=a.name) for a in declared for use in a.uses]
        if evaluates:
            numbers += ["validated"] * (1 + len(numbers))
        setup += models
        after = []
        if self.chance(0.2):
            setup.append(Part("torch::optim::StepLR scheduler(optimizer, 1, 0.5);"))
            after.append(Part("scheduler.step();"))
        setup.append(Part("const auto table = torch::tensor({0.5, 1.0, 1.7});"))
        self.passed.append(("table", "const torch::Tensor"))
        state = [("steps", "int64_t", "0"), ("improved", "int64_t", "0"), *[(a.name, a.type, a.initial) for a in lasting]]
        text = self.arranged(setup, models, state, epoch, numbers, after)
        for a in lasting:
            use = self.rng.choice(a.uses)
            if not re.search(r"\b(seen|batches)\b", use):
                text.append(self.show(self.name("r"), use.format(a=self.prefix + a.name)))
        parameters = self.prefixed(self.parameters)
        if self.chance(0.15) and self.model_type not in (None, "NetImpl"):
            text.append(Part(f'torch::save({self.prefix}net, "case_{self.number_of_case}.pt");'))
        text += self.ending()
        text += [Part(f'std::printf("end %lld %lld %d\\n", static_cast<long long>({self.prefix}steps), '
                      f"static_cast<long long>({self.prefix}improved), static_cast<int>(history.size()));"),
                 Part('for (double h : history) std::printf("history %.10f\\n", h);'),
                 Part(f'std::printf("weights %.10f\\n", weight_sum({parameters}));')]
        return Case(self.number_of_case, self.parts, text)

    def ending(self):
        """What a run ends with, before its weights are shown."""
        return []

    def step(self):
        """The statements of a step, and the accumulators of the epoch and of the whole run."""
        forward = [Part(f"auto out = {self.call.format('x')};")]
        loss = self.loss()
        self.in_loop = True
        self.scalars.append("loss")
        body = forward + loss + self.locals()
        declared = [self.accumulator() for _ in range(self.rng.choice([0, 1, 1, 2, 3]))]
        lasting = [self.accumulator() for _ in range(self.rng.choice([0, 0, 1]))]
        updates = [part for a in declared + lasting for part in a.update]
        split = self.rng.randrange(len(updates) + 1)
        body += updates[:split] + self.side_effects() + self.update() + updates[split:]
        if self.chance(0.2) and declared + lasting:
            body += self.after_loop([self.rng.choice(declared + lasting)])
        counters = [Part("seen += x.size(0);"), Part("++batches;"), Part("++steps;")]
        at = len(forward) + len(loss) if self.chance(0.3) else len(body)
        return body[:at] + counters + body[at:], declared, lasting

    def before_step(self):
        """What may change the batch, or pass it over."""
        return self.pick(
            (10, lambda: []),
            lambda: [Part(f"if (x.size(0) < {self.rng.choice([2, self.batch])}) continue;")],
            lambda: [Part("x = x + 0.1 * torch::randn({x.size(0), 4});")],
            lambda: [Part("x = x * (1 + 0.1 * torch::rand({x.size(0), 1}));")],
            lambda: [Part("x = x + 0.1 * torch::randn({4});")],
            lambda: [Part("x += 0.1 * torch::randn({x.size(0), 4});")],
            lambda: [Part("x *= 1 + 0.1 * torch::randn_like(x);")],
            lambda: [Part("x = x.clone();"), Part("x.add_(0.1 * torch::rand({x.size(0), 1}));")],
            lambda: [Part("x = x.clone();"), Part("x /= x.norm(2, 1, true) + 1;")],
            lambda: [Part("if (torch::rand({1}).item<double>() < 0.5) x = x * 0.5;")],
            lambda: [Part("const double coin = torch::rand({}).item<double>();"), Part("if (coin < 0.4) x = -x;")],
            lambda: [Part(f"x = x.view({{{self.batch}, 2, 2}}).flatten(1);")] if self.risky(1) else [],
            lambda: [Part("x = x.view({x.size(0), 2, 2}).flatten(1);")])

    def critic(self):
        """A second model with its optimizer; `judge()` trains it."""
        self.passed += [("critic", "torch::nn::Linear"), ("critic_optimizer", "torch::optim::SGD")]
        self.has_critic = True
        return [Part(f"torch::nn::Linear critic({self.columns}, 1);"),
                Part("torch::optim::SGD critic_optimizer(critic->parameters(), 0.05);")]

    # --- where an epoch stands

    def arranged(self, setup, models, state, epoch, numbers, after):
        """The run's text: an epoch in its loop, in a function, in a lambda, or in a class with the state as members."""
        self.prefix = ""
        local = [Part("double best = std::numeric_limits<double>::max();"), Part("std::vector<double> history;")]
        variables = [Part(f"{type} {name} = {initial};") for name, type, initial in state]
        where = self.pick((4, "inline"), "function", "lambda", "class")
        if where == "class" and (self.model_type is None or len(models) > 2):
            where = "function"
        loop = f"for (int epoch = 0; epoch < {self.epochs}; ++epoch) {{"
        if where == "inline":
            return setup + variables + local + [Part(loop, epoch + self.decisions(numbers) + after)]
        result = self.rng.choice(numbers) if numbers else "static_cast<double>(seen)"
        epoch = epoch + [Part(f"return {result};")]
        passed = self.passed + [("optimizer", None)] + self.model_variables
        decide = self.decisions(["result"]) + after
        if where == "lambda":
            capture = Part("auto train = [&]() -> double {", epoch, "};")
            return setup + variables + local + [capture, Part(loop, [Part("const double result = train();"), *decide])]
        for part in epoch:
            for sub in part.all():
                sub.head = re.sub(r"\.(item|to|data_ptr)<", r".template \1<", sub.head)
        name = self.name("train")
        if where == "function":
            types = [f"typename T{i}" for i, (_, type) in enumerate(passed) if type is None]
            parameters = [f"{type or f'T{i}'}& {n}" for i, (n, type) in enumerate(passed)]
            parameters += [f"{type}& {n}" for n, type, _ in state]
            self.parts.append(Part(f"template <{', '.join(types)}>\ndouble {name}({', '.join(parameters)}) {{", epoch))
            call = ", ".join([n for n, _ in passed] + [n for n, _, _ in state])
            return setup + variables + local + [Part(loop, [Part(f"const double result = {name}({call});"), *decide])]
        # A class: model and optimizer are made in its constructor.
        model, optimizer = models[-2].head, models[-1].head
        made = re.match(r".*?net\((.*)\);", model)
        made = f"net({made.group(1)})" if made else "net(std::make_shared<NetImpl>())" if "shared" in model else "net()"
        options = re.match(r"torch::optim::\w+ optimizer\((.*)\);", optimizer).group(1)
        loaders = [n for n, _ in self.passed]
        self.parts.append(Part("struct Trainer {", [
            Part(f"Trainer() : {made}, optimizer({options}) {{}}"),
            Part(f"template <{', '.join(f'typename T{i}' for i in range(len(loaders)))}>\n"
                 f"double train({', '.join(f'T{i}& {n}' for i, n in enumerate(loaders))}) {{", epoch),
            Part(f"{self.model_type} net;"), Part(f"torch::optim::{self.optimizer_type} optimizer;"), *variables], "};"))
        self.prefix = "trainer."
        setup = [part for part in setup if part not in models] + [Part("Trainer trainer;")]
        for sub in (sub for part in decide for sub in part.all()):
            sub.head = self.prefixed(sub.head)
        for part in setup + decide:
            for sub in part.all():
                sub.head = re.sub(r"(?<![\w.:])(optimizer|improved)\b(?!\.param_groups\(\)\w)", r"trainer.\1", sub.head)
        # The schedule needs the optimizer.
        setup.sort(key=lambda part: "scheduler(" in part.head)
        return setup + local + [Part(loop, [Part(f"const double result = trainer.train({', '.join(loaders)});"), *decide])]
