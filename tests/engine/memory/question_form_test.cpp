#include "engine/memory/question_form.h"

#include <string>

#include <gtest/gtest.h>

namespace vigil::memory {
namespace {

const std::string kInWords = "Can this be answered by what the video shows: ";

TEST(QuestionFormTest, AVerbWantsYesOrNo) {
  for (const char* question : {"Did a car stop?", "Is there a person in the room?", "WERE the lights on?",
                               "isn't the gate open?", "Has\tanybody come?", "do", "Is"})
    EXPECT_EQ(form_of(question), (QuestionForm{Wanted::whether, question}));
}

TEST(QuestionFormTest, WhenIsAboutTheRest) {
  EXPECT_EQ(form_of("When did a car stop?"), (QuestionForm{Wanted::when, "Did a car stop?"}));
  EXPECT_EQ(form_of("when  WAS it dark?"), (QuestionForm{Wanted::when, "WAS it dark?"}));
  EXPECT_EQ(form_of("\n When\n is it?"), (QuestionForm{Wanted::when, "Is it?"}));
}

TEST(QuestionFormTest, AnyOtherWantsWords) {
  // No verb follows at once, or none at all.
  for (const std::string question :
       {"What did the man carry?", "When", "When?", "When  ", "When the car came, did it stop?",
        "Whenever did it come?", "Isis?", "Was?", "\xff\xfe", "\xc3\x84hm", ""})
    EXPECT_EQ(form_of(question), (QuestionForm{Wanted::words, kInWords + question})) << question;
  EXPECT_EQ(form_of(" \t\r\n"), (QuestionForm{Wanted::words, kInWords}));
  EXPECT_EQ(form_of("  who came?"), (QuestionForm{Wanted::words, kInWords + "who came?"}));
}

// What a model is asked begins with a word, wherever the question began.
TEST(QuestionFormTest, SpaceAheadIsNoPartOfIt) {
  EXPECT_EQ(form_of("  Did a car stop?"), (QuestionForm{Wanted::whether, "Did a car stop?"}));
}

}  // namespace
}  // namespace vigil::memory
