#include "text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <string_view>

namespace accelerate::launch {

namespace {

constexpr std::size_t kShown = 120;  // characters of a line

bool IsDigit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

std::vector<std::string_view> Lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of("\r\n"), text.size());
    const std::string_view line = text.substr(0, end);
    if (line.find_first_not_of(" \t\v\f") != std::string_view::npos) lines.push_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

// The length of the number that `text` begins with; 0 if none.
std::size_t NumberLength(std::string_view text) {
  const auto digits = [&](std::size_t from) {
    while (from < text.size() && IsDigit(text[from])) ++from;
    return from;
  };
  const std::size_t begin = !text.empty() && (text[0] == '-' || text[0] == '+') ? 1 : 0;
  if (text.substr(begin, 3) == "nan" || text.substr(begin, 3) == "inf") {
    const bool word = begin + 3 < text.size() && std::isalpha(static_cast<unsigned char>(text[begin + 3])) != 0;
    return word ? 0 : begin + 3;
  }
  std::size_t end = digits(begin);
  if (end == begin) return 0;
  if (end < text.size() && text[end] == '.') end = digits(end + 1);
  if (end < text.size() && (text[end] == 'e' || text[end] == 'E')) {
    std::size_t exponent = end + 1;
    if (exponent < text.size() && (text[exponent] == '-' || text[exponent] == '+')) ++exponent;
    if (digits(exponent) > exponent) end = digits(exponent);
  }
  return end;
}

struct Piece {
  bool is_number = false;
  std::string text;  // of words: without spaces
};

std::vector<Piece> Pieces(std::string_view line) {
  std::vector<Piece> pieces;
  char before = ' ';
  while (!line.empty()) {
    const bool in_word = std::isalpha(static_cast<unsigned char>(before)) != 0;
    const std::size_t length = in_word && !IsDigit(line[0]) ? 0 : NumberLength(line);
    if (length > 0) {
      pieces.push_back({true, std::string(line.substr(0, length))});
      before = line[length - 1];
      line.remove_prefix(length);
      continue;
    }
    if (std::isspace(static_cast<unsigned char>(line[0])) == 0) {
      if (pieces.empty() || pieces.back().is_number) pieces.emplace_back();
      pieces.back().text += line[0];
    }
    before = line[0];
    line.remove_prefix(1);
  }
  return pieces;
}

bool IsInteger(const std::string& number) { return number.find_first_not_of("+-0123456789") == std::string::npos; }

double Relative(double a, double b) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return 0;
  if (!std::isfinite(a) || !std::isfinite(b)) return std::numeric_limits<double>::infinity();
  return std::abs(a - b) / std::max(std::abs(a), std::abs(b));
}

// Digits without the zeros in front, of a number without an exponent.
std::size_t SignificantDigits(const std::string& number) {
  if (number.find_first_of("eE") != std::string::npos) return 0;
  std::string digits;
  std::copy_if(number.begin(), number.end(), std::back_inserter(digits),
               [](unsigned char c) { return std::isdigit(c); });
  return digits.size() - std::min(digits.find_first_not_of('0'), digits.size());
}

// What rounding to the printed digits may add. With fewer than four decimals, and fewer than the six digits that a
// stream prints if nothing else is asked for (of which it drops zeros at the end), it would hide real differences.
double LastDigit(const std::string& a, const std::string& b) {
  const auto decimals = [](const std::string& number) {
    const std::size_t point = number.find('.');
    return point == std::string::npos || number.find_first_of("eE") != std::string::npos ? 0
                                                                                         : number.size() - point - 1;
  };
  const auto [fewest, most] = std::minmax({decimals(a), decimals(b)});
  const bool six = most > 0 && std::max(SignificantDigits(a), SignificantDigits(b)) >= 6;
  const std::size_t last = fewest >= 4 ? fewest : six ? most : 0;
  return last > 0 ? 1.001 * std::pow(10.0, -static_cast<double>(last)) : 0;
}

std::string Shorten(std::string_view line) {
  return line.size() <= kShown ? std::string(line) : std::string(line.substr(0, kShown)) + "...";
}

// Why two pieces aren't the same; empty if they are.
std::string ComparePieces(const Piece& a, const Piece& b, double tolerance, double& largest, double& ratio) {
  if (a.is_number != b.is_number || (!a.is_number && a.text != b.text)) return "other text";
  if (!a.is_number) return "";
  const double x = std::strtod(a.text.c_str(), nullptr);
  const double y = std::strtod(b.text.c_str(), nullptr);
  const double difference = Relative(x, y);
  const bool integers = IsInteger(a.text) && IsInteger(b.text);
  const bool near = difference <= tolerance || std::abs(x - y) <= LastDigit(a.text, b.text);
  if (integers ? x == y : near) {
    largest = std::max(largest, difference);
    return "";
  }
  ratio = y / x;
  return fmt::format("{} became {} (relative difference {:.1e})", a.text, b.text, difference);
}

}  // namespace

std::optional<TextDifference> CompareText(const std::string& original, const std::string& migrated, double tolerance,
                                          double& largest) {
  const std::vector<std::string_view> before = Lines(original);
  const std::vector<std::string_view> after = Lines(migrated);
  for (std::size_t i = 0; i < std::min(before.size(), after.size()); ++i) {
    if (before[i] == after[i]) continue;
    TextDifference difference{i + 1, Shorten(before[i]), Shorten(after[i]), "", 0};
    const std::vector<Piece> a = Pieces(before[i]);
    const std::vector<Piece> b = Pieces(after[i]);
    if (a.size() != b.size()) difference.reason = "other text";
    for (std::size_t j = 0; j < a.size() && difference.reason.empty(); ++j) {
      difference.reason = ComparePieces(a[j], b[j], tolerance, largest, difference.ratio);
    }
    if (!difference.reason.empty()) return difference;
  }
  if (before.size() == after.size()) return std::nullopt;
  const std::size_t common = std::min(before.size(), after.size());
  return TextDifference{common + 1, common < before.size() ? Shorten(before[common]) : "",
                        common < after.size() ? Shorten(after[common]) : "",
                        fmt::format("{} lines, the original has {}", after.size(), before.size()), 0};
}

std::string Mask(std::string text, const std::vector<std::regex>& masks) {
  for (const std::regex& mask : masks) text = std::regex_replace(text, mask, "<masked>");
  return text;
}

bool IsText(const std::string& content) { return content.find('\0') == std::string::npos; }

}  // namespace accelerate::launch
