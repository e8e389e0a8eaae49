// What bulk transport carries from one process to another on loopback, and how long a message takes, beside a
// plain copy over TCP of the same bytes: one process writes a buffer, the other reads it into a buffer. All
// variants in turns, JSON lines.

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <iostream>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <nlohmann/json.hpp>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "cluster/bulk/socket_bulk.h"
#include "cluster/process/clock.h"
#include "cluster/process/process.h"
#include "loadtest/bulk/ends.h"
#include "services/build_info.h"

namespace {

using namespace vigil::cluster;
using vigil::base::Descriptor;
using vigil::loadtest::Ends;
using vigil::loadtest::exchange;
using vigil::loadtest::fail;
using vigil::loadtest::read_all;
using vigil::loadtest::Signal;
using vigil::loadtest::write_all;
using Clock = std::chrono::steady_clock;

struct Variant {
  std::string name;
  bool tcp = false;
  bool sums = false;
  bool curve = false;
};

struct Load {
  std::size_t bytes = 0;
  int messages = 0;
  /// Between two messages; none: as fast as they go.
  std::chrono::microseconds pause{0};
};

struct Result {
  double megabytes_per_second = 0;
  double cpu_seconds_per_gigabyte = 0;
  std::vector<double> microseconds;
};

struct Tuning {
  int io_threads = 1;
  int buffer = -1;
  std::uint64_t credit = BulkLimits().bytes;
};

std::int64_t now() {
  return Clock::now().time_since_epoch().count();
}

/// The receiver's book: when messages came, and how long they took.
class Arrivals {
 public:
  explicit Arrivals(const Load& load) : load_(load) {}

  void arrived(std::int64_t sent) {
    const std::int64_t at = now();
    if (count_++ == 0) first_ = at;
    last_ = at;
    if (load_.pause.count() > 0) microseconds_.push_back(static_cast<double>(at - sent) / 1e3);
  }
  bool all() const { return count_ == load_.messages; }
  Result result() const {
    Result result;
    // From the end of the first message to the end of the last one.
    const double bytes = static_cast<double>(load_.bytes) * (count_ - 1);
    result.megabytes_per_second = bytes / 1e6 / (static_cast<double>(last_ - first_) / 1e9);
    result.microseconds = microseconds_;
    return result;
  }

 private:
  Load load_;
  int count_ = 0;
  std::int64_t first_ = 0;
  std::int64_t last_ = 0;
  std::vector<double> microseconds_;
};

void pace(const Load& load, std::int64_t begin, int message) {
  if (load.pause.count() == 0) return;
  std::this_thread::sleep_until(Clock::time_point(Clock::duration(begin)) + message * load.pause);
}

void send_tcp(const Load& load, std::uint16_t port) {
  const Descriptor socket(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in there{};
  there.sin_family = AF_INET;
  there.sin_port = port;
  there.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(socket.number(), reinterpret_cast<const sockaddr*>(&there), sizeof there) != 0)
    fail("connect");
  const int on = 1;
  ::setsockopt(socket.number(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  std::string buffer(load.bytes, 'x');
  const std::int64_t begin = now();
  for (int i = 0; i < load.messages; ++i) {
    pace(load, begin, i);
    const std::int64_t sent = now();
    std::memcpy(buffer.data(), &sent, sizeof sent);
    write_all(socket.number(), buffer.data(), buffer.size());
  }
}

Result receive_tcp(const Load& load, const Descriptor& listener) {
  const Descriptor socket(::accept(listener.number(), nullptr, nullptr));
  std::string buffer(load.bytes, '\0');
  Arrivals arrivals(load);
  while (!arrivals.all()) {
    read_all(socket.number(), buffer.data(), buffer.size());
    std::int64_t sent = 0;
    std::memcpy(&sent, buffer.data(), sizeof sent);
    arrivals.arrived(sent);
  }
  return arrivals.result();
}

class Sender final : public BulkOwner {
 public:
  void received(const std::string&, BulkReceived) override {}
  void room(const std::string&) override { may_send.give(); }
  void opened(const std::string&, BulkDirection direction, std::uint64_t) override {
    if (direction == BulkDirection::outgoing) may_send.give();
  }
  void acknowledged(const std::string&, std::uint64_t) override {
    const std::lock_guard lock(mutex_);
    if (++acknowledged_ == awaited_) all_acknowledged.give();
  }
  void await(std::uint64_t count) {
    {
      const std::lock_guard lock(mutex_);
      awaited_ = count;
      if (acknowledged_ == awaited_) return;
    }
    all_acknowledged.wait();
  }

  Signal may_send;
  Signal all_acknowledged;

 private:
  std::mutex mutex_;
  std::uint64_t acknowledged_ = 0;
  std::uint64_t awaited_ = 0;
};

class Receiver final : public BulkOwner {
 public:
  explicit Receiver(const Load& load) : arrivals(load) {}
  void received(const std::string&, BulkReceived received) override {
    std::int64_t sent = 0;
    std::memcpy(&sent, received.message.header.data(), sizeof sent);
    arrivals.arrived(sent);
    if (arrivals.all()) done.give();
  }

  Arrivals arrivals;
  Signal done;
};

BulkOptions options_of(const Variant& variant, const std::string& name, const Tuning& tuning) {
  BulkOptions options{.name = name, .checksums = variant.sums};
  options.limits.bytes = tuning.credit;
  options.limits.message = std::min(options.limits.message, tuning.credit);
  return options;
}

SocketBulkOptions sockets_of(const Variant& variant, const KeyPair& keys, const Tuning& tuning) {
  SocketBulkOptions sockets{.endpoint = "tcp://127.0.0.1:0",
                            .io_threads = tuning.io_threads,
                            .send_buffer = tuning.buffer,
                            .receive_buffer = tuning.buffer};
  if (variant.curve) sockets.keys = keys;
  return sockets;
}

BulkPeer peer(const Variant& variant, const std::string& name, const std::string& endpoint,
              const KeyPair& keys) {
  return {name, endpoint, variant.curve ? std::vector{keys.public_key} : std::vector<std::string>()};
}

struct Keys {
  KeyPair sender = make_key_pair();
  KeyPair receiver = make_key_pair();
};

void send_bulk(const Variant& variant, const Load& load, const Keys& keys, const Tuning& tuning,
               const Ends& ends) {
  SystemClock clock;
  Sender owner;
  SocketBulk port(options_of(variant, "sender", tuning), sockets_of(variant, keys.sender, tuning), owner,
                  clock);
  const std::string there = exchange(port.endpoint(), ends.to_parent[1], ends.to_child[0]);
  port.set_peers({peer(variant, "receiver", there, keys.receiver)});
  owner.may_send.wait();
  const Bytes body(std::string(load.bytes, 'x'));
  const std::int64_t begin = now();
  for (int i = 0; i < load.messages; ++i) {
    pace(load, begin, i);
    std::int64_t sent = now();
    BulkMessage message{std::string(reinterpret_cast<const char*>(&sent), sizeof sent), {body}};
    while (!port.send("receiver", message)) owner.may_send.wait();
  }
  owner.await(static_cast<std::uint64_t>(load.messages));
}

Result receive_bulk(const Variant& variant, const Load& load, const Keys& keys, const Tuning& tuning,
                    const Ends& ends) {
  SystemClock clock;
  Receiver owner(load);
  SocketBulk port(options_of(variant, "receiver", tuning), sockets_of(variant, keys.receiver, tuning), owner,
                  clock);
  const std::string there = exchange(port.endpoint(), ends.to_child[1], ends.to_parent[0]);
  port.set_peers({peer(variant, "sender", there, keys.sender)});
  owner.done.wait();
  // What is let go of last goes out.
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  return owner.arrivals.result();
}

Result measure(const Variant& variant, const Load& load, const Tuning& tuning) {
  const Descriptor listener(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in own{};
  own.sin_family = AF_INET;
  own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof own;
  if (::bind(listener.number(), reinterpret_cast<const sockaddr*>(&own), sizeof own) != 0 ||
      ::listen(listener.number(), 1) != 0 ||
      ::getsockname(listener.number(), reinterpret_cast<sockaddr*>(&own), &size) != 0)
    fail("listen");
  Ends ends;
  const Keys keys;
  const double cpu = process_cpu_seconds();
  const pid_t child = ::fork();
  if (child < 0) fail("fork");
  if (child == 0) {
    try {
      variant.tcp ? send_tcp(load, own.sin_port) : send_bulk(variant, load, keys, tuning, ends);
    } catch (const std::exception& error) {
      std::cerr << error.what() << std::endl;
      ::_exit(1);
    }
    ::_exit(0);
  }
  Result result = variant.tcp ? receive_tcp(load, listener) : receive_bulk(variant, load, keys, tuning, ends);
  int status = 0;
  rusage used{};
  ::wait4(child, &status, 0, &used);
  if (status != 0) throw std::runtime_error("the sender failed");
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  const double spent = process_cpu_seconds() - cpu + seconds(used.ru_utime) + seconds(used.ru_stime);
  result.cpu_seconds_per_gigabyte = spent / (static_cast<double>(load.bytes) * load.messages / 1e9);
  return result;
}

double percentile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values.at(static_cast<std::size_t>(share * static_cast<double>(values.size() - 1)));
}

nlohmann::json common(const Variant& variant, std::size_t bytes, int rounds) {
  return {{"variant", variant.name},       {"message_bytes", bytes}, {"rounds", rounds},
          {"processor", processor_name()}, {"load", load_average()}, {"commit", vigil::services::kCommit}};
}

void measure_throughput(const std::vector<Variant>& variants, std::size_t bytes, std::size_t total,
                        int rounds, const Tuning& tuning) {
  std::vector<std::vector<double>> rates(variants.size());
  std::vector<std::vector<double>> ratios(variants.size());
  std::vector<std::vector<double>> costs(variants.size());
  const Load load{.bytes = bytes, .messages = static_cast<int>(std::max<std::size_t>(total / bytes, 10))};
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < variants.size(); ++i) {
      const Result result = measure(variants[i], load, tuning);
      rates[i].push_back(result.megabytes_per_second);
      ratios[i].push_back(result.megabytes_per_second / rates[0].back());
      costs[i].push_back(result.cpu_seconds_per_gigabyte);
    }
  }
  for (std::size_t i = 0; i < variants.size(); ++i) {
    nlohmann::json line = common(variants[i], bytes, rounds);
    line["bench"] = "bulk";
    line["mb_per_s"] = {{"median", percentile(rates[i], 0.5)},
                        {"least", percentile(rates[i], 0)},
                        {"most", percentile(rates[i], 1)}};
    line["of_tcp"] = percentile(ratios[i], 0.5);
    line["cpu_s_per_gb"] = percentile(costs[i], 0.5);
    std::cout << line.dump() << std::endl;
  }
}

void measure_latency(const std::vector<Variant>& variants, std::size_t bytes, int messages, int rounds,
                     const Tuning& tuning) {
  std::vector<std::vector<double>> times(variants.size());
  const Load load{.bytes = bytes, .messages = messages, .pause = std::chrono::milliseconds(2)};
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < variants.size(); ++i) {
      const Result result = measure(variants[i], load, tuning);
      times[i].insert(times[i].end(), result.microseconds.begin(), result.microseconds.end());
    }
  }
  for (std::size_t i = 0; i < variants.size(); ++i) {
    nlohmann::json line = common(variants[i], bytes, rounds);
    line["bench"] = "bulk latency";
    line["latency_us"] = {{"p50", percentile(times[i], 0.5)}, {"p99", percentile(times[i], 0.99)}};
    std::cout << line.dump() << std::endl;
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Bulk bytes between two processes, beside a plain copy over TCP");
  int rounds = 5;
  std::size_t megabytes = 1000;
  int messages = 500;
  std::vector<std::size_t> sizes = {4 << 10, 64 << 10, 1 << 20, 10 << 20};
  std::vector<std::size_t> latency_sizes = {1 << 10, 300 << 10};
  std::vector<std::string> only;
  Tuning tuning;
  app.add_option("--rounds", rounds, "turns of each")->check(CLI::Range(1, 1000));
  app.add_option("--megabytes", megabytes, "sent in a turn; a quarter of it in messages of 4 KiB")
      ->check(CLI::Range(1, 100'000));
  app.add_option("--messages", messages, "for latency, in a turn")->check(CLI::Range(2, 1'000'000));
  app.add_option("--sizes", sizes, "of messages, in bytes");
  app.add_option("--latency-sizes", latency_sizes, "of messages, in bytes");
  app.add_option("--only", only, "of the variants besides tcp");
  app.add_option("--io-threads", tuning.io_threads, "of ZeroMQ");
  app.add_option("--buffer", tuning.buffer, "of each socket, in bytes");
  app.add_option("--credit", tuning.credit, "bytes that may be under way");
  CLI11_PARSE(app, argc, argv);

  std::vector<Variant> variants = {{.name = "tcp", .tcp = true},
                                   {.name = "plain"},
                                   {.name = "sums", .sums = true},
                                   {.name = "curve", .curve = true},
                                   {.name = "curve and sums", .sums = true, .curve = true}};
  std::erase_if(variants, [&](const Variant& each) {
    return !each.tcp && !only.empty() && std::find(only.begin(), only.end(), each.name) == only.end();
  });
  for (const std::size_t bytes : sizes) {
    const std::size_t total = megabytes * 1'000'000 / (bytes < 16 << 10 ? 4 : 1);
    measure_throughput(variants, bytes, total, rounds, tuning);
  }
  for (const std::size_t bytes : latency_sizes) measure_latency(variants, bytes, messages, rounds, tuning);
}
