// Numbers the histories of a registry: one that is replaced or restored from a backup begins another.
#pragma once

#include "cluster/registry/registry.h"

namespace vigil::cluster {

/// Of any answer.
inline RegistryHeader& header_of(RegistryHeader& header) {
  return header;
}
template <class T>
RegistryHeader& header_of(T& answer) {
  return answer.header;
}

/// Part of a client of a registry. Answers come in any order, so a smaller revision than another answer's
/// means nothing by itself; it does if the greater one was known before this was asked for. Not seen is a
/// registry that has passed the greatest known revision again before it answers. Not thread-safe.
class RegistryHistory {
 public:
  /// What was known when something was asked for.
  struct Asked {
    std::uint64_t history = 0;
    Revision seen = 0;
  };
  /// Whether the answer holds every change that was made before it was asked for.
  enum class Answer : std::uint8_t { current, may_lag };

  Asked ask() const { return {current_, seen_}; }

  /// The header with its history. An answer to what was asked for in an earlier history keeps that one's
  /// number.
  RegistryHeader answered(const Asked& asked, RegistryHeader header, Answer answer);

  std::uint64_t current() const { return current_; }

 private:
  std::uint64_t current_ = 1;
  std::uint64_t cluster_ = 0;
  Revision seen_ = 0;
};

}  // namespace vigil::cluster
