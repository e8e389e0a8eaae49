#include "actors/evidence/lived_ages.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <string_view>

#include "base/durable.h"
#include "base/sealed_text.h"

namespace vigil::actors {

LivedAges read_lived_ages(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  const auto whole = base::unsealed(text);
  if (!whole) return {};
  std::string_view lines = *whole;
  LivedAges ages;
  while (!lines.empty()) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(std::min(line.size() + 1, lines.size()));
    std::int64_t milliseconds = 0;
    const auto [rest, error] = std::from_chars(line.data(), line.data() + line.size(), milliseconds);
    const auto digits = static_cast<std::size_t>(rest - line.data());
    if (error != std::errc() || digits == line.size() || *rest != ' ' || milliseconds < 0) return {};
    ages[std::string(line.substr(digits + 1))] = base::Duration(milliseconds);
  }
  return ages;
}

void write_lived_ages(const std::filesystem::path& file, const LivedAges& ages) {
  std::string text;
  for (const auto& [name, age] : ages)
    if (name.find('\n') == std::string::npos) text += std::to_string(age.count()) + ' ' + name + '\n';
  base::NewFile written(file);
  written.write(base::sealed(text));
  written.commit();
}

}  // namespace vigil::actors
