// Which of the failures that repeat themselves are worth a line in the log.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace vigil::actors {

/// What fails once for a camera mostly fails again with its next stride, for as long as nobody does anything
/// about it: a line for each would bury the rest of the log. Not thread-safe.
class FailureLog {
 public:
  /// Whether this failure is news: the camera has succeeded since the last one, or the reason is another.
  /// Reasons that differ in their numbers only are the same.
  bool failed(const std::string& camera, std::string_view reason) {
    std::string words(reason);
    std::erase_if(words, [](char c) { return c >= '0' && c <= '9'; });
    const auto [last, first] = last_.try_emplace(camera, words);
    return first || std::exchange(last->second, words) != words;
  }

  void succeeded(const std::string& camera) { last_.erase(camera); }

 private:
  std::map<std::string, std::string> last_;
};

}  // namespace vigil::actors
