// What the gate costs: events a second and the time from publishing to receiving, through it and beside it
// (a ZeroMQ socket that is bound to TCP itself), in turns in one process. JSON lines.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <zmq.hpp>

#include "cluster/process/process.h"
#include "cluster/sockets/gate.h"
#include "cluster/topics/topics.h"
#include "services/build_info.h"

namespace {

using namespace vigil::cluster;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;
using Clock = std::chrono::steady_clock;

struct Load {
  int events = 0;
  int round_trips = 0;
  std::string body;
};

struct Result {
  double events_per_second = 0;
  double cpu_microseconds_per_event = 0;
  std::vector<double> microseconds;
};

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

Result measure(bool gated, const Load& load) {
  // The entrance outlives the context.
  Entrance entrance;
  zmq::context_t context;
  zmq::socket_t source(context, zmq::socket_type::xpub);
  // ZeroMQ hears of what was read when half of the mark is: all events fit beside what it has not heard of.
  const int mark = 2 * load.events + 2;
  source.set(zmq::sockopt::sndhwm, mark);
  source.set(zmq::sockopt::linger, 0);
  std::string endpoint;
  if (gated) {
    entrance.open(source, "tcp://127.0.0.1:0", {}, {}, 0ms);
    endpoint = entrance.endpoint();
  } else {
    source.bind("tcp://127.0.0.1:*");
    endpoint = source.get(zmq::sockopt::last_endpoint);
  }
  TopicSubscriber sink({.endpoint = endpoint, .prefixes = {""}, .high_water_mark = mark});
  zmq::message_t subscription;
  if (!source.recv(subscription)) throw std::runtime_error("nobody subscribed");

  Result result;
  const TopicMessage event{"alert/default/gate/person/", 1, load.body, 1};
  for (int i = 0; i < load.round_trips; ++i) {
    const auto begin = Clock::now();
    send_message(source, event);
    if (!sink.receive(10s)) throw std::runtime_error("an event was lost");
    result.microseconds.push_back(seconds_since(begin) * 1e6);
  }
  const auto begin = Clock::now();
  const double cpu = process_cpu_seconds();
  std::thread sender([&] {
    for (int i = 0; i < load.events; ++i) send_message(source, event);
  });
  for (int i = 0; i < load.events; ++i) {
    if (!sink.receive(10s)) throw std::runtime_error("an event was lost");
  }
  sender.join();
  result.events_per_second = load.events / seconds_since(begin);
  result.cpu_microseconds_per_event = (process_cpu_seconds() - cpu) / load.events * 1e6;
  return result;
}

struct Spread {
  double mean = 0;
  double deviation = 0;
};

Spread spread_of(const std::vector<double>& values) {
  Spread spread;
  for (const double each : values) spread.mean += each / static_cast<double>(values.size());
  for (const double each : values) spread.deviation += std::pow(each - spread.mean, 2);
  spread.deviation =
      std::sqrt(spread.deviation / static_cast<double>(std::max<std::size_t>(values.size(), 2) - 1));
  return spread;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("What the gate before a ZeroMQ socket costs");
  Load load{.events = 100'000, .round_trips = 5000, .body = {}};
  int rounds = 5;
  std::size_t bytes = 1000;
  app.add_option("--events", load.events, "sent at once, in each round")->check(CLI::Range(1, 10'000'000));
  app.add_option("--round-trips", load.round_trips, "in each round")->check(CLI::Range(1, 10'000'000));
  app.add_option("--rounds", rounds, "turns of each")->check(CLI::Range(2, 1000));
  app.add_option("--bytes", bytes, "of an event's body")->check(CLI::Range(1, 1 << 20));
  CLI11_PARSE(app, argc, argv);
  load.body.assign(bytes, 'x');

  std::vector<double> rates[2];
  std::vector<double> costs[2];
  std::vector<double> times[2];
  for (int round = 0; round < rounds; ++round) {
    for (const bool gated : {false, true}) {
      const Result result = measure(gated, load);
      rates[gated].push_back(result.events_per_second);
      costs[gated].push_back(result.cpu_microseconds_per_event);
      times[gated].insert(times[gated].end(), result.microseconds.begin(), result.microseconds.end());
    }
  }
  for (const bool gated : {false, true}) {
    std::sort(times[gated].begin(), times[gated].end());
    const auto percentile = [&](double share) {
      return times[gated][static_cast<std::size_t>(share * static_cast<double>(times[gated].size() - 1))];
    };
    const Spread rate = spread_of(rates[gated]);
    const Spread cost = spread_of(costs[gated]);
    const nlohmann::json line = {
        {"bench", "gate"},
        {"variant", gated ? "gate" : "direct"},
        {"event_bytes", bytes},
        {"rounds", rounds},
        {"events_per_s", {{"mean", rate.mean}, {"deviation", rate.deviation}}},
        {"cpu_us_per_event", {{"mean", cost.mean}, {"deviation", cost.deviation}}},
        {"latency_us", {{"p50", percentile(0.5)}, {"p99", percentile(0.99)}, {"max", percentile(1)}}},
        {"processor", processor_name()},
        {"load", load_average()},
        {"commit", vigil::services::kCommit}};
    std::cout << line.dump() << std::endl;
  }
}
