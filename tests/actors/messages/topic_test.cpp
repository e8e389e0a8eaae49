// What a topic says by its names.
#include "actors/messages/topic.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vigil::actors {
namespace {

using ::testing::Optional;

TEST(Topic, IsReadPartByPartAndWrittenAgain) {
  const std::pair<const char*, TopicName> topics[] = {
      {"alert/north/gate/person/", {TopicKind::rule, "", "north", "gate", "person"}},
      {"topic/night/north/gate/person/", {TopicKind::shared, "night", "north", "gate", "person"}},
      {"status/north/gate/", {TopicKind::status, "", "north", "gate", ""}},
      {"process/node-1/", {TopicKind::process, "node-1", "", "", ""}}};
  for (const auto& [text, name] : topics) {
    EXPECT_THAT(read_topic(text), Optional(name)) << text;
    EXPECT_EQ(text_of(name), text);
    EXPECT_THAT(kind_of(text), Optional(name.kind)) << text;
    EXPECT_EQ(series_of(text), std::string(name.camera)) << text;
    EXPECT_EQ(beginning_fault(text), std::nullopt) << text;
  }
}

TEST(Topic, NamesLikeRootsAreNames) {
  EXPECT_THAT(read_topic("alert/process/topic/alert/"),
              Optional(TopicName{TopicKind::rule, "", "process", "topic", "alert"}));
  EXPECT_EQ(series_of("topic/alert/status/process/topic/"), "process");
}

TEST(Topic, IsWholeOrNone) {
  for (const char* no : {"",
                         "/",
                         "//",
                         "alert",
                         "alert/",
                         "alert/north/gate/",
                         "alert/north/gate/person",
                         "alert/north/gate/person/more/",
                         "alert/north/gate/person//",
                         "alert//gate/person/",
                         "alert/north/gate//",
                         "alerts/north/gate/person/",
                         "/alert/north/gate/person/",
                         "Alert/north/gate/person/",
                         "topic/night/north/gate/",
                         "topic/night/north/gate/person",
                         "topic/night/north/gate/person/more/",
                         "status/north/",
                         "status/north/gate",
                         "status/north/gate/more/",
                         "process/",
                         "process//",
                         "process/a",
                         "process/a/b/",
                         "gate/"}) {
    EXPECT_EQ(read_topic(no), std::nullopt) << no;
    EXPECT_EQ(series_of(no), std::nullopt) << no;
  }
}

TEST(Topic, HasItsKindByItsBeginning) {
  EXPECT_THAT(kind_of("alert/"), Optional(TopicKind::rule));
  EXPECT_THAT(kind_of("process/a/b/c"), Optional(TopicKind::process));
  for (const char* no : {"", "alert", "alerts/", "/alert/", "a/"}) EXPECT_EQ(kind_of(no), std::nullopt) << no;
}

TEST(Topic, ThatIsSharedHasARulesOwn) {
  EXPECT_EQ(rule_topic("topic/night/north/gate/person/"), "alert/north/gate/person/");
  for (const char* same : {"alert/north/gate/person/", "status/north/gate/", "process/a/", "topic/night/",
                           "topic/night/north/gate/person", "a/", ""})
    EXPECT_EQ(rule_topic(same), same);
}

TEST(Topic, WhoseBeginningIsWrongIsToldWhatMayBeMeant) {
  for (const char* beginning :
       {"", "a", "alert", "alert/", "alert/north/g", "proc", "status/north/gate/more/"})
    EXPECT_EQ(beginning_fault(beginning), std::nullopt) << beginning;
  EXPECT_EQ(beginning_fault("alrt/north/"),
            "alrt/north/ begins no topic; did you mean alert/north/? (alert/, topic/, status/, process/)");
  EXPECT_EQ(beginning_fault("gate-7"), "gate-7 begins no topic (alert/, topic/, status/, process/)");
  EXPECT_EQ(beginning_fault("/"), "/ begins no topic (alert/, topic/, status/, process/)");
}

}  // namespace
}  // namespace vigil::actors
