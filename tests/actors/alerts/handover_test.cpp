// What a series' new maker goes on with.
#include "actors/alerts/handover.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "actors/alerts/open_episodes.h"
#include "tests/actors/times.h"

namespace vigil::actors {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

const std::string kAlert = "alert/north/gate/person/";
const std::string kCopy = "topic/night/north/gate/person/";
const std::string kStatus = "status/north/gate/";

OutboxEvent at(const std::string& topic, std::uint64_t sequence, std::uint64_t position = 0,
               const std::string& body = "x") {
  return {position, topic, sequence, kStart, body};
}

std::string alert(const std::string& id, const std::string& phase, const std::string& clip = "none") {
  json data = {{"episode", id.substr(0, id.find('-'))},
               {"phase", phase},
               {"rule_version", "v1"},
               {"score", 0.75},
               {"confirmations", 3},
               {"start_time", 1785578400.5}};
  if (clip != "none") data["evidence"] = {{"clip_state", clip}, {"clip", "gate/x.mp4"}, {"bytes", 12}};
  return json{{"type", "dev.vigil.alert.v1"},
              {"source", "/site/north/camera/gate"},
              {"id", id},
              {"time", "2026-08-01T10:00:08.000Z"},
              {"data", data}}
      .dump();
}

/// What this process has, and the books that it gets.
class HandoverTest : public ::testing::Test {
 protected:
  Handover make() {
    return hand_over(books_, {.tenure = tenure_,
                              .lived = lived_,
                              .unacknowledged = waiting_,
                              .left_behind = left_behind_,
                              .notes = notes_,
                              .last = last_,
                              .last_sequence = [this](const std::string& topic) { return here_[topic]; }});
  }
  void note(const std::vector<std::string>& topics, const std::string& body, bool in_books) {
    const OutboxNote note = episode_note(topics, body);
    if (in_books) {
      books_.notes.push_back(note);
    } else {
      notes_[note.key] = note.value.value();
    }
  }
  static std::vector<std::string> text(const std::vector<Continuation>& topics) {
    std::vector<std::string> result;
    for (const Continuation& each : topics)
      result.push_back(each.topic + ' ' + std::to_string(each.last) +
                       (each.stays >= each.last ? "" : " stays " + std::to_string(each.stays)));
    return result;
  }
  static std::vector<std::string> text(const std::vector<OpenEpisode>& open) {
    std::vector<std::string> result;
    for (const OpenEpisode& each : open) {
      std::string line = each.record.name.episode + '-' + std::to_string(each.record.name.number);
      for (const std::string& topic : each.topics) line += ' ' + topic.substr(0, 5);
      result.push_back(line);
    }
    return result;
  }

  SeriesBooks books_{"gate", 9, 8, 7, {}, {}};
  std::uint64_t tenure_ = 0;
  bool lived_ = false;
  std::vector<OutboxEvent> waiting_;
  std::uint64_t left_behind_ = 0;
  std::map<std::string, std::string> notes_;
  std::vector<OutboxEvent> last_;
  std::map<std::string, std::uint64_t> here_;
};

TEST_F(HandoverTest, NumbersGoOnBehindTheBooks) {
  books_.last = {at(kAlert, 40), at(kStatus, 3), at("status/north/yard/", 77), at("nonsense", 5)};
  const Handover made = make();
  EXPECT_FALSE(made.goes_on);
  EXPECT_THAT(text(made.topics), ElementsAre(kAlert + " 40", kStatus + " 3")) << "and of no other camera";
  EXPECT_THAT(made.events, IsEmpty());
  ASSERT_THAT(made.notes, SizeIs(1));
  EXPECT_EQ(made.notes[0].key, "tenure/gate");
  EXPECT_EQ(made.notes[0].value, "9");
  EXPECT_THAT(
      tenures_in({{"tenure/gate", "9"}, {"tenure/", "3"}, {"tenure/yard", "9x"}, {"tenuregate", "1"}}),
      ElementsAre(Pair("", 3U), Pair("gate", 9U)));
}

TEST_F(HandoverTest, WhatSomebodyElseMayHaveOverwrittenIsForgotten) {
  tenure_ = 5;
  waiting_ = {at(kAlert, 9, 1), at("alert/north/yard/person/", 2, 2), at(kAlert, 10, 3), at(kStatus, 4, 4)};
  here_ = {{kAlert, 10}, {kStatus, 4}};
  books_.last = {at(kAlert, 40)};
  const Handover made = make();
  EXPECT_FALSE(made.goes_on);
  EXPECT_THAT(text(made.topics), ElementsAre(kAlert + " 40 stays 8", kStatus + " 0"))
      << "no gateway ever had one";
  EXPECT_EQ(made.dropped, 3U);
  EXPECT_THAT(made.events, IsEmpty());
}

TEST_F(HandoverTest, WhatReachedNobodyLeavesNoGap) {
  // Under its fence of then it was refused, and is done with.
  tenure_ = 5;
  last_ = {at(kAlert, 2, 1), at("alert/north/yard/person/", 7, 2)};
  here_ = {{kAlert, 2}};
  EXPECT_THAT(text(make().topics), ElementsAre(kAlert + " 0"));
  books_.previous = 0;
  EXPECT_THAT(make().topics, IsEmpty()) << "gateways may have lost all that they had";
  books_.last = {at(kAlert, 40)};
  EXPECT_THAT(text(make().topics), ElementsAre(kAlert + " 40"));
}

TEST_F(HandoverTest, WhatNobodyHasOverwrittenGoesOn) {
  tenure_ = 7;
  left_behind_ = 10;
  // The last commit was not heard of, two were not committed; one of another camera.
  waiting_ = {at(kAlert, 8, 1), at(kAlert, 9, 2), at("alert/north/yard/person/", 2, 3), at(kAlert, 10, 4),
              at(kStatus, 1, 5)};
  here_ = {{kAlert, 10}, {kStatus, 1}};
  books_.last = {at(kAlert, 8)};
  const Handover made = make();
  EXPECT_TRUE(made.goes_on);
  EXPECT_EQ(made.dropped, 0U);
  EXPECT_THAT(made.committed, ElementsAre(1U));
  EXPECT_THAT(text(made.topics), ElementsAre(kAlert + " 8", kStatus + " 0"))
      << "in a place where they are read";
  ASSERT_THAT(made.events, SizeIs(3));
  EXPECT_EQ(made.events[0].sequence, 9U);
  EXPECT_EQ(made.events[1].sequence, 10U);
  EXPECT_EQ(made.events[2].topic, kStatus);
}

TEST_F(HandoverTest, WhatThePublisherHasInHandStaysWhereItIs) {
  tenure_ = 7;
  left_behind_ = 1;
  waiting_ = {at(kAlert, 8, 2), at(kAlert, 9, 3)};
  here_ = {{kAlert, 9}};
  books_.last = {at(kAlert, 8)};
  const Handover made = make();
  EXPECT_TRUE(made.goes_on);
  EXPECT_THAT(made.topics, IsEmpty());
  EXPECT_THAT(made.events, IsEmpty());
  EXPECT_THAT(made.committed, IsEmpty());
}

TEST_F(HandoverTest, BehindAMissingEventNothingGoesOn) {
  tenure_ = 7;
  // Number 9 was dropped, 10 waits.
  waiting_ = {at(kAlert, 10, 3)};
  here_ = {{kAlert, 10}};
  books_.last = {at(kAlert, 8)};
  Handover made = make();
  EXPECT_FALSE(made.goes_on);
  EXPECT_EQ(made.dropped, 1U);
  EXPECT_THAT(text(made.topics), ElementsAre(kAlert + " 8"));
  // All were.
  waiting_.clear();
  made = make();
  EXPECT_FALSE(made.goes_on);
  EXPECT_THAT(text(made.topics), ElementsAre(kAlert + " 8"));
  // The outbox lost some.
  here_ = {{kAlert, 6}};
  made = make();
  EXPECT_FALSE(made.goes_on);
  EXPECT_THAT(text(made.topics), ElementsAre(kAlert + " 8"));
  lived_ = true;
  made = make();
  EXPECT_TRUE(made.goes_on) << "but the process did not";
  EXPECT_THAT(text(made.topics), ElementsAre(kAlert + " 8"));
}

TEST_F(HandoverTest, WhatIsOpenIsReadFromNotesAndFromLastEvents) {
  note({kAlert, kCopy}, alert("E1-0", "new"), true);
  note({kAlert}, alert("E2-3", "end", "pending"), true);
  note({kAlert}, alert("E3-0", "new"), true);
  note({"alert/north/yard/person/"}, alert("E4-0", "new"), true);
  books_.notes.push_back({"episode/E5", "no json"});
  books_.notes.push_back({"episode/E6", json{{"topics", {kAlert}}, {"event", "no event"}}.dump()});
  books_.notes.push_back({"episode/E7", std::nullopt});
  // Newer than its note; over; of one without a note; unreadable.
  books_.last = {at(kAlert, 9, 0, alert("E1-2", "update", "ready")),
                 at("alert/north/gate/dog/", 3, 0, alert("E3-1", "end")),
                 at(kCopy, 4, 0, alert("E8-0", "new")), at(kStatus, 2, 0, R"({"data":{"state":"down"}})"),
                 at("alert/north/gate/cat/", 1, 0, "\xff")};
  const Handover made = make();
  EXPECT_THAT(text(made.open), ElementsAre("E1-2 alert topic", "E2-3 alert", "E8-0 topic"));
  const AlertRecord& record = made.open[0].record;
  EXPECT_EQ(record.rule_version, "v1");
  EXPECT_EQ(record.told.ordinal, 2U);
  EXPECT_DOUBLE_EQ(record.told.score, 0.75);
  EXPECT_EQ(record.told.confirmations, 3);
  EXPECT_EQ(record.told.start, kStart + 500ms);
  EXPECT_EQ(record.time, kStart + 8s);
  EXPECT_EQ(record.evidence.state, EvidenceState::ready);
  EXPECT_EQ(record.evidence.clip, "gate/x.mp4");
  EXPECT_EQ(record.evidence.bytes, 12U);
  EXPECT_EQ(state_in(made.last.at(kStatus)), "down");
  std::vector<std::string> noted;
  for (const OutboxNote& each : made.notes)
    if (each.value) noted.push_back(each.key);
  EXPECT_THAT(noted, UnorderedElementsAre("episode/E1", "episode/E2", "episode/E8", "tenure/gate"))
      << "a process that is started again knows as much";
}

TEST_F(HandoverTest, OwnNotesCountWhereNobodyElseWas) {
  tenure_ = 7;
  note({kAlert}, alert("E1-0", "new"), true);
  note({kAlert}, alert("E2-0", "new"), true);
  // Here the first one went on, the second one ended, a third one began.
  note({kAlert}, alert("E1-1", "update"), false);
  note({kAlert}, alert("E3-0", "new"), false);
  note({"alert/north/yard/person/"}, alert("E9-0", "new"), false);
  waiting_ = {at(kAlert, 9, 1, alert("E2-1", "end")), at(kAlert, 10, 2, alert("E1-1", "update")),
              at(kAlert, 11, 3, alert("E3-0", "new"))};
  here_ = {{kAlert, 11}};
  books_.last = {at(kAlert, 8, 0, alert("E2-0", "new"))};
  EXPECT_THAT(text(make().open), ElementsAre("E1-1 alert", "E3-0 alert"));
  // Somebody else was: what is here of it is over.
  tenure_ = 5;
  const Handover made = make();
  EXPECT_THAT(text(made.open), ElementsAre("E1-0 alert", "E2-0 alert"));
  std::vector<std::string> gone;
  for (const OutboxNote& each : made.notes)
    if (!each.value) gone.push_back(each.key);
  EXPECT_THAT(gone, ElementsAre("episode/E3"));
}

TEST(ReadAlert, TakesNothingThatNoEpisodeIsResumedBy) {
  ASSERT_TRUE(read_alert(alert("E-0", "new")));
  for (const char* key : {"phase", "start_time", "episode"}) {
    json body = json::parse(alert("E-0", "new"));
    body["data"][key] = key == std::string("start_time") ? json(1e300) : json("nothing");
    EXPECT_FALSE(read_alert(body.dump())) << key;
  }
  json body = json::parse(alert("E-0", "new"));
  body["time"] = "yesterday";
  EXPECT_FALSE(read_alert(body.dump()));
  body = json::parse(alert("E-0", "new"));
  body["data"]["confirmations"] = "many";
  body["data"]["evidence"] = 7;
  EXPECT_TRUE(read_alert(body.dump())) << "what is not needed may be missing";
  for (const char* text : {"", "[]", "{}", "null", R"({"type":"dev.vigil.alert.v1","data":[]})"})
    EXPECT_FALSE(read_alert(text)) << text;
}

}  // namespace
}  // namespace vigil::actors
