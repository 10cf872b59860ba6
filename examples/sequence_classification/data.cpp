#include "data.h"

#include <algorithm>
#include <fstream>
#include <stdexcept>

torch::Tensor tokenize(const std::string& sentence) {
  const std::string text = " " + sentence + " ";
  auto tokens = torch::zeros({kMaxLength}, torch::kLong);
  auto values = tokens.accessor<int64_t, 1>();
  for (int64_t i = 0;
       i < kMaxLength && i + 3 <= static_cast<int64_t>(text.size()); ++i) {
    uint32_t hash = 2166136261u;
    for (int64_t j = i; j < i + 3; ++j) {
      hash = (hash ^ static_cast<unsigned char>(text[j])) * 16777619u;
    }
    values[i] = 1 + hash % (kVocabularySize - 1);
  }
  return tokens;
}

SentenceDataset::SentenceDataset(const std::string& path, size_t limit,
                                 std::vector<std::string>& labels) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot open " + path);

  std::vector<torch::Tensor> sentences;
  std::vector<int64_t> languages;
  std::string line;
  while (std::getline(file, line)) {
    const auto tab = line.find('\t');
    if (tab == std::string::npos) continue;
    const auto language = line.substr(0, tab);
    auto label = std::find(labels.begin(), labels.end(), language);
    if (label == labels.end()) label = labels.insert(labels.end(), language);
    languages.push_back(label - labels.begin());
    sentences.push_back(tokenize(line.substr(tab + 1)));
    if (sentences.size() == limit) break;
  }
  if (sentences.empty()) throw std::runtime_error("nothing to read in " + path);
  tokens_ = torch::stack(sentences);
  labels_ = torch::tensor(languages);
}

torch::data::Example<> SentenceDataset::get(size_t index) {
  const auto i = static_cast<int64_t>(index);
  return {tokens_[i], labels_[i]};
}

torch::optional<size_t> SentenceDataset::size() const {
  return tokens_.size(0);
}
