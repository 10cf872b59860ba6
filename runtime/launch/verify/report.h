#pragma once

#include <string>

#include "result.h"

namespace accelerate::launch {

/// The table for the terminal.
std::string TextReport(const Report& report);

/// One document; README.md describes it.
std::string JsonReport(const Report& report);

/// A page that needs nothing else: the table, and curves of the losses and of their differences.
std::string HtmlReport(const Report& report);

/// "alone", "2 ranks".
std::string RunTitle(const RunReport& run);

std::string OutcomeName(Outcome outcome);

}  // namespace accelerate::launch
