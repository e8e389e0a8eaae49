// Nodes that have a camera one after the other, and what gateways keep of it.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "actors/alerts/alert_desk.h"
#include "actors/messages/topic.h"
#include "tests/actors/events.h"
#include "tests/actors/watched_outbox.h"

namespace vigil::actors::testing {

using nlohmann::json;
using Claim = SeriesClaims::Claim;

/// All gateways of a fleet as one: what they commit has no gap, and nothing has two numbers.
class Gateways {
 public:
  /// What a node's publisher was given.
  void commit(FakePublisher& publisher) {
    for (OutboxEvent& event : std::exchange(publisher.messages, {})) {
      std::vector<OutboxEvent>& topic = topics[event.topic];
      if (event.sequence <= topic.size()) {
        EXPECT_EQ(event.body, topic[event.sequence - 1].body) << event.topic << " told anew";
        continue;
      }
      EXPECT_EQ(event.sequence, topic.size() + 1) << event.topic;
      const json body = json::parse(event.body);
      expect_valid(body);
      EXPECT_EQ(body.at("data").at("seq"), event.sequence);
      std::vector<std::string>& copies = copies_[body.at("id")];
      copies.push_back(event.topic);
      if (const auto name = event_name(event.body)) {
        const OutboxNote note = episode_note(copies, event.body);
        if (note.value) {
          notes[note.key] = *note.value;
        } else {
          notes.erase(note.key);
        }
      }
      topic.push_back(event);
    }
  }
  SeriesBooks claim(const std::string& camera, std::uint64_t fence, const std::string& node) {
    const std::string series = camera.empty() ? "process/" + node + '/' : camera;
    // Of whose tenures in a row the first had which fence.
    auto& [owner, since] = owners[series];
    SeriesBooks books{camera, fence, std::exchange(fences[series], fence), 0, {}, {}};
    if (owner != node) since = fence;
    if (!std::exchange(owner, node).empty()) books.since = since;
    for (const auto& [topic, events] : topics)
      if ((topic == series || series_of(topic) == series) && !events.empty())
        books.last.push_back(events.back());
    for (const auto& [key, value] : notes) books.notes.push_back({key, value});
    return books;
  }
  /// "phase number reason" of what was told on topics that begin so, or "state"; "*" for evidence alone.
  std::vector<std::string> told(const std::string& prefix) const {
    std::vector<std::string> result;
    for (const auto& [topic, events] : topics) {
      if (!topic.starts_with(prefix)) continue;
      for (const OutboxEvent& event : events) {
        const json data = json::parse(event.body).at("data");
        if (data.contains("state")) {
          result.push_back(data.at("state"));
          continue;
        }
        const auto name = event_name(event.body).value();
        const std::string reason = data.value("end_reason", "");
        result.push_back(data.at("phase").get<std::string>() + ' ' + std::to_string(name.number) +
                         (reason.empty() ? "" : ' ' + reason) + (data.contains("cause") ? "*" : ""));
      }
    }
    return result;
  }
  json last(const std::string& topic) const { return json::parse(topics.at(topic).back().body); }

  std::map<std::string, std::vector<OutboxEvent>> topics;
  std::map<std::string, std::string> notes;
  std::map<std::string, std::uint64_t> fences;
  std::map<std::string, std::pair<std::string, std::uint64_t>> owners;

 private:
  std::map<std::string, std::vector<std::string>> copies_;
};

inline const std::string kAlert = "alert/north/gate/person/";

class AlertHandover : public ::testing::Test {
 protected:
  /// A process, until it is started again; its outbox is on its disk.
  struct Node {
    explicit Node(std::string called) : name(std::move(called)) {}
    std::string name;
    std::unique_ptr<Outbox> disk = make_memory_outbox();
    std::unique_ptr<WatchedOutbox> outbox = std::make_unique<WatchedOutbox>(*disk);
    FakePublisher publisher;
    std::optional<AlertDesk> desk;
  };
  void start(Node& node, bool evidence = false, std::size_t backlog = 100) {
    AlertDesk::Options options{.model = {"m"},
                               .retention = 24h,
                               .backlog = backlog,
                               .run = ++runs_,
                               .process = node.name,
                               .claims = true};
    if (evidence) options.evidence = AlertDesk::Options::ClipRoll{5s, 3s};
    node.publisher = {};
    node.desk.emplace(options, *node.outbox, node.publisher, metrics_, clock_);
    node.desk->tick();
  }
  /// Answers what a node claims, and commits what it tells.
  void settle(Node& node) {
    for (const Claim& claim : node.desk->take_claims())
      node.desk->take_over(
          gateways_.claim(claim.camera, claim.camera.empty() ? ++revision_ : claim.fence, node.name));
    gateways_.commit(node.publisher);
  }
  /// Until what is known of a camera is told without a window.
  void be_patient(Node& node) {
    clock_.advance(2s);
    node.desk->tick();
  }
  WatchPtr owned(std::uint64_t fence) const { return watched(*gate_, version_of(fence, 1)); }
  void show(Node& node, std::uint64_t fence, double end, float score) {
    node.desk->observe(window_of(owned(fence), end, std::vector<float>(gate_->rules.size(), score)));
  }
  /// Two windows that begin an episode.
  void begin(Node& node, std::uint64_t fence, double from = 0) {
    for (const int end : {2, 4}) show(node, fence, from + end, 0.9F);
    settle(node);
  }
  std::string dropped() const {
    const std::string text = metrics_.text();
    const std::string line = "vigil_messages_dropped_total{reason=\"fence\",socket=\"outbox\"} ";
    const std::size_t at = text.find(line);
    return at == text.npos ? "" : text.substr(at + line.size(), text.find('\n', at) - at - line.size());
  }

  ManualClock clock_;
  Metrics metrics_;
  Gateways gateways_;
  std::shared_ptr<OwnCamera> gate_ = camera("gate");
  std::uint64_t runs_ = 0;
  std::uint64_t revision_ = 100;
  Node one_{"one"};
  Node two_{"two"};
};

}  // namespace vigil::actors::testing
