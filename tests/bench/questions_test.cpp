#include "bench/questions.h"

#include <limits>
#include <set>
#include <string>

#include <gtest/gtest.h>

namespace vigil::bench {
namespace {

TEST(Questions, HaveDifferentNamesHoweverManyThereAre) {
  const auto rules = questions(14, 1);
  ASSERT_EQ(rules.size(), 14U);
  std::set<std::string> names;
  for (const config::RuleSettings& rule : rules) {
    names.insert(rule.name);
    EXPECT_FALSE(rule.prompt.empty());
  }
  EXPECT_EQ(names.size(), 14U);
  EXPECT_EQ(rules[0].name, "person");
  EXPECT_EQ(rules[6].name, "person-2");
  EXPECT_EQ(rules[12].name, "person-3");
  EXPECT_EQ(rules[12].prompt, rules[0].prompt);
  EXPECT_TRUE(questions(0, 1).empty());
}

TEST(Questions, AreExplainedIfAnAnswerMayBeLongerThanItsFirstToken) {
  EXPECT_FALSE(questions(1, 1)[0].explain);
  const config::RuleSettings rule = questions(1, 32)[0];
  EXPECT_TRUE(rule.explain);
  EXPECT_EQ(rule.max_tokens, 32);
}

TEST(Questions, TellAlwaysTellsEveryWindow) {
  config::RuleSettings rule = questions(1, 1)[0];
  tell_always(rule);
  EXPECT_EQ(rule.threshold, 0);
  EXPECT_EQ(rule.confirm, (config::Confirmation{1, 1}));
  EXPECT_EQ(rule.cooldown.count(), 0);
  EXPECT_EQ(rule.max_per_hour, std::numeric_limits<int>::max());
}

}  // namespace
}  // namespace vigil::bench
