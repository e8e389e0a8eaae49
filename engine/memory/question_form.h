// What somebody wants to know of the past, by the words of his question.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace vigil::memory {

/// Yes or no; when it was; or whatever the model says of it in words.
enum class Wanted : std::uint8_t { whether, when, words };

struct QuestionForm {
  Wanted wanted = Wanted::whether;
  /// The yes/no question that tells whether a window has anything to do with it.
  std::string about;
  friend bool operator==(const QuestionForm&, const QuestionForm&) = default;
};

/// Of a question in English: one that begins with a verb ("Did a car stop?", "Is there …?") wants a yes or a
/// no, and is its own `about`; "When did a car stop?" is about "Did a car stop?"; of any other, the model is
/// asked whether a window shows the answer. In capitals or not.
QuestionForm form_of(std::string_view question);

}  // namespace vigil::memory
