#include <accelerate/accelerate.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <torch/torch.h>

#include <cstring>
#include <fstream>
#include <sstream>
#include <string>

#include "temporary_folder.h"
#include "toys.h"

namespace {

using accelerate::NamedTensors;

std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

void write(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

/// A file of the format, put together by hand.
std::string file_of(const std::string& header, const std::string& data) {
  const uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof(length)) + header + data;
}

bool exists(const std::string& path) {
  struct stat status{};
  return stat(path.c_str(), &status) == 0;
}

TEST(Safetensors, WritesTheFormat) {
  TemporaryFolder folder;
  if (!accelerate::Accelerator().is_main_process()) {
    return;
  }
  const std::string path = folder / "x.safetensors";
  const auto x = torch::tensor({1.0F, -2.0F, 0.5F}), y = torch::tensor({{1, 2}, {3, 4}}, torch::kUInt8).t();
  accelerate::save_safetensors({{"b \"quoted\"", y}, {"a", x}}, path);
  // The bytes, computed by hand: wide types first, row by row, the header padded to eight bytes.
  std::string header = R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[3],"data_offsets":[0,12]},)"
                       R"("b \"quoted\"":{"dtype":"U8","shape":[2,2],"data_offsets":[12,16]}})";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  const float floats[] = {1.0F, -2.0F, 0.5F};
  const std::string data = std::string(reinterpret_cast<const char*>(floats), 12) + std::string("\1\3\2\4", 4);
  EXPECT_EQ(read(path), file_of(header, data));
}

TEST(Safetensors, EveryTypeComesBack) {
  TemporaryFolder folder;
  if (!accelerate::Accelerator().is_main_process()) {
    return;
  }
  NamedTensors tensors;
  for (const auto type : {torch::kBool, torch::kUInt8, torch::kInt8, torch::kInt16, torch::kInt32, torch::kInt64,
                          torch::kFloat16, torch::kBFloat16, torch::kFloat32, torch::kFloat64, torch::kComplexFloat,
                          torch::kFloat8_e4m3fn, torch::kFloat8_e5m2, torch::kUInt16, torch::kUInt32, torch::kUInt64}) {
    tensors.emplace_back(c10::toString(type), torch::arange(6).reshape({2, 3}).to(type));
  }
  tensors.emplace_back("empty", torch::empty({0, 4}));
  tensors.emplace_back("scalar", torch::scalar_tensor(3.25));
  tensors.emplace_back("slice", torch::arange(24.0).reshape({4, 6}).slice(1, 1, 6, 2));
  accelerate::save_safetensors(tensors, folder / "all", {{"who", "me"}});
  const auto back = accelerate::load_safetensors(folder / "all");
  EXPECT_EQ(back.metadata.at("who"), "me");
  ASSERT_EQ(back.tensors.size(), tensors.size());
  for (const auto& [name, tensor] : tensors) {
    const auto& x = back.tensors.at(name);
    ASSERT_EQ(x.scalar_type(), tensor.scalar_type());
    ASSERT_EQ(x.sizes(), tensor.sizes());
    EXPECT_EQ(std::memcmp(x.data_ptr(), tensor.contiguous().data_ptr(), x.nbytes()), 0) << name;
  }
}

TEST(Safetensors, WhatCantBeWrittenIsNamedAndLeavesNothing) {
  TemporaryFolder folder;
  const auto sparse = torch::eye(2).to_sparse();
  EXPECT_NE(
      toys::error_of([&] { accelerate::save_safetensors({{"s", sparse}}, folder / "f"); }).find("`s` isn't dense"),
      std::string::npos);
  EXPECT_NE(toys::error_of([&] {
              accelerate::save_safetensors({{"t", torch::ones({1})}, {"t", torch::ones({1})}}, folder / "f");
            }).find("`t` has a name that is taken"),
            std::string::npos);
  EXPECT_NE(toys::error_of([&] { accelerate::save_safetensors({}, folder / "no/such/folder"); }).find("No such file"),
            std::string::npos);
  EXPECT_FALSE(exists(folder / "f"));
}

TEST(Safetensors, HostileFilesAreRefused) {
  TemporaryFolder folder;
  const std::string path = folder / ("hostile" + std::to_string(accelerate::Accelerator().process_index()));
  const auto tensor = [](const std::string& shape, const std::string& offsets, const std::string& type = "F32") {
    return R"({"w":{"dtype":")" + type + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}";
  };
  const std::string data(8, '\1');
  const struct {
    std::string bytes, says;
  } cases[] = {
      {"", "it has 0 bytes"},
      {"1234567", "it has 7 bytes"},
      {std::string(8, '\xff') + "{}", "its header would have"},
      {std::string("\x10\0\0\0\0\0\0\0", 8) + "{}", "its header would have 16 bytes"},
      {file_of("", ""), "no header"},
      {file_of("[]", ""), "no header"},
      {file_of("{", ""), "isn't JSON"},
      {file_of("{\"a\":\xff}", ""), "isn't JSON"},
      {file_of(std::string(5000, '['), ""), "no header"},
      {file_of("{\"a\":" + std::string(5000, '['), ""), "is no safetensors file"},
      {file_of(R"({"w":1})", ""), "lacks its shape"},
      {file_of(tensor("[2]", "[0,8]", "F99"), data), "of a type"},
      {file_of(tensor("[2]", "[0]"), data), "lies outside"},
      {file_of(tensor("[2]", "[8,0]"), data), "lies outside"},
      {file_of(tensor("[2]", "[0,80]"), data), "lies outside"},
      {file_of(tensor("[2]", "[0,18446744073709551615]"), data), "lies outside"},
      {file_of(tensor("[-2]", "[0,8]"), data), "no natural number"},
      {file_of(tensor("[2.0]", "[0,8]"), data), "no natural number"},
      {file_of(tensor("[3]", "[0,8]"), data), "doesn't fit its bytes"},
      {file_of(tensor("[4611686018427387905,4]", "[0,8]"), data), "impossible shape"},
      {file_of(tensor("[18446744073709551615]", "[0,8]"), data), "impossible shape"},
      {file_of(tensor("[1]", "[0,4]"), data), "belong to no tensor"},
      {file_of(tensor("[1]", "[4,8]"), data), "overlap or leave holes"},
      {file_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[1],)"
               R"("data_offsets":[4,8]}})",
               data),
       "overlap or leave holes"},
      {file_of(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],)"
               R"("data_offsets":[4,8]}})",
               data),
       "has a name twice"},
      {file_of(R"({"__metadata__":{"format":1},"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", data),
       "aren't strings"},
  };
  for (const auto& c : cases) {
    write(path, c.bytes);
    const std::string error = toys::error_of([&] { accelerate::load_safetensors(path); });
    EXPECT_NE(error.find(c.says), std::string::npos) << c.bytes.substr(0, 120) << "\n" << error;
    EXPECT_NE(error.find(path), std::string::npos) << error;
  }
  write(path, file_of(tensor("[2]", "[0,8]"), data));
  EXPECT_EQ(accelerate::load_safetensors(path).tensors.at("w").numel(), 2);
}

TEST(Safetensors, EveryTruncationOfAFileIsRefused) {
  TemporaryFolder folder;
  if (!accelerate::Accelerator().is_main_process()) {
    return;
  }
  accelerate::save_safetensors({{"w", torch::ones({3})}}, folder / "whole");
  const std::string bytes = read(folder / "whole");
  for (size_t size = 0; size < bytes.size(); ++size) {
    write(folder / "part", bytes.substr(0, size));
    EXPECT_THROW(accelerate::load_safetensors(folder / "part"), c10::Error) << size;
  }
}

struct TiedImpl : torch::nn::Module {
  TiedImpl() {
    encoder = register_module("encoder", torch::nn::Linear(torch::nn::LinearOptions(5, 5).bias(false)));
    decoder = register_module("decoder", torch::nn::Linear(torch::nn::LinearOptions(5, 5).bias(false)));
    decoder->weight = decoder->register_parameter("tied", encoder->weight);
    norm = register_module("norm", torch::nn::BatchNorm1d(5));
  }
  torch::nn::Linear encoder{nullptr}, decoder{nullptr};
  torch::nn::BatchNorm1d norm{nullptr};
};
TORCH_MODULE(Tied);

TEST(Safetensors, ModelsComeBackWholeOrInShards) {
  accelerate::Accelerator accelerator;
  TemporaryFolder folder;
  torch::manual_seed(1);
  Tied model;
  accelerator.prepare(model);
  for (const std::string size : {"10GB", "130B", "0.2 KiB", "1B", "10GB"}) {
    accelerator.save_model(model, folder / "m", size);
    const bool whole = size == "10GB";
    EXPECT_EQ(exists(folder / "m/model.safetensors"), whole);
    EXPECT_EQ(exists(folder / "m/model.safetensors.index.json"), !whole);
    accelerator.wait_for_everyone();
    Tied other;
    accelerate::load_checkpoint_in_model(other, folder / "m");
    EXPECT_EQ(toys::distance(other->parameters(), model->parameters()), 0) << size;
    EXPECT_EQ(toys::distance(other->buffers(), model->buffers()), 0) << size;
    accelerator.wait_for_everyone();
  }
  EXPECT_FALSE(exists(folder / "m/model-00001-of-00002.safetensors"));  // shards of earlier saves are gone
  const auto file = accelerate::load_safetensors(folder / "m/model.safetensors");
  EXPECT_EQ(file.tensors.count("decoder.tied"), 0U);  // written once, under its first name
  EXPECT_EQ(file.metadata.at("decoder.tied"), "encoder.weight");
  EXPECT_EQ(file.tensors.count("norm.running_mean"), 1U);
  EXPECT_EQ(file.tensors.at("norm.num_batches_tracked").scalar_type(), torch::kInt64);

  torch::nn::Linear wrong(5, 4);
  EXPECT_NE(toys::error_of([&] { accelerate::load_checkpoint_in_model(wrong, folder / "m"); }).find("`weight`"),
            std::string::npos);
  EXPECT_THROW(accelerator.save_model(model, folder / "m", "a lot"), c10::Error);
}

TEST(Safetensors, SaveModelFailsOnAllRanks) {
  accelerate::Accelerator accelerator;
  TemporaryFolder folder;
  if (accelerator.is_main_process()) {
    write(folder / "file", "in the way");
  }
  accelerator.wait_for_everyone();
  torch::nn::Linear model(2, 2);
  const std::string error = toys::error_of([&] { accelerator.save_model(model, folder / "file/model"); });
  EXPECT_NE(error.find("file"), std::string::npos) << error;
  EXPECT_NE(error.find("can't make the folder"), std::string::npos) << error;
}

}  // namespace
