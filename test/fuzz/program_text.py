"""The text of generated programs: statements in a tree, so that a reducer can leave out any of them."""

import dataclasses
import textwrap
import typing


@dataclasses.dataclass
class Part:
    """A statement, or a block of them between `head` and `tail`."""

    head: str
    parts: typing.Optional[list] = None
    tail: str = "}"

    def lines(self, without, depth=0):
        if id(self) in without:
            return
        indent = "  " * depth
        yield from textwrap.indent(self.head, indent).split("\n")
        if self.parts is not None:
            for part in self.parts:
                yield from part.lines(without, depth + 1)
            yield from textwrap.indent(self.tail, indent).split("\n")

    def all(self):
        yield self
        for part in self.parts or ():
            yield from part.all()


@dataclasses.dataclass
class Case:
    """A training function with its helpers, in a namespace of its own: `case_N::run()`."""

    number: int
    helpers: list
    body: list
    without: frozenset = frozenset()  # ids of the parts that are left out

    @property
    def name(self):
        return f"case_{self.number}"

    def text(self):
        lines = [f"namespace {self.name} {{", ""]
        for helper in self.helpers:
            before = len(lines)
            lines += helper.lines(self.without)
            lines += [""] * (len(lines) > before)
        lines.append("void run() {")
        for part in self.body:
            lines += part.lines(self.without, 1)
        return "\n".join([*lines, "}", "", f"}}  // namespace {self.name}", ""])

    def parts(self):
        """What may still be left out."""
        for part in [*self.helpers, *self.body]:
            for sub in part.all():
                if id(sub) not in self.without:
                    yield sub

    def leave_out(self, parts):
        return dataclasses.replace(self, without=self.without | {id(sub) for part in parts for sub in part.all()})


PRELUDE = """\
#include <torch/torch.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <iomanip>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <sstream>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

// Set before the models of namespace scope are made.
const bool prepared = [] {
  c10::set_default_dtype(caffe2::TypeMeta::Make<double>());
  torch::manual_seed(7);
  return true;
}();

// Rows of four numbers, and a number for each.
class Curve : public torch::data::datasets::Dataset<Curve> {
 public:
  Curve(int64_t count, double phase) {
    inputs_ = torch::sin(torch::arange(count * 4).to(torch::kDouble) * 1.7 + phase).view({count, 4});
    targets_ = torch::cos(inputs_.sum(1, true)) + 0.5 * inputs_.narrow(1, 0, 1);
  }
  torch::data::Example<> get(size_t index) override { return {inputs_[index], targets_[index]}; }
  torch::optional<size_t> size() const override { return inputs_.size(0); }
  torch::Tensor inputs() const { return inputs_; }
  torch::Tensor targets() const { return targets_; }

 private:
  torch::Tensor inputs_, targets_;
};

// The same rows, each of one of three classes.
class Points : public torch::data::datasets::Dataset<Points> {
 public:
  Points(int64_t count, double phase) {
    inputs_ = torch::sin(torch::arange(count * 4).to(torch::kDouble) * 1.3 + phase).view({count, 4});
    auto score = inputs_.select(1, 0) + 0.5 * inputs_.select(1, 1);
    labels_ = (score > -0.4).to(torch::kLong) + (score > 0.5).to(torch::kLong);
  }
  torch::data::Example<> get(size_t index) override { return {inputs_[index], labels_[index]}; }
  torch::optional<size_t> size() const override { return inputs_.size(0); }
  torch::Tensor inputs() const { return inputs_; }
  torch::Tensor targets() const { return labels_; }

 private:
  torch::Tensor inputs_, labels_;
};

// The same rows with a number for each, and whether it counts.
class Gaps : public torch::data::datasets::Dataset<Gaps> {
 public:
  Gaps(int64_t count, double phase) {
    inputs_ = torch::sin(torch::arange(count * 4).to(torch::kDouble) * 1.1 + phase).view({count, 4});
    auto counts = (torch::arange(count).remainder(3) != 1).to(torch::kDouble);
    targets_ = torch::stack({torch::cos(inputs_.sum(1)), counts}, 1);
  }
  torch::data::Example<> get(size_t index) override { return {inputs_[index], targets_[index]}; }
  torch::optional<size_t> size() const override { return inputs_.size(0); }
  torch::Tensor inputs() const { return inputs_; }
  torch::Tensor targets() const { return targets_; }

 private:
  torch::Tensor inputs_, targets_;
};

// Rows of five tokens of 1 to 5, and those that follow them: 0 behind the end, which comes early in some.
class Tokens : public torch::data::datasets::Dataset<Tokens> {
 public:
  Tokens(int64_t count, double phase) {
    auto at = torch::arange(count).unsqueeze(1) * 3 + torch::arange(6).unsqueeze(0);
    auto tokens = (at * at + at.floor_divide(4) + static_cast<int64_t>(phase * 2)).remainder(5) + 1;
    auto length = 3 + torch::arange(count).remainder(4).unsqueeze(1);
    tokens = torch::where(torch::arange(6).unsqueeze(0) < length, tokens, torch::zeros_like(tokens));
    inputs_ = tokens.narrow(1, 0, 5).contiguous();
    targets_ = tokens.narrow(1, 1, 5).contiguous();
  }
  torch::data::Example<> get(size_t index) override { return {inputs_[index], targets_[index]}; }
  torch::optional<size_t> size() const override { return inputs_.size(0); }
  torch::Tensor inputs() const { return inputs_; }
  torch::Tensor targets() const { return targets_; }

 private:
  torch::Tensor inputs_, targets_;
};

void report(const std::string& what, double value) {
  std::cout << what << " " << std::fixed << std::setprecision(10) << value << std::endl;
}

template <typename... Values>
void say(const Values&... values) {
  (std::cout << ... << values) << "\\n";
}

double weight_sum(const std::vector<torch::Tensor>& parameters) {
  double sum = 0;
  for (const auto& parameter : parameters) {
    sum += (parameter * torch::cos(parameter)).sum().item<double>();
  }
  return sum;
}

"""

MAIN = """\
bool chosen(int argc, char** argv, int number) {
  for (int i = 1; i < argc; ++i) {
    if (std::atoi(argv[i]) == number) return true;
  }
  return argc < 2;
}

int main(int argc, char** argv) {
"""


def unit(cases):
    """One program of these cases: it runs those whose numbers are its arguments, or all."""
    text = PRELUDE + "\n".join(case.text() for case in cases) + "\n" + MAIN
    for case in cases:
        text += textwrap.indent(
            f"if (chosen(argc, argv, {case.number})) {{\n"
            f'  std::printf("== case {case.number}\\n");\n'
            f"  std::fflush(stdout);\n"
            f"  torch::manual_seed({case.number});\n"
            f"  {case.name}::run();\n"
            f"  std::cout << std::flush;\n"
            f"}}\n", "  ")
    return text + "}\n"
