#pragma once

// Archives, and what is saved to and loaded from files.

#include <functional>
#include <istream>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include <torch/autograd.h>

namespace torch {
namespace serialize {

class OutputArchive final {
 public:
  explicit OutputArchive();
  OutputArchive(OutputArchive&&) = default;
  OutputArchive& operator=(OutputArchive&&) = default;
  OutputArchive(OutputArchive&) = delete;
  OutputArchive& operator=(OutputArchive&) = delete;
  void write(const std::string& key, const IValue& ivalue);
  void write(const std::string& key, const Tensor& tensor, bool is_buffer = false);
  void write(const std::string& key, OutputArchive& nested_archive);
  void save_to(const std::string& filename);
  void save_to(std::ostream& stream);
  void save_to(const std::function<size_t(const void*, size_t)>& func);
};

class InputArchive final {
 public:
  InputArchive();
  InputArchive(InputArchive&&) = default;
  InputArchive& operator=(InputArchive&&) = default;
  InputArchive(InputArchive&) = delete;
  InputArchive& operator=(InputArchive&) = delete;
  void read(const std::string& key, IValue& ivalue);
  bool try_read(const std::string& key, IValue& ivalue);
  bool try_read(const std::string& key, Tensor& tensor, bool is_buffer = false);
  void read(const std::string& key, Tensor& tensor, bool is_buffer = false);
  bool try_read(const std::string& key, InputArchive& archive);
  void read(const std::string& key, InputArchive& archive);
  void load_from(const std::string& filename, std::optional<torch::Device> device = std::nullopt);
  void load_from(std::istream& stream, std::optional<torch::Device> device = std::nullopt);
  void load_from(const char* data, size_t size, std::optional<torch::Device> device = std::nullopt);
  void load_from(const std::function<size_t(uint64_t pos, void* buf, size_t nbytes)>& read_func,
                 const std::function<size_t(void)>& size_func, std::optional<torch::Device> device = std::nullopt);
  std::vector<std::string> keys();
};

}  // namespace serialize

template <typename Value, typename... SaveToArgs>
void save(const Value& value, SaveToArgs&&... args) {}  // a lambda as an argument wants a definition
template <typename... SaveToArgs>
void save(const std::vector<torch::Tensor>& tensor_vec, SaveToArgs&&... args) {}
std::vector<char> pickle_save(const torch::IValue& ivalue);
torch::IValue pickle_load(const std::vector<char>& data);
template <typename Value, typename... LoadFromArgs>
void load(Value& value, LoadFromArgs&&... args) {}
template <typename... LoadFromArgs>
void load(std::vector<torch::Tensor>& tensor_vec, LoadFromArgs&&... args) {}

}  // namespace torch
