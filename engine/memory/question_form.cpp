#include "engine/memory/question_form.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace vigil::memory {
namespace {

constexpr std::array<std::string_view, 20> kVerbs{
    "is",  "are",   "was",  "were",  "does",  "do",     "did",    "has",     "have",    "had",
    "can", "could", "will", "would", "isn't", "aren't", "wasn't", "weren't", "doesn't", "didn't"};

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first == std::string_view::npos ? std::string_view() : text.substr(first);
}

/// Takes the first word off, in small letters.
std::string take_word(std::string_view& text) {
  text = trimmed(text);
  const std::size_t end = std::min(text.find_first_of(" \t\r\n"), text.size());
  std::string word(text.substr(0, end));
  std::transform(word.begin(), word.end(), word.begin(),
                 [](char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); });
  text.remove_prefix(end);
  return word;
}

bool begins_with_a_verb(std::string_view text) {
  return std::find(kVerbs.begin(), kVerbs.end(), take_word(text)) != kVerbs.end();
}

}  // namespace

QuestionForm form_of(std::string_view question) {
  if (begins_with_a_verb(question)) return {Wanted::whether, std::string(trimmed(question))};
  std::string_view rest = question;
  if (take_word(rest) == "when" && begins_with_a_verb(rest)) {
    std::string about(trimmed(rest));
    about.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(about.front())));
    return {Wanted::when, std::move(about)};
  }
  return {Wanted::words, "Can this be answered by what the video shows: " + std::string(trimmed(question))};
}

}  // namespace vigil::memory
