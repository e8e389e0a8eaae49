// What is told about the past (docs/memory.md), as people read it. Takes whatever came over the wire: a key
// that is missing, or is not what it should be, is left out.
#pragma once

#include <optional>
#include <string>

namespace vigil::fleet {

/// The same JSON on many lines; nothing unless it is JSON of at most 32 levels.
std::optional<std::string> indented(const std::string& body);

// Nothing for what is no such body. Without the last line's end.

struct AnswerLine {
  /// What is the answer, how likely it is, when, and of how much of the time; or why nobody knows. Times are
  /// in UTC, and say so.
  std::string text;
  /// Whether nothing was there to be looked at.
  bool is_unknown = false;
};
std::optional<AnswerLine> answer_line(const std::string& body);
/// A row a camera that is remembered.
std::optional<std::string> memory_table(const std::string& body);
struct VerifiedTable {
  std::string text;
  /// Whether there is anything that cannot be read.
  bool is_damaged = false;
  /// Whether a node that may have some does not answer.
  bool is_partial = false;
};
std::optional<VerifiedTable> verified_table(const std::string& body);
std::optional<std::string> erasure_line(const std::string& body);
/// How far an answer has come: "3 of 12 windows".
std::optional<std::string> progress_line(const std::string& body);

}  // namespace vigil::fleet
