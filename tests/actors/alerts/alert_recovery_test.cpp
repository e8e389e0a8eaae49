// A process that is killed between any two steps of what it writes: nothing is told that was told otherwise,
// every topic of an alert gets the same, and all that was begun or promised ends.
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "actors/alerts/alert_desk.h"
#include "actors/alerts/open_episodes.h"
#include "tests/actors/events.h"
#include "tests/actors/watched_outbox.h"

namespace vigil::actors {
namespace {

using namespace testing;
using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::size_t kNever = 1'000'000;

/// Of the alerts on each topic, in their order: their ids.
std::map<std::string, std::vector<std::string>> ids_by_topic(const std::vector<OutboxEvent>& events) {
  std::map<std::string, std::vector<std::string>> ids;
  for (const OutboxEvent& event : events) ids[event.topic].push_back(json::parse(event.body).at("id"));
  return ids;
}

/// "phase state" of the last event of each episode on a topic.
std::map<std::string, std::string> last_words(const std::vector<OutboxEvent>& events,
                                              const std::string& topic) {
  std::map<std::string, std::string> words;
  for (const OutboxEvent& event : events) {
    if (event.topic != topic) continue;
    const json data = json::parse(event.body).at("data");
    words[data.at("episode")] =
        data.at("phase").get<std::string>() + ' ' + data.at("evidence").at("clip_state").get<std::string>();
  }
  return words;
}

class AlertRecovery : public ::testing::Test {
 protected:
  AlertRecovery() {
    auto settings = camera("gate");
    settings->rules[0].topics = {"staff", "fire"};
    settings->rules[0].explain = true;
    settings->rules.push_back(settings->rules[0]);
    settings->rules[1].name = "car";
    settings->rules[1].topics = {"staff"};
    settings->rules[1].explain = false;
    gate_ = settings;
    for (const config::RuleSettings& rule : gate_->rules)
      topics_.push_back(alert_topics(watch_of(*gate_), rule));
  }

  AlertDesk desk(Outbox& outbox, const std::string& process = "north-1") {
    return AlertDesk({.model = {"m"},
                      .evidence = AlertDesk::Options::ClipRoll{5s, 3s},
                      .run = ++run_,
                      .process = process,
                      .topics = topics_},
                     outbox, publisher_, metrics_, clock_);
  }

  void observe(AlertDesk& alerts, double end, float person, float car) {
    auto window = std::make_shared<WindowAnswers>(*window_of(gate_, end, {person, car}));
    window->id = stream::WindowId{gate_->name, 0, static_cast<std::uint64_t>(end)};
    alerts.observe(window);
    for (const AlertDesk::Request& request : alerts.take_requests()) {
      // Meanwhile others are told.
      alerts.status(watched(*gate_), CameraState::up, "");
      alerts.explained(request.explain.ticket, "Yes.");
    }
    clock_.advance(100ms);
  }

  static EvidenceReport failed(const std::string& episode) {
    EvidenceReport report{episode, {}};
    report.evidence.state = EvidenceState::failed;
    report.evidence.reason = "no packet";
    return report;
  }

  /// A little of everything; ends in the middle of two episodes.
  void live(AlertDesk& alerts) {
    alerts.tick();
    alerts.status(watched(*gate_), CameraState::up, "");
    observe(alerts, 2, 0.9F, 0.1F);
    observe(alerts, 4, 0.9F, 0.9F);
    auto promised = alerts.take_evidence_requests();
    observe(alerts, 6, 0.1F, 0.9F);
    observe(alerts, 8, 0.1F, 0.9F);
    for (const EvidenceRequest& request : promised) alerts.evidence(failed(request.episode));
    promised = alerts.take_evidence_requests();
    observe(alerts, 10, 0.9F, 0.1F);
    observe(alerts, 12, 0.9F, 0.1F);
    alerts.evidence(failed(promised.at(0).episode));
    observe(alerts, 14, 0.9F, 0.9F);
    observe(alerts, 16, 0.9F, 0.9F);
  }

  /// Whatever happened, after a process that was not killed.
  void expect_whole(const Outbox& outbox, bool evidence_settled = true) {
    const std::vector<OutboxEvent> events = all_events(outbox);
    std::map<std::string, json> contents;
    std::map<std::string, std::uint64_t> sequences;
    for (const std::vector<OutboxEvent>* told :
         {&events, static_cast<const std::vector<OutboxEvent>*>(&publisher_.messages)}) {
      for (const OutboxEvent& event : *told) {
        json body = json::parse(event.body);
        EXPECT_EQ(body.at("data").at("seq"), event.sequence);
        body["data"].erase("seq");
        const std::string name =
            body.at("source").get<std::string>() + ' ' + body.at("id").get<std::string>();
        const auto known = contents.try_emplace(name, body).first;
        EXPECT_EQ(known->second, body) << "another event under the same source and id";
      }
    }
    for (const OutboxEvent& event : events) {
      EXPECT_EQ(event.sequence, ++sequences[event.topic]) << event.topic;
    }
    auto ids = ids_by_topic(events);
    for (const std::vector<std::string>& topics : topics_) {
      for (const std::string& topic : topics) EXPECT_EQ(ids[topic], ids[topics.front()]) << topic;
      const std::vector<std::string>& own = ids[topics.front()];
      EXPECT_EQ(std::set<std::string>(own.begin(), own.end()).size(), own.size()) << "each once";
      for (const auto& [episode, word] : last_words(events, topics.front())) {
        EXPECT_TRUE(word.starts_with("end ")) << topics.front() << ' ' << word;
        EXPECT_TRUE(!evidence_settled || word != "end pending") << topics.front();
      }
    }
    EXPECT_THAT(outbox.unacknowledged(1), IsEmpty());
    EXPECT_EQ(ids_by_topic(events).size(), ids_by_topic(publisher_.messages).size());
    EXPECT_TRUE(!evidence_settled || outbox.notes().empty()) << "nothing is left open";
  }

  /// Lives until it is killed after so many steps. Returns whether it was.
  template <class Life>
  bool killed_after(std::size_t steps, Outbox& kept, Life life) {
    WatchedOutbox outbox(kept);
    outbox.steps_left = steps;
    try {
      AlertDesk alerts = desk(outbox);
      life(alerts);
      return false;
    } catch (const Killed&) {
      return true;
    }
  }

  ManualClock clock_;
  Metrics metrics_;
  FakePublisher publisher_;
  CameraPtr gate_;
  SharedTopics topics_;
  std::uint64_t run_ = 0;
};

TEST_F(AlertRecovery, KilledBetweenAnyTwoStepsNothingIsToldTwiceOtherwiseAndNoCopyIsMissing) {
  std::size_t kills = 0;
  bool lived = false;
  for (std::size_t first = 0; !lived && !HasFailure(); ++first) {
    bool recovered = false;
    // The process after it is killed while it recovers, too; not of each, since that takes long.
    constexpr std::size_t kEach = 23;
    for (std::size_t second = first % kEach == 0 ? 0 : kNever; !recovered && !HasFailure(); ++second) {
      publisher_.messages.clear();
      const auto kept = make_memory_outbox();
      lived = !killed_after(first, *kept, [this](AlertDesk& alerts) { live(alerts); });
      recovered = !killed_after(second, *kept, [](AlertDesk& alerts) { alerts.tick(); });
      kills += (lived ? 0U : 1U) + (recovered ? 0U : 1U);
      AlertDesk last = desk(*kept);
      last.tick();
      last.finish();
      SCOPED_TRACE("killed after " + std::to_string(first) + " and " + std::to_string(second) + " steps");
      expect_whole(*kept);
    }
  }
  EXPECT_GT(kills, 150U) << "there are that many moments";
}

// What it wrote is what this one writes, event by event instead of together.
TEST_F(AlertRecovery, TheOutboxOfAProgramThatWroteEachCopyByItselfGetsWhatItMisses) {
  const auto whole = make_memory_outbox();
  topics_.clear();
  for (const config::RuleSettings& rule : gate_->rules)
    topics_.push_back(alert_topics(watch_of(*gate_), rule));
  {
    AlertDesk alerts = desk(*whole, "");
    live(alerts);
  }
  const std::vector<OutboxEvent> written = all_events(*whole);
  for (const OutboxEvent& event : written) expect_valid(json::parse(event.body));
  ASSERT_GT(written.size(), 20U);
  for (std::size_t count = 0; count <= written.size(); ++count) {
    publisher_.messages.clear();
    const auto kept = make_memory_outbox();
    for (std::size_t i = 0; i < count; ++i) kept->append(written[i]);
    AlertDesk next = desk(*kept);
    next.tick();
    next.finish();
    SCOPED_TRACE(std::to_string(count) + " events were written");
    expect_whole(*kept);
    const std::size_t all = all_events(*kept).size();
    AlertDesk another = desk(*kept, "");
    another.tick();
    EXPECT_EQ(all_events(*kept).size(), all) << "once";
  }
}

TEST_F(AlertRecovery, ATopicThatWasTakenFromTheRuleGetsNoMoreThanItsEnd) {
  const auto kept = make_memory_outbox();
  const std::string own = topics_[1].front();
  const std::string staff = topics_[1].back();
  const auto alert = [](const char* episode, int number, const char* phase) {
    return json{{"type", "dev.vigil.alert.v1"},
                {"id", episode + ('-' + std::to_string(number))},
                {"data", {{"episode", episode}, {"phase", phase}, {"seq", 0}}}}
        .dump();
  };
  // The first episode began when `staff` was a topic of the rule, the second and the third did not.
  for (const auto& [topic, sequence, body] :
       {std::tuple(own, 1, alert("A", 0, "new")), std::tuple(staff, 1, alert("A", 0, "new")),
        std::tuple(own, 2, alert("A", 1, "end")), std::tuple(own, 3, alert("B", 0, "new")),
        std::tuple(own, 4, alert("B", 1, "end")), std::tuple(own, 5, alert("C", 0, "new"))})
    kept->append({0, topic, static_cast<std::uint64_t>(sequence), kStart, body});
  topics_.clear();
  AlertDesk next = desk(*kept, "");
  next.tick();
  auto ids = ids_by_topic(all_events(*kept));
  EXPECT_THAT(ids[own], ElementsAre("A-0", "A-1", "B-0", "B-1", "C-0", "C-1"));
  EXPECT_THAT(ids[staff], ElementsAre("A-0", "A-1"));
  EXPECT_EQ(json::parse(all_events(*kept)[6].body).at("data").at("phase"), "end") << "A's, as it was told";
}

TEST_F(AlertRecovery, AnEpisodeIsToldToItsEndOnTheTopicsThatItBeganWith) {
  const auto kept = make_memory_outbox();
  AlertDesk alerts = desk(*kept, "");
  for (const double end : {2.0, 4.0}) observe(alerts, end, 0.1F, 0.9F);
  config::CameraSettings settings = *gate_;
  settings.rules[1].topics = {"night"};
  const auto changed = std::make_shared<const OwnCamera>(settings);
  alerts.observe(window_of(changed, 6, {0.1F, 0.9F}));
  alerts.end("gate");
  const auto ids = ids_by_topic(all_events(*kept));
  EXPECT_THAT(ids.at("topic/staff/north/gate/car/"), SizeIs(3));
  EXPECT_EQ(ids.at("topic/staff/north/gate/car/"), ids.at("alert/north/gate/car/"));
  EXPECT_FALSE(ids.contains("topic/night/north/gate/car/")) << "the next one is told there";
}

TEST_F(AlertRecovery, ItDoesNotMatterHowManyEventsFollowAPromise) {
  // Clips with a long post-roll: none of 37 is there when the process is killed.
  const auto kept = make_memory_outbox();
  constexpr int kEpisodes = 37;
  double end = 0;
  const auto episode = [&](AlertDesk& alerts) {
    for (const float score : {0.9F, 0.9F, 0.1F, 0.1F}) observe(alerts, end += 2, 0.1F, score);
  };
  {
    AlertDesk alerts = desk(*kept, "");
    for (int i = 0; i < kEpisodes; ++i) episode(alerts);
    EXPECT_THAT(kept->notes(), SizeIs(kEpisodes));
  }
  AlertDesk next = desk(*kept, "");
  next.tick();
  const auto words = last_words(all_events(*kept), "topic/staff/north/gate/car/");
  ASSERT_THAT(words, SizeIs(kEpisodes));
  for (const auto& [name, word] : words) EXPECT_EQ(word, "end failed");
  expect_whole(*kept);

  // The next process makes them all, in an order of their own.
  for (int i = 0; i < kEpisodes; ++i) episode(next);
  std::vector<EvidenceRequest> requests = next.take_evidence_requests();
  ASSERT_THAT(requests, SizeIs(kEpisodes));
  EXPECT_TRUE(next.awaits_evidence("gate"));
  for (std::size_t i = 0; i < requests.size(); ++i) {
    EvidenceReport report{requests[(i * 5) % requests.size()].episode, {}};
    report.evidence.state = EvidenceState::ready;
    report.evidence.bytes = 1;
    next.evidence(report);
  }
  EXPECT_FALSE(next.awaits_evidence("gate"));
  int ready = 0;
  for (const auto& [name, word] : last_words(all_events(*kept), "alert/north/gate/car/"))
    ready += word == "end ready" ? 1 : 0;
  EXPECT_EQ(ready, kEpisodes);
  expect_whole(*kept);
}

TEST_F(AlertRecovery, APromiseOutlivesTheEventsThatMadeIt) {
  config::RetentionClock ages(clock_);
  const auto kept = make_memory_outbox(&ages);
  {
    AlertDesk alerts = desk(*kept, "");
    for (const auto& [end, score] : {std::pair(2.0, 0.9F), {4.0, 0.9F}, {6.0, 0.1F}, {8.0, 0.1F}})
      observe(alerts, end, 0.1F, score);
    for (const double end : {10.0, 12.0}) observe(alerts, end, 0.1F, 0.9F);
  }
  clock_.advance(2h);
  kept->prune(1h);
  EXPECT_THAT(ids_by_topic(all_events(*kept)).at("alert/north/gate/car/"), SizeIs(1));
  AlertDesk next = desk(*kept, "");
  next.tick();
  const auto words = last_words(all_events(*kept), "topic/staff/north/gate/car/");
  EXPECT_THAT(words, SizeIs(2));
  for (const auto& [name, word] : words) EXPECT_EQ(word, "end failed");
}

TEST_F(AlertRecovery, WhatAnAppendThatFailedHasKeptIsNotWrittenAgain) {
  const auto kept = make_memory_outbox();
  WatchedOutbox outbox(*kept);
  AlertDesk alerts = desk(outbox, "");
  alerts.tick();
  for (const bool afterwards : {false, true}) {
    (afterwards ? outbox.fails_afterwards : outbox.fails) = true;
    for (const double end : {2.0, 4.0}) observe(alerts, afterwards ? end + 100 : end, 0.1F, 0.9F);
    EXPECT_GT(alerts.backlog(), 0U);
    outbox.fails = outbox.fails_afterwards = false;
    clock_.advance(2s);
    alerts.tick();
    EXPECT_EQ(alerts.backlog(), 0U);
    clock_.advance(2s);
    alerts.end("gate");
    expect_whole(*kept, /*evidence_settled=*/false);
  }
}

// As when a write reaches the log, but the disk cannot say so: it is read when the outbox is opened again.
TEST_F(AlertRecovery, WhatComesWhileNobodyKnowsWhatWasKeptIsNotTakenForIt) {
  const auto kept = make_memory_outbox();
  WatchedOutbox outbox(*kept);
  AlertDesk alerts = desk(outbox, "");
  alerts.tick();
  for (const bool was_kept : {true, false}) {
    const std::uint64_t before = kept->last_sequence("status/north/gate/");
    outbox.fails = true;
    alerts.status(watched(*gate_), CameraState::down, "no route");
    outbox.fails = false;
    ASSERT_EQ(kept->last_sequence("status/north/gate/"), before);
    if (was_kept)
      outbox.on_refresh = [&] {
        kept->append(outbox.appends.back());
        outbox.on_refresh = nullptr;
      };
    // It goes along with what was tried, in one batch.
    alerts.status(watched(*gate_), CameraState::up, "");
    EXPECT_EQ(alerts.backlog(), 2U);
    clock_.advance(2s);
    alerts.tick();
    EXPECT_EQ(alerts.backlog(), 0U);
    EXPECT_EQ(kept->last_sequence("status/north/gate/"), before + 2);
    const auto events = all_events(*kept);
    EXPECT_EQ(json::parse(events.back().body).at("data").at("state"), "up");
    EXPECT_EQ(json::parse(events[events.size() - 2].body).at("data").at("state"), "down");
  }
}

TEST_F(AlertRecovery, AProcessTellsThatItIsThereAndThatItWasNot) {
  const auto kept = make_memory_outbox();
  const auto told = [&] {
    std::vector<std::string> result;
    for (const OutboxEvent& event : all_events(*kept)) {
      if (!event.topic.starts_with("process/")) continue;
      const json data = json::parse(event.body).at("data");
      expect_valid(json::parse(event.body));
      result.push_back(event.topic + ' ' + data.at("state").get<std::string>() + ' ' +
                       data.at("reason").get<std::string>());
    }
    return result;
  };
  {
    AlertDesk alerts = desk(*kept);
    alerts.tick();
    EXPECT_THAT(told(), ElementsAre("process/north-1/ online start"));
    alerts.status(watched(*gate_), CameraState::up, "");
    alerts.finish();
    alerts.finish();
    EXPECT_THAT(told(), ElementsAre("process/north-1/ online start", "process/north-1/ offline stopped"));
    EXPECT_EQ(publisher_.messages.back().topic, "process/north-1/") << "nothing comes after it";
  }
  publisher_.messages.clear();
  desk(*kept).tick();
  EXPECT_THAT(told(), SizeIs(3)) << "an orderly end was no kill";
  // Killed, and called otherwise now.
  AlertDesk renamed = desk(*kept, "north-2");
  renamed.tick();
  EXPECT_THAT(told(), ElementsAre("process/north-1/ online start", "process/north-1/ offline stopped",
                                  "process/north-1/ online start", "process/north-1/ offline restart",
                                  "process/north-2/ online start"));
  EXPECT_THAT(publisher_.remembered,
              ::testing::Contains(::testing::Field(&OutboxEvent::topic, "process/north-1/")))
      << "for those who subscribe now";
}

TEST_F(AlertRecovery, WhatBecameOfTheOutboxIsToldByTheProcess) {
  const auto kept = make_memory_outbox();
  WatchedOutbox outbox(*kept);
  outbox.notices = {{"outbox_replaced", "what was there could not be read"}};
  AlertDesk alerts = desk(outbox);
  alerts.tick();
  const json data = json::parse(publisher_.messages.back().body).at("data");
  EXPECT_EQ(data.at("state"), "online");
  EXPECT_EQ(data.at("reason"), "outbox_replaced");
  EXPECT_EQ(data.at("text"), "what was there could not be read");
  EXPECT_THAT(publisher_.messages, SizeIs(2)) << "after that it is there";
  alerts.tick();
  EXPECT_THAT(publisher_.messages, SizeIs(2));
}

TEST_F(AlertRecovery, AnOutboxThatTakesTheOthersPlaceKnowsWhatIsOpen) {
  const auto first = make_memory_outbox();
  const auto second = make_memory_outbox();
  WatchedOutbox outbox(*first);
  second->append({0, "status/south/yard/", 1, {}, "of an earlier process"});
  second->acknowledge(1);
  std::string open;
  {
    AlertDesk alerts = desk(outbox);
    for (const double end : {2.0, 4.0}) observe(alerts, end, 0.1F, 0.9F);
    open = alerts.take_evidence_requests().at(0).episode;
    EXPECT_THAT(publisher_.remembered, IsEmpty());
    outbox.replace(*second);
    outbox.notices = {{"outbox_replaced", "it was damaged"}};
    alerts.tick();
    EXPECT_EQ(alerts.failure(), "");
    EXPECT_THAT(publisher_.remembered,
                ::testing::ElementsAre(::testing::Field(&OutboxEvent::topic, "status/south/yard/")))
        << "for those who subscribe now";
    alerts.tick();
    EXPECT_THAT(publisher_.remembered, SizeIs(1));
  }
  AlertDesk next = desk(*second);
  next.tick();
  const auto words = last_words(all_events(*second), "topic/staff/north/gate/car/");
  EXPECT_THAT(words, ElementsAre(::testing::Pair(open, "end failed")));
  std::vector<std::string> states;
  for (const OutboxEvent& event : all_events(*second))
    if (event.topic.starts_with("process/"))
      states.push_back(json::parse(event.body).at("data").at("reason"));
  EXPECT_THAT(states, ElementsAre("outbox_replaced", "restart", "start"));
}

TEST_F(AlertRecovery, NotesThatCannotBeReadAreNoTrouble) {
  const auto kept = make_memory_outbox();
  std::vector<OutboxNote> notes = {{"episode/E", "{"}, {"episode/F", "[]"}, {"other", "x"}};
  notes.push_back({"episode/G", R"({"topics": "x", "event": "y"})"});
  notes.push_back({"episode/H", R"({"topics": [1], "event": "{}"})"});
  kept->append({}, notes);
  AlertDesk alerts = desk(*kept, "");
  alerts.tick();
  EXPECT_EQ(alerts.failure(), "");
  EXPECT_THAT(all_events(*kept), IsEmpty());
}

TEST_F(AlertRecovery, AnEpisodeThatAnotherProgramEndedMeanwhileIsNotEndedAgain) {
  const auto kept = make_memory_outbox();
  {
    AlertDesk alerts = desk(*kept, "");
    for (const double end : {2.0, 4.0}) observe(alerts, end, 0.1F, 0.9F);
  }
  const auto notes = kept->notes();
  // One that knows no notes.
  const auto ended = make_memory_outbox();
  for (const OutboxEvent& event : all_events(*kept)) ended->append(event);
  desk(*ended, "").tick();
  std::vector<OutboxNote> left;
  for (const auto& [key, value] : notes) left.push_back({key, value});
  ended->append({}, left);
  const std::size_t all = all_events(*ended).size();
  desk(*ended, "").tick();
  EXPECT_EQ(all_events(*ended).size(), all);
  EXPECT_THAT(ended->notes(), IsEmpty());
}

}  // namespace
}  // namespace vigil::actors
