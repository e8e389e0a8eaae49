// Gateways without a net between them, for tests.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "fleet/events/gateway_joining.h"
#include "fleet/messages/shipped.h"
#include "tests/fleet/events/events_world.h"

namespace vigil::fleet::testing {

inline constexpr const char* kRule = "alert/t/c/r/";
inline constexpr const char* kCopy = "topic/n/t/c/r/";

inline std::string body(const std::string& episode, int number, const std::string& phase,
                        const std::string& topic) {
  return R"({"type":"dev.vigil.alert.v1","id":")" + episode + '-' + std::to_string(number) +
         R"(","time":"2026-01-01T00:00:00Z","data":{"episode":")" + episode + R"(","phase":")" + phase +
         R"(","on":")" + topic + "\"}}";
}

struct Gateway {
  Gateway(std::string the_name, const base::Clock& the_clock) : name(std::move(the_name)), clock(the_clock) {
    open();
  }
  void open() {
    joining.reset();
    desk.reset();
    desk.emplace(GatewayDesk::Options{name}, *outbox);
    joining.emplace(
        GatewayJoining::Options{.name = name,
                                .token = [this](const std::string& after) { return token(after); },
                                .pause = base::Duration(10)},
        *desk, clock);
  }
  std::vector<std::string> events() const {
    std::vector<std::string> all;
    actors::ReplayQuery query;
    query.topics = {""};
    query.max_events = 100'000;
    query.max_bytes = query.max_scanned = 100'000'000;
    for (const actors::OutboxEvent& event : outbox->replay(query).events)
      all.push_back(event.topic + std::to_string(event.sequence) + event.body);
    return all;
  }

  /// `tokens` stands for the time of day.
  std::string token(const std::string& after) {
    const int before = after.empty() ? 0 : std::stoi(after.substr(name.size())) - 1000;
    tokens = std::max(tokens, before) + 1;
    return name + std::to_string(1000 + tokens);
  }

  /// Without what is of this one alone.
  std::map<std::string, std::string> notes() const {
    std::map<std::string, std::string> notes = outbox->notes();
    EXPECT_EQ(notes.erase("gateway/served"), 1);
    return notes;
  }

  std::string name;
  const base::Clock& clock;
  std::unique_ptr<actors::Outbox> outbox = actors::make_memory_outbox();
  std::optional<GatewayDesk> desk;
  std::optional<GatewayJoining> joining;
  int tokens = 0;
};

class GatewaysTest : public ::testing::Test {
 protected:
  /// Until both have nothing to ask any more.
  void settle() {
    for (int round = 0; round < 200; ++round) {
      for (Gateway* gateway : all_) {
        gateway->joining->see(view_);
        for (GatewayJoining::Ask& ask : gateway->joining->take_asks()) {
          Gateway& asked = named(ask.to);
          ++asks_;
          if (view_.contains(asked.name) && asked.desk->born() == view_.at(asked.name).born) {
            gateway->joining->heard(ask.to, asked.joining->answer(ask.question));
          } else {
            gateway->joining->failed(ask.to, ask.question.number);
          }
          if (gateway->joining->wants_empty_outbox()) {
            gateway->outbox = actors::make_memory_outbox();
            gateway->open();
            ++emptied_;
            break;
          }
        }
        const auto own = view_.find(gateway->name);
        if (own != view_.end()) own->second.serves = gateway->desk->mode() == GatewayMode::serving;
      }
      clock_.ms += 5;
    }
  }
  Gateway& named(const std::string& name) {
    return **std::find_if(all_.begin(), all_.end(), [&](const Gateway* each) { return each->name == name; });
  }
  void come(Gateway& gateway) {
    gateway.open();
    view_[gateway.name] = {gateway.name + std::to_string(++records_), records_, false};
  }
  /// It asks once; only these answer.
  void ask(Gateway& gateway, const std::vector<Gateway*>& these) {
    clock_.ms += 20;
    for (Gateway* each : all_) each->joining->see(view_);
    for (const GatewayJoining::Ask& ask : gateway.joining->take_asks()) {
      Gateway& asked = named(ask.to);
      if (std::find(these.begin(), these.end(), &asked) == these.end()) {
        gateway.joining->failed(ask.to, ask.question.number);
      } else {
        gateway.joining->heard(ask.to, asked.joining->answer(ask.question));
      }
    }
  }
  /// The power was gone: all of these are started again, with what their disks have.
  void restart(const std::vector<Gateway*>& these) {
    view_.clear();
    for (Gateway* gateway : these) come(*gateway);
  }
  void go(Gateway& gateway) { view_.erase(gateway.name); }
  /// Both are started, and the maker's series is claimed at both.
  void let_both_serve() {
    restart({&one_, &other_});
    settle();
    claim(one_);
    claim(other_);
  }
  void expect_both_to_have(const std::vector<std::string>& events) {
    settle();
    EXPECT_EQ(one_.events(), events);
    EXPECT_EQ(other_.events(), events);
  }

  MakerTalk talk(const Gateway& gateway) {
    MakerTalk talk;
    talk.maker = "m";
    talk.session = "s";
    talk.born = gateway.desk->born();
    talk.token = gateway.desk->token();
    for (const Gateway* each : all_)
      if (each->desk->mode() != GatewayMode::away)
        talk.all.push_back({each->name, each->desk->born(), each->desk->token()});
    return talk;
  }
  void claim(Gateway& gateway, std::uint64_t fence = 1) {
    MakerTalk claims = talk(gateway);
    claims.claims = {{"c", fence}};
    ASSERT_THAT(gateway.desk->answer(claims).claims, ::testing::SizeIs(1));
  }
  /// An event on two topics, staged at all that serve, and committed if that is wanted.
  void tell(const std::vector<Gateway*>& gateways, const std::string& episode, int number,
            const std::string& phase, bool commits = true) {
    const std::uint64_t sequence = ++sequence_;
    for (Gateway* gateway : gateways) {
      MakerTalk offer = talk(*gateway);
      offer.offers = {{"c", 1, {}}};
      CommitUnit unit;
      for (const char* topic : {kRule, kCopy}) {
        offer.offers.front().events.push_back(
            {topic, sequence, 0, body(episode, number, phase, topic), sequence});
        unit.places.push_back({topic, sequence, fingerprint(offer.offers.front().events.back().body)});
      }
      if (commits) offer.commits = {{"c", 1, {unit}}};
      const GatewayTalk answer = gateway->desk->answer(offer);
      ASSERT_EQ(answer.offers.at(0).verdict, SeriesVerdict::done);
      if (commits) {
        ASSERT_EQ(answer.commits.at(0).verdict, SeriesVerdict::done);
      }
    }
  }

  TestClock clock_;
  Gateway one_{"g1", clock_}, other_{"g2", clock_}, third_{"g3", clock_};
  const std::vector<Gateway*> all_ = {&one_, &other_, &third_};
  GatewayView view_;
  std::uint64_t records_ = 0;
  std::uint64_t sequence_ = 0;
  int asks_ = 0;
  int emptied_ = 0;
};

}  // namespace vigil::fleet::testing
