#pragma once

#include <cstddef>
#include <iomanip>
#include <iostream>
#include <string>
#include <utility>

// A line on the terminal that shows how far an epoch has come.
class ProgressBar {
 public:
  ProgressBar(std::string title, size_t total)
      : title_(std::move(title)), total_(total) {}

  ~ProgressBar() { std::cout << std::endl; }

  void advance(double loss) {
    ++done_;
    const size_t filled = kWidth * done_ / total_;
    std::cout << '\r' << title_ << " [" << std::string(filled, '=')
              << std::string(kWidth - filled, ' ') << "] " << done_ << '/'
              << total_ << " loss " << std::fixed << std::setprecision(6)
              << loss << std::flush;
  }

 private:
  static constexpr size_t kWidth = 30;

  std::string title_;
  size_t total_;
  size_t done_ = 0;
};
