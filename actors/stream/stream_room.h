// Whether what cameras' streams want to keep between windows has room in the cache together.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace vigil::actors {

/// Without room, streams take each other's pages, and windows are computed whole again and again, as if
/// nothing had been kept. Tokens are known from windows that were asked: how much pruning leaves, no
/// configuration tells. Not thread-safe.
class StreamRoom {
 public:
  /// A camera's window of so many visual tokens was asked, and its stream wants to keep them. A line, if all
  /// streams together have no room in `most` tokens; once, until they have it again with a tenth to spare.
  std::optional<std::string> hear(const std::string& camera, std::int64_t tokens, std::int64_t most);
  /// It keeps nothing, or has ended.
  void forget(const std::string& camera);

 private:
  /// Tokens of each.
  std::map<std::string, std::int64_t> cameras_;
  std::int64_t wanted_ = 0;
  bool is_told_ = false;
};

}  // namespace vigil::actors
