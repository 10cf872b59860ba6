"""Accumulators as trainers write them: meters, maps of sums, confusion matrices, histories, running extremes."""

from program_grammar import Accumulator
from program_text import Part


class Meters:
    """Mixed into the grammar: more of what `accumulator()` gives."""

    def accumulator(self):
        if self.chance(0.6):
            return super().accumulator()
        name = self.name("a")
        value = self.outlined(self.number(), "double")
        makers = {self.class_meter: 3, self.tensor_meter: 2, self.map_of_sums: 3, self.result: 2, self.counted_classes: 3,
                  self.extremes: 2, self.moving: 1, self.first_then_smooth: 1, self.pairs: 2, self.running_mean: 1,
                  self.pair_in_tensor: 1, self.tuple: 1, self.best_step: 2, self.detached_losses: 2}
        return self.rng.choices(list(makers), list(makers.values()))[0](name, value)

    def weight(self):
        return self.pick("x.size(0)", "y.size(0)", "static_cast<int64_t>(x.size(0))")

    def class_meter(self, name, v):
        self.parts.append(Part(f"class Meter{name} {{\n public:", [
            Part("void add(double value, int64_t n = 1) {", [
                Part("sum_ += value * n;"), Part("count_ += n;"), Part("least_ = std::min(least_, value);")]),
            Part("double mean() const { return count_ > 0 ? sum_ / count_ : 0.0; }"),
            Part("double least() const { return least_; }"), Part("int64_t count() const { return count_; }"),
            Part("void reset() { *this = {}; }")],
            " private:\n  double sum_ = 0, least_ = 1e9;\n  int64_t count_ = 0;\n};"))
        update = self.pick((3, f"{name}.add({v}, {self.weight()});"), f"{name}.add({v});",
                           f"if ({self.condition()}) {name}.add({v}, {self.weight()});")
        return Accumulator(name, f"Meter{name}", "{}", [Part(update)],
                           ["{a}.mean()", "{a}.mean() * {a}.count()", "std::exp(-std::abs({a}.mean()))", "{a}.least()"])

    def tensor_meter(self, name, v):
        """A meter that is given the loss as a tensor."""
        keep = self.pick("sum += value.item<double>() * n;", "sum += value.detach().item<double>() * n;",
                         "sum += static_cast<double>(n) * value.item<double>();")
        self.parts.append(Part(f"struct Meter{name} {{", [
            Part("double sum = 0;"), Part("int64_t n_seen = 0;"),
            Part("void update(const torch::Tensor& value, int64_t n) {", [Part(keep), Part("n_seen += n;")]),
            Part("double average() const { return sum / std::max<int64_t>(n_seen, 1); }")], "};"))
        return Accumulator(name, f"Meter{name}", "{}", [Part(f"{name}.update({self.statistic()}, {self.weight()});")],
                           ["{a}.average()", "{a}.sum"])

    def map_of_sums(self, name, v):
        of = self.pick("std::map", "std::unordered_map")
        first = self.pick([Part(f'{name}["loss"] += ({v}) * x.size(0);')],
                          [Part(f'auto& entry_{name} = {name}["loss"];'), Part(f"entry_{name} += ({v}) * x.size(0);")],
                          [Part(f'{name}["loss"] = {name}["loss"] + ({v}) * x.size(0);')])
        shown = [Part(f"for (const auto& entry : {name}) {{", [Part('std::printf("%s %.10f\\n", entry.first.c_str(), entry.second);')]),
                 Part(f"for (const auto& [key, value] : {name}) std::printf(\"%s %.10f\\n\", key.c_str(), value / seen);")]
        return Accumulator(name, f"{of}<std::string, double>", "{}",
                           [*first, Part(f'{name}["count"] += x.size(0);'), Part(f'{name}["right"] += {self.integer(0)};')],
                           ['{a}["loss"] / {a}["count"]', '{a}["right"] / {a}["count"]', '{a}["loss"]'],
                           [self.rng.choice(shown)] if of == "std::map" and self.chance(0.3) else [])

    def result(self, name, v):
        """A struct of what a batch came to, and `+=`."""
        type = f"Result{name}"
        self.parts.append(Part(f"struct {type} {{", [
            Part("double loss = 0;"), Part("int64_t right = 0, count = 0;"),
            Part(f"{type}& operator+=(const {type}& other) {{", [
                Part("loss += other.loss;"), Part("right += other.right;"), Part("count += other.count;"), Part("return *this;")]),
            Part("double mean() const { return loss / count; }")], "};"))
        e, m = self.error(), self.mask()
        self.parts.append(Part(f"{type} measure_{name}(const torch::Tensor& x, const torch::Tensor& y, const torch::Tensor& out) {{", [
            Part(f"{type} result;"), Part(f"result.loss = ({e}).sum().item<double>();"),
            Part(f"result.right = {m}.sum().item<int64_t>();"), Part("result.count = x.size(0);"), Part("return result;")]))
        return Accumulator(name, type, "{}", [Part(f"{name} += measure_{name}(x, y, out);")],
                           ["{a}.mean()", "static_cast<double>({a}.right) / {a}.count", "{a}.loss"])

    def counted_classes(self, name, v):
        if self.kind != "points":
            group = f"{self.mask()}.flatten().to(torch::kLong)"
            update = self.pick(f"{name}.index_add_(0, {group}, torch::ones_like({group}));",
                               f"{name}.scatter_add_(0, {group}, torch::ones_like({group}));",
                               f"{name} += torch::bincount({group}, {{}}, 2);",
                               f"{name}.index_put_({{{group}}}, torch::ones_like({group}), true);")
            return Accumulator(name, "torch::Tensor", "torch::zeros({2}, torch::kLong)", [Part(update)],
                               ["{a}[1].item<double>() / seen", "static_cast<double>({a}[0].item<int64_t>())"])
        guess = self.pick("out.argmax(1)", "out.argmax(-1)", "std::get<1>(out.max(1))")
        update = self.pick(f"{name}.index_put_({{y, {guess}}}, torch::ones({{y.size(0)}}, torch::kLong), true);",
                           f"{name}.index_put_({{y, {guess}}}, torch::ones_like(y), /*accumulate=*/true);",
                           f"{name}.view(-1).scatter_add_(0, y * 3 + {guess}, torch::ones_like(y));",
                           f"{name}.view({{9}}).index_add_(0, y * 3 + {guess}, torch::ones_like(y));",
                           f"{name} += torch::bincount(3 * y + {guess}, {{}}, 9).view({{3, 3}});",
                           f"{name} = {name} + torch::bincount(3 * y + {guess}, {{}}, 9).reshape({{3, 3}});")
        recall = f"({name}.diagonal().to(torch::kDouble) / {name}.sum(1).clamp_min(1))"
        return Accumulator(name, "torch::Tensor", "torch::zeros({3, 3}, torch::kLong)", [Part(update)],
                           ["{a}.diagonal().sum().item<double>() / {a}.sum().item<double>()",
                            recall.replace(name, "{a}") + ".mean().item<double>()", "{a}[0][1].item<double>() / seen",
                            "static_cast<double>({a}.trace().item<int64_t>())"])

    def extremes(self, name, v):
        if self.chance(0.4):
            s = self.statistic()
            way = self.pick("minimum", "maximum")
            return Accumulator(name, "torch::Tensor", "torch::zeros({})",
                               [Part(f"{name} = torch::{way}({name}, ({s}).detach());")], ["{a}.item<double>()"])
        return Accumulator(name, "std::pair<double, double>", "{1e9, -1e9}", [
            Part(f"{name}.first = std::min<double>({name}.first, {v});"),
            Part(f"{name}.second = std::max<double>({name}.second, {v});")], ["{a}.first", "{a}.second - {a}.first"])

    def moving(self, name, v):
        return Accumulator(name, "std::deque<double>", "{}", [
            Part(f"{name}.push_back({v});"), Part(f"if ({name}.size() > 3) {name}.pop_front();")],
            ["std::accumulate({a}.begin(), {a}.end(), 0.0) / {a}.size()", "{a}.back()", "{a}.front()"])

    def first_then_smooth(self, name, v):
        return Accumulator(name, "double", "-1", [Part(self.pick(
            f"{name} = steps == 0 ? {v} : 0.9 * {name} + 0.1 * {v};",
            f"if ({name} < 0) {name} = std::abs({v}); else {name} = 0.8 * {name} + 0.2 * std::abs({v});"))], ["{a}"])

    def pairs(self, name, v):
        total = f"total_{name}"
        return Accumulator(name, "std::vector<std::pair<double, int64_t>>", "{}", [Part(self.pick(
            f"{name}.emplace_back({v}, x.size(0));", f"{name}.push_back({{{v}, x.size(0)}});"))],
            ["{a}.back().first", "static_cast<double>({a}.back().second)", "{a}[0].first * {a}[0].second"],
            [Part("{", [Part(f"double {total} = 0;"),
                        Part(f"for (const auto& [value, n] : {name}) {total} += value * n;"), self.show(self.name("m"), total)])])

    def running_mean(self, name, v):
        self.parts.append(Part(f"struct Mean{name} {{", [
            Part("double mean = 0;"), Part("int64_t n = 0;"),
            Part("void add(double value) {", [Part("++n;"), Part("mean += (value - mean) / n;")])], "};"))
        return Accumulator(name, f"Mean{name}", "{}", [Part(f"{name}.add({v});")], ["{a}.mean", "{a}.mean * {a}.n"])

    def pair_in_tensor(self, name, v):
        s = self.statistic()
        update = self.pick(f"{name} += torch::tensor({{{v}, static_cast<double>(x.size(0))}});",
                           f"{name}[0] += ({s}).detach() * x.size(0);\n{name}[1] += x.size(0);",
                           f"{name} += torch::stack({{({s}).detach(), {self.mask()}.sum().to(torch::kDouble)}});")
        return Accumulator(name, "torch::Tensor", "torch::zeros({2})", [Part(line) for line in update.split("\n")],
                           ["{a}[0].item<double>() / (1 + {a}[1].item<double>())", "{a}[1].item<double>()"])

    def tuple(self, name, v):
        return Accumulator(name, "std::tuple<double, int64_t>", "{0.0, 0}", [
            Part(f"std::get<0>({name}) += {v};"), Part(f"std::get<1>({name}) += {self.integer(0)};")],
            ["std::get<0>({a})", "static_cast<double>(std::get<1>({a})) / seen"])

    def best_step(self, name, v):
        self.parts.append(Part(f"struct Best{name} {{", [Part("double value = 1e9;"), Part("int64_t step = -1;")], "};"))
        return Accumulator(name, f"Best{name}", "{}", [Part(f"const double now_{name} = {v};"), Part(
            f"if (now_{name} < {name}.value - 1e-6) {{", [Part(f"{name}.value = now_{name};"), Part(f"{name}.step = steps;")])],
            ["{a}.value", "static_cast<double>({a}.step)"])

    def detached_losses(self, name, v):
        return Accumulator(name, "std::vector<torch::Tensor>", "{}", [Part(f"{name}.push_back(({self.statistic()}).detach());")],
                           ["torch::stack({a}).mean().item<double>()", "torch::stack({a}).sum().item<double>() / seen",
                            "{a}.back().item<double>()", "torch::stack({a}).max().item<double>()"])
