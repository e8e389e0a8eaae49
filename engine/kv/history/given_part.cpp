#include <string>

#include "engine/kv/history/history_store.h"
#include "engine/kv/history/record.h"

namespace vigil::history {
namespace {

std::optional<std::string> fault_of_values(const GivenPage& page) {
  if (page.values.empty()) return "it has no values";
  std::uint64_t bytes = 0;
  const GivenValue* before = nullptr;
  for (const GivenValue& value : page.values) {
    if (value.layers.count == 0) return "a value of no layers";
    if (value.bytes.empty()) return "a value without bytes";
    if (value.bytes.size() > kMostValueBytes) {
      return "a value of " + std::to_string(value.bytes.size()) + " bytes, of at most " +
             std::to_string(kMostValueBytes);
    }
    if (before != nullptr && value.layers <= before->layers) return "its values' layers do not ascend";
    before = &value;
    bytes += value.bytes.size();
  }
  if (bytes != page.info.bytes) {
    return "it is said to have " + std::to_string(page.info.bytes) + " bytes, and has " +
           std::to_string(bytes);
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> fault_of(const GivenPart& part) {
  if (part.pages.empty()) return "it has no pages";
  if (encode(PageKey{{{part.camera, part.hour}, 0}, {}, 0}).size() > kMostKeyBytes)
    return "the names of tenant and camera are too long";
  std::uint64_t bytes = 0;
  const GivenPage* before = nullptr;
  for (const GivenPage& page : part.pages) {
    const std::string name = "page " + std::to_string(page.info.number) + ": ";
    if (const auto fault = fault_of(page.info)) return name + *fault;
    if (const auto fault = fault_of_values(page)) return name + *fault;
    if (before != nullptr && page.info.number <= before->info.number) return name + "numbers do not ascend";
    before = &page;
    bytes += page.info.bytes;
  }
  if (bytes > kMostPartBytes) {
    return "it has " + std::to_string(bytes) + " bytes, of at most " + std::to_string(kMostPartBytes);
  }
  return std::nullopt;
}

}  // namespace vigil::history
