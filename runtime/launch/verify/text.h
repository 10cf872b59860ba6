#pragma once

#include <optional>
#include <regex>
#include <string>
#include <vector>

namespace accelerate::launch {

/// Where two texts differ.
struct TextDifference {
  std::size_t line = 0;  // of the lines that aren't blank, from 1
  std::string original;  // that line, shortened
  std::string migrated;
  std::string reason;
  double ratio = 0;  // migrated / original, where a number differs
};

/// Compares two outputs, line by line (blank lines don't count, a carriage return ends a line): the text has to be the
/// same but for spaces, integers equal, other numbers within the relative `tolerance`, or one in the last digit where
/// four or more decimals are printed. `largest` becomes the largest relative difference.
std::optional<TextDifference> CompareText(const std::string& original, const std::string& migrated, double tolerance,
                                          double& largest);

/// The text with every match of the masks replaced by "<masked>".
std::string Mask(std::string text, const std::vector<std::regex>& masks);

/// Whether a file is one for people: no byte of it is zero.
bool IsText(const std::string& content);

}  // namespace accelerate::launch
