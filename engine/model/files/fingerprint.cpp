#include "engine/model/files/fingerprint.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "base/fnv1a.h"

namespace vigil::model {
namespace {

constexpr std::array<std::string_view, 3> kTexts = {"config.json", "preprocessor_config.json",
                                                    "tokenizer.json"};
/// Smaller files are read whole. Tokenizers have some MiB.
constexpr std::uintmax_t kWhole = 32 << 20;
constexpr std::uintmax_t kSample = 64 << 10;
constexpr std::uintmax_t kSamples = 64;

void add_range(std::uint64_t& hash, std::ifstream& file, std::uintmax_t from, std::uintmax_t size) {
  std::string bytes(size, '\0');
  file.seekg(static_cast<std::streamoff>(from));
  file.read(bytes.data(), static_cast<std::streamsize>(size));
  hash = base::fnv1a(bytes, hash);
}

void add(std::uint64_t& hash, const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  if (!file || error) throw std::runtime_error(path.string() + ": cannot be read");
  hash = base::fnv1a(std::to_string(size) + '\n', hash);
  if (size <= kWhole) {
    add_range(hash, file, 0, size);
  } else {
    for (std::uintmax_t i = 0; i < kSamples; ++i)
      add_range(hash, file, (size - kSample) / (kSamples - 1) * i, kSample);
    add_range(hash, file, size - kSample, kSample);
  }
  if (!file) throw std::runtime_error(path.string() + ": cannot be read");
}

}  // namespace

std::string fingerprint(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const std::string_view name : kTexts)
    if (std::filesystem::exists(folder / name)) files.push_back(folder / name);
  std::vector<std::filesystem::path> weights;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".safetensors") weights.push_back(entry.path());
  std::ranges::sort(weights);
  files.insert(files.end(), weights.begin(), weights.end());
  std::uint64_t hash = base::kFnv1aStart;
  for (const std::filesystem::path& file : files) add(hash, file);
  std::array<char, 17> digits{};
  std::snprintf(digits.data(), digits.size(), "%016lx", hash);
  return digits.data();
}

}  // namespace vigil::model
