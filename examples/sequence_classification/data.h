#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <string>
#include <vector>

// Number of distinct tokens; token 0 is padding.
constexpr int64_t kVocabularySize = 4096;

// Every sentence is cut or padded to this number of tokens.
constexpr int64_t kMaxLength = 64;

// Turns a sentence into the hashes of its character trigrams.
torch::Tensor tokenize(const std::string& sentence);

// Sentences with the language that they are written in, read from a file with
// one "language<TAB>sentence" a line.
class SentenceDataset : public torch::data::datasets::Dataset<SentenceDataset> {
 public:
  // Reads at most `limit` lines, all if it is 0. The languages of `labels`
  // keep their numbers, new ones are added at the end.
  SentenceDataset(const std::string& path, size_t limit,
                  std::vector<std::string>& labels);

  torch::data::Example<> get(size_t index) override;
  torch::optional<size_t> size() const override;

 private:
  torch::Tensor tokens_;
  torch::Tensor labels_;
};
