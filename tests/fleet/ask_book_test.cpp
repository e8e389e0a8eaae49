// What goes to the cache of what is asked about the past, what comes back, and what is logged.
#include "fleet/asks/ask_book.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/actors/fakes.h"

namespace vigil::fleet {
namespace {

using namespace std::chrono_literals;
using actors::PastErasure;
using actors::PastList;
using actors::PastOutcome;
using actors::PastQuestion;
using actors::PastRequestPtr;
using actors::PastRights;
using actors::PastVerify;
using cluster::AskEnd;
using cluster::AskRefusal;
using cluster::AskRefusalType;
using cluster::AskReply;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

// 2026-08-01T10:00:00Z, which it is when a test begins.
constexpr std::int64_t kTen = 1'785'578'400'000;
const std::string kNorthKey = "north-ke{@#%y, which is longer";

class AskBookTest : public ::testing::Test {
 protected:
  explicit AskBookTest(std::size_t at_once = 2)
      : book_({.permissions = {{kNorthKey, {.tenants = {"north", "harbour"}}},
                               {"root", {.all_tenants = true, .erase = true}}},
               .at_once = at_once,
               .retry_after = 700ms},
              clock_) {}

  static cluster::AskQuestion question() {
    return {.camera = "gate",
            .question = "When did the secret car come?",
            .from_ms = kTen,
            .to_ms = kTen + 60'000};
  }
  std::variant<PastRequestPtr, AskRefusal> ask(const cluster::AskRequest& request,
                                               const cluster::Asker& who = {}) {
    return book_.take({++ticket_, who, request, clock_.now() + 60s});
  }
  /// Null: it was refused.
  PastRequestPtr taken(const cluster::AskRequest& request, const cluster::Asker& who = {}) {
    auto result = ask(request, who);
    auto* past = std::get_if<PastRequestPtr>(&result);
    return past == nullptr ? nullptr : *past;
  }
  std::optional<AskReply> hear(PastOutcome outcome, const std::string& text = "{}",
                               std::uint64_t ticket = 0) {
    return book_.hear({ticket == 0 ? ticket_ : ticket, outcome, text});
  }

  actors::testing::ManualClock clock_;
  AskBook book_;
  std::uint64_t ticket_ = 0;
};

TEST_F(AskBookTest, AQuestionGoesToTheCacheAsItWasAsked) {
  cluster::AskQuestion asked = question();
  const PastRequestPtr least = taken(asked);
  ASSERT_TRUE(least);
  EXPECT_EQ(least->ticket, 1U);
  EXPECT_EQ(least->deadline, clock_.now() + 60s);
  EXPECT_EQ(least->rights, (PastRights{.tenants = std::nullopt, .erase = true}));
  const auto& plain = std::get<PastQuestion>(least->what);
  EXPECT_EQ(plain.camera, (actors::PastCamera{"gate", std::nullopt}));
  EXPECT_EQ(plain.question, asked.question);
  EXPECT_EQ(plain.about, "");
  EXPECT_EQ(plain.wall, (history::WallRange{kTen * 1'000'000, (kTen + 60'001) * 1'000'000 - 1}))
      << "all of the last millisecond, too";
  EXPECT_EQ(plain.method, memory::Method::windows);
  EXPECT_EQ(plain.max_tokens, PastQuestion().max_tokens);

  asked.tenant = "north";
  asked.about = "Is there a car?";
  asked.max_tokens = 7;
  asked.method = cluster::AskMethod::exhaustive;
  const PastRequestPtr most = taken(asked, {kNorthKey});
  ASSERT_TRUE(most);
  EXPECT_EQ(most->rights, (PastRights{.tenants = {{"north", "harbour"}}, .erase = false}));
  const auto& whole = std::get<PastQuestion>(most->what);
  EXPECT_EQ(whole.camera, (actors::PastCamera{"gate", "north"}));
  EXPECT_EQ(whole.about, "Is there a car?");
  EXPECT_EQ(whole.method, memory::Method::exhaustive);
  EXPECT_EQ(whole.max_tokens, 7);
}

TEST_F(AskBookTest, EachMethodIsTheOneOfItsName) {
  for (const auto method : cluster::kAskMethods) {
    cluster::AskQuestion asked = question();
    asked.method = method;
    const PastRequestPtr past = taken(asked);
    ASSERT_TRUE(past);
    const auto taken_by = static_cast<std::size_t>(std::get<PastQuestion>(past->what).method);
    EXPECT_EQ(memory::kMethodNames.at(taken_by), name_of(method));
    hear(PastOutcome::answer);
  }
}

TEST_F(AskBookTest, AKeyThatIsBoundToNothingSeesNoTenant) {
  const PastRequestPtr past = taken(cluster::MemoryList{}, {"unknown"});
  ASSERT_TRUE(past);
  EXPECT_EQ(past->rights, (PastRights{.tenants = std::set<std::string>{}, .erase = false}));
}

TEST_F(AskBookTest, AListOfATenantIsOfThatOneIfItIsThere) {
  const auto rights = [&](const std::string& tenant, const cluster::Asker& who) {
    return taken(cluster::MemoryList{.tenant = tenant}, who)->rights.tenants;
  };
  EXPECT_EQ(rights("north", {kNorthKey}), std::set<std::string>{"north"});
  EXPECT_EQ(rights("south", {kNorthKey}), std::set<std::string>{}) << "nobody learns whether there is one";
  EXPECT_EQ(rights("south", {}), std::set<std::string>{"south"});
  const PastRequestPtr named = taken(cluster::MemoryVerify{"gate", "south"}, {kNorthKey});
  EXPECT_EQ(std::get<PastVerify>(named->what).camera, (actors::PastCamera{"gate", "south"}));
  EXPECT_EQ(named->rights.tenants, (std::set<std::string>{"north", "harbour"}));
  EXPECT_FALSE(std::get<PastList>(taken(cluster::MemoryList{})->what).camera.has_value());
}

TEST_F(AskBookTest, AnErasureWithoutAnEndIsOfWhatWasSeenUntilNow) {
  constexpr std::int64_t kFirst = std::numeric_limits<std::int64_t>::min();
  clock_.advance(30s);
  const auto wall = [&](const cluster::MemoryErase& asked) {
    return std::get<PastErasure>(taken(asked)->what).wall;
  };
  EXPECT_EQ(wall({.camera = "gate"}), (history::WallRange{kFirst, (kTen + 30'001) * 1'000'000 - 1}));
  EXPECT_EQ(wall({.camera = "gate", .from_ms = kTen}),
            (history::WallRange{kTen * 1'000'000, (kTen + 30'001) * 1'000'000 - 1}));
  EXPECT_EQ(wall({.camera = "gate", .to_ms = 5}), (history::WallRange{kFirst, 5'999'999}));
  const auto refused = ask(cluster::MemoryErase{.camera = "gate", .from_ms = kTen + 30'001});
  ASSERT_TRUE(std::holds_alternative<AskRefusal>(refused));
  EXPECT_EQ(std::get<AskRefusal>(refused),
            (AskRefusal{AskRefusalType::bad_request, "erase.from_ms: has not come yet"}));
}

TEST_F(AskBookTest, AnErasureThatBeginsAfterNowIsRefusedAndAQuestionIsNot) {
  // What a file has shown that is read ahead of its time is asked about as if it had come.
  cluster::AskQuestion asked = question();
  asked.from_ms = kTen + 1'800'000;
  asked.to_ms = kTen + 3'600'000;
  const PastRequestPtr past = taken(asked);
  ASSERT_TRUE(past);
  EXPECT_EQ(std::get<PastQuestion>(past->what).wall.from, (kTen + 1'800'000) * 1'000'000);
  // What was not erased is not acknowledged.
  const cluster::MemoryErase erasure{.camera = "gate", .from_ms = kTen + 60'001, .to_ms = kTen + 90'000};
  const AskRefusal refused{AskRefusalType::bad_request, "erase.from_ms: has not come yet"};
  const auto told = ask(erasure);
  ASSERT_TRUE(std::holds_alternative<AskRefusal>(told));
  EXPECT_EQ(std::get<AskRefusal>(told), refused);
  clock_.jump(61s);
  EXPECT_TRUE(taken(erasure)) << "by the book's own clock";
}

TEST_F(AskBookTest, AListOfATenantThatNobodyKnowsIsRefused) {
  const auto told = [&](const cluster::AskRequest& request, const std::string& body,
                        const cluster::Asker& who = {}) {
    taken(request, who);
    return hear(PastOutcome::answer, body);
  };
  const auto refused = [](AskRefusalType type, const std::string& line) {
    return AskReply(AskRefusal{type, line});
  };
  const std::string none = R"({"cameras": []})";
  const std::string line = "nothing is remembered of a tenant nort";
  for (const cluster::AskRequest& request : {cluster::AskRequest(cluster::MemoryList{.tenant = "nort"}),
                                             cluster::AskRequest(cluster::MemoryVerify{.tenant = "nort"})}) {
    EXPECT_EQ(told(request, none), refused(AskRefusalType::bad_request, line));
    EXPECT_EQ(told(request, R"({"cameras": [], "silent": []})"), refused(AskRefusalType::bad_request, line));
    // Of a key that is not bound to it, whether there is such a tenant or not.
    EXPECT_EQ(told(request, none, {kNorthKey}),
              refused(AskRefusalType::bad_request, line + " that this key may know of"));
    EXPECT_EQ(told(request, R"({"cameras": [], "silent": ["gpu-1", "gpu-2"]})"),
              refused(AskRefusalType::unavailable,
                      line + " at nodes that answer, and of these nobody knows: gpu-1, gpu-2"));
    for (const char* const body : {R"({"cameras": [{"camera": "gate"}]})", "{}", "[]", "7", "{"})
      EXPECT_EQ(told(request, body), AskReply(cluster::AskAnswer{body}));
  }
  EXPECT_EQ(told(cluster::MemoryList{}, none), AskReply(cluster::AskAnswer{none})) << "of nobody by name";
  EXPECT_EQ(told(cluster::MemoryList{.tenant = "north"}, none, {kNorthKey}),
            refused(AskRefusalType::bad_request, "nothing is remembered of a tenant north"));
}

TEST_F(AskBookTest, QuestionsBeyondThoseThatMayBeAreToldToComeBack) {
  ASSERT_TRUE(taken(question()));
  ASSERT_TRUE(taken(question()));
  const auto third = ask(question());
  ASSERT_TRUE(std::holds_alternative<AskRefusal>(third));
  EXPECT_EQ(std::get<AskRefusal>(third),
            (AskRefusal{AskRefusalType::busy, "as many questions as may be are under way", 700ms}));
  EXPECT_TRUE(taken(cluster::MemoryList{})) << "no question";
  EXPECT_TRUE(taken(cluster::MemoryErase{"gate"}));
  EXPECT_TRUE(hear(PastOutcome::progress, "1", 1));
  EXPECT_FALSE(taken(question())) << "what goes on is under way";
  EXPECT_TRUE(hear(PastOutcome::answer, "{}", 1));
  EXPECT_TRUE(taken(question()));
  EXPECT_FALSE(taken(question()));
  EXPECT_TRUE(book_.give_up({2, AskEnd::gone}));
  EXPECT_TRUE(taken(question()));
  EXPECT_FALSE(taken(question()));
}

TEST_F(AskBookTest, EachWordOfTheCacheIsTold) {
  const std::vector<std::pair<PastOutcome, AskReply>> words = {
      {PastOutcome::answer, cluster::AskAnswer{"text"}},
      {PastOutcome::bad_request, AskRefusal{AskRefusalType::bad_request, "text"}},
      {PastOutcome::forbidden, AskRefusal{AskRefusalType::forbidden, "text"}},
      {PastOutcome::unavailable, AskRefusal{AskRefusalType::unavailable, "text"}},
      {PastOutcome::busy, AskRefusal{AskRefusalType::busy, "text"}},
      {PastOutcome::too_late, AskRefusal{AskRefusalType::too_late, "text"}}};
  for (const auto& [outcome, reply] : words) {
    taken(question());
    EXPECT_EQ(hear(PastOutcome::progress, "3"), AskReply(cluster::AskProgress{"3"}));
    EXPECT_EQ(hear(outcome, "text"), reply);
    EXPECT_EQ(hear(outcome, "text"), std::nullopt) << "the last word was said";
  }
  taken(question());
  EXPECT_EQ(book_.hear({ticket_, PastOutcome::busy, "later", 50ms}),
            AskReply(AskRefusal{AskRefusalType::busy, "later", 50ms}));
}

TEST_F(AskBookTest, WhatWasGivenUpIsOver) {
  taken(question());
  EXPECT_TRUE(book_.give_up({1, AskEnd::cancelled}));
  EXPECT_FALSE(book_.give_up({1, AskEnd::cancelled}));
  EXPECT_FALSE(book_.give_up({99, AskEnd::gone}));
  EXPECT_EQ(hear(PastOutcome::answer, "{}", 1), std::nullopt);
}

TEST_F(AskBookTest, AfterTheEndOfTheCacheNobodyIsLeftWaiting) {
  taken(question());
  taken(cluster::MemoryErase{"gate"});
  EXPECT_THAT(book_.close(), ElementsAre(1, 2));
  EXPECT_THAT(book_.close(), IsEmpty());
  for (const cluster::AskRequest& request :
       {cluster::AskRequest(question()), cluster::AskRequest(cluster::MemoryList{}),
        cluster::AskRequest(cluster::MemoryErase{"gate"})}) {
    const auto refused = ask(request);
    ASSERT_TRUE(std::holds_alternative<AskRefusal>(refused));
    EXPECT_EQ(std::get<AskRefusal>(refused), AskBook::nobody_answers());
  }
  EXPECT_EQ(AskBook::nobody_answers().type, AskRefusalType::unavailable);
}

TEST_F(AskBookTest, AQuestionIsLoggedWithoutItsWords) {
  cluster::AskQuestion asked = question();
  asked.tenant = "north";
  asked.about = "Is there a secret car?";
  taken(asked, {kNorthKey});
  EXPECT_THAT(book_.take_lines(), IsEmpty()) << "not before its end";
  clock_.advance(1250ms);
  hear(PastOutcome::bad_request, "a secret reason");
  const auto lines = book_.take_lines();
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_FALSE(lines[0].is_erasure);
  EXPECT_EQ(lines[0].text,
            "question about camera gate of tenant north from 2026-08-01T10:00:00.000Z to "
            "2026-08-01T10:01:00.000Z by windows, "
            "asked by north-ke: bad_request after 1.2 s");
  EXPECT_THAT(lines[0].fields,
              UnorderedElementsAre(Pair("camera", "gate"), Pair("tenant", "north"), Pair("asker", "north-ke"),
                                   Pair("from", "2026-08-01T10:00:00.000Z"),
                                   Pair("to", "2026-08-01T10:01:00.000Z"), Pair("method", "windows"),
                                   Pair("outcome", "bad_request"), Pair("seconds", "1.2")));
  EXPECT_THAT(book_.take_lines(), IsEmpty());
}

TEST_F(AskBookTest, AnErasureIsLoggedAsSuchAndAListIsNot) {
  taken(cluster::MemoryErase{"gate"});
  hear(PastOutcome::answer);
  taken(cluster::MemoryList{"gate"});
  hear(PastOutcome::answer);
  taken(cluster::MemoryVerify{"gate"});
  hear(PastOutcome::answer);
  const auto lines = book_.take_lines();
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_TRUE(lines[0].is_erasure);
  EXPECT_EQ(lines[0].text,
            "erasure of camera gate until 2026-08-01T10:00:00.000Z, asked by local: answer after 0.0 s");
}

TEST_F(AskBookTest, WhoseCameraItWasIsLoggedWhereNobodyHasNamedIt) {
  const auto logged = [&](const cluster::AskRequest& request, const std::string& body) {
    taken(request);
    hear(PastOutcome::answer, body);
    std::pair<std::string, std::string> told;
    for (const AskLine& line : book_.take_lines()) {
      told.first = line.text.substr(0, line.text.find(" until"));
      for (const auto& [field, value] : line.fields)
        if (field == "tenant") told.second = value;
    }
    return told;
  };
  const cluster::MemoryErase erasure{"gate"};
  const std::string plain = "erasure of camera gate";
  EXPECT_EQ(logged(erasure, R"({"camera": "gate", "tenant": "north"})"),
            std::pair(plain + " of tenant north", std::string("north")));
  EXPECT_EQ(logged(cluster::MemoryErase{"gate", "south"}, R"({"tenant": "north"})"),
            std::pair(plain + " of tenant south", std::string("south")));
  EXPECT_EQ(logged(erasure, R"({"tenant": "a\u001b[2J\nb"})").second, "a?[2J?b");
  for (const char* const body : {"{}", R"({"tenant": 7})", R"({"tenant": ""})", "[]", "{"})
    EXPECT_EQ(logged(erasure, body), std::pair(plain, std::string())) << body;
  taken(question());
  hear(PastOutcome::answer, R"({"tenant": "north", "question": "Which secret car?"})");
  const auto lines = book_.take_lines();
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_THAT(lines[0].text, HasSubstr("question about camera gate of tenant north from "));
  EXPECT_THAT(lines[0].text, Not(HasSubstr("secret")));
}

TEST_F(AskBookTest, EachEndIsLogged) {
  for (const AskEnd end : {AskEnd::too_late, AskEnd::cancelled, AskEnd::gone}) {
    taken(question());
    book_.give_up({ticket_, end});
  }
  taken(question());
  taken(question());
  ask(question());
  book_.close();
  ask(question());
  std::vector<std::string> outcomes;
  for (const AskLine& line : book_.take_lines()) {
    for (const auto& [field, value] : line.fields)
      if (field == "outcome") outcomes.push_back(value);
  }
  EXPECT_THAT(outcomes, ElementsAre("too_late", "cancelled", "gone", "busy", "unavailable", "unavailable",
                                    "unavailable"));
}

TEST_F(AskBookTest, QuestionsThatWereBusyOrLateAreCounted) {
  const auto counts = [&] {
    const AskBook::Counts taken_now = book_.take_counts();
    return std::pair(taken_now.busy, taken_now.too_late);
  };
  EXPECT_EQ(counts(), std::pair(std::size_t{0}, std::size_t{0}));
  for (const AskEnd end : {AskEnd::too_late, AskEnd::cancelled, AskEnd::gone}) {
    taken(question());
    book_.give_up({ticket_, end});
    book_.give_up({ticket_, end});
  }
  EXPECT_EQ(counts(), std::pair(std::size_t{0}, std::size_t{1}));
  EXPECT_EQ(counts(), std::pair(std::size_t{0}, std::size_t{0})) << "once";
  // The cache may have seen first that its time is over.
  taken(question());
  hear(PastOutcome::too_late);
  hear(PastOutcome::too_late);
  book_.give_up({ticket_, AskEnd::too_late});
  EXPECT_EQ(counts(), std::pair(std::size_t{0}, std::size_t{1}));
  for (const PastOutcome outcome :
       {PastOutcome::answer, PastOutcome::unavailable, PastOutcome::bad_request}) {
    taken(question());
    hear(outcome);
  }
  // What is no question.
  taken(cluster::MemoryList{"gate"});
  book_.give_up({ticket_, AskEnd::too_late});
  EXPECT_EQ(counts(), std::pair(std::size_t{0}, std::size_t{0}));
  taken(question());
  taken(question());
  ask(question());
  ask(question());
  taken(cluster::MemoryErase{"gate"});
  EXPECT_EQ(counts(), std::pair(std::size_t{2}, std::size_t{0}));
  book_.close();
  ask(question());
  EXPECT_EQ(counts(), std::pair(std::size_t{0}, std::size_t{0})) << "nobody answers is another end";
}

TEST_F(AskBookTest, AnswersAreAllLoggedAndRefusalsUpToABound) {
  for (int i = 0; i < 100; ++i) {
    taken(question());
    hear(PastOutcome::bad_request);
    taken(cluster::MemoryErase{"gate"});
    hear(PastOutcome::answer);
  }
  EXPECT_EQ(book_.take_lines().size(), 160U);
  clock_.advance(1min);
  const auto rest = book_.take_lines();
  ASSERT_EQ(rest.size(), 1U);
  EXPECT_EQ(rest[0].text, "40 more requests that were not answered in the last minute are left out");
  taken(question());
  hear(PastOutcome::bad_request);
  EXPECT_EQ(book_.take_lines().size(), 1U);
}

}  // namespace
}  // namespace vigil::fleet
