// A window's pages on their way from a node to another one, as a text that is explained elsewhere takes them:
// from the device into the host's memory, through the bulk transport from one process to another, and onto
// the other device. The wire is loopback. A JSON object a line: milliseconds for one window, from the first
// copy until the sender has heard that all of it lies on the other device.
//
//   bench_pages_nodes [DEVICE] [OTHER] [TOKENS] [LAYERS] [KV_HEADS] [HEAD_DIM]
//   (as of bench_pages; DEVICE and OTHER may be the same one)
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include "cluster/bulk/socket_bulk.h"
#include "cluster/process/clock.h"
#include "engine/kv/page_store.h"
#include "engine/run/device.h"
#include "loadtest/bulk/ends.h"
#include "loadtest/engine/median.h"

namespace {

using namespace vigil;
using loadtest::Ends;
using loadtest::exchange;
using loadtest::Signal;

constexpr const char* kSender = "sender";
constexpr const char* kReceiver = "receiver";

struct Window {
  kv::PageLayout layout;
  std::int64_t pages = 0;
  std::size_t page() const { return static_cast<std::size_t>(layout.page_bytes()); }
  std::size_t bytes() const { return page() * static_cast<std::size_t>(pages); }
  std::byte at(std::size_t i) const { return static_cast<std::byte>(i * 2654435761U >> 24U); }
};

struct Device {
  Device(const std::string& name, const Window& window)
      : stream(run::make_streams(run::parse_device(name), 0).front()),
        store(stream, window.layout, window.pages) {}
  kernels::Stream stream;
  kv::PageStore store;
};

/// Hands what a port hears to another thread.
class Mailbox final : public cluster::BulkOwner {
 public:
  void received(const std::string&, cluster::BulkReceived received) override {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(received));
    changed_.notify_all();
  }
  void room(const std::string&) override { may_send.give(); }
  void opened(const std::string&, cluster::BulkDirection direction, std::uint64_t) override {
    if (direction == cluster::BulkDirection::outgoing) may_send.give();
  }
  cluster::BulkReceived take() {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, std::chrono::seconds(60), [&] { return !waiting_.empty(); }))
      throw std::runtime_error("nothing comes");
    cluster::BulkReceived first = std::move(waiting_.front());
    waiting_.pop_front();
    return first;
  }

  Signal may_send;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<cluster::BulkReceived> waiting_;
};

/// One side: its port, and a way to the other one.
class Side {
 public:
  Side(std::string name, const cluster::KeyPair* keys)
      : port_({.name = std::move(name)}, sockets(keys), mailbox_, clock_) {}
  void meet(const std::string& other, const std::string& endpoint, const cluster::KeyPair* keys) {
    other_ = other;
    port_.set_peers({{other, endpoint, keys ? std::vector{keys->public_key} : std::vector<std::string>()}});
    mailbox_.may_send.wait();
  }
  void send(const cluster::BulkMessage& message) {
    while (!port_.send(other_, message)) mailbox_.may_send.wait();
  }
  cluster::BulkReceived take() { return mailbox_.take(); }
  const std::string& endpoint() const { return port_.endpoint(); }

 private:
  static cluster::SocketBulkOptions sockets(const cluster::KeyPair* keys) {
    cluster::SocketBulkOptions options{.endpoint = "tcp://127.0.0.1:0"};
    if (keys) options.keys = *keys;
    return options;
  }

  cluster::SystemClock clock_;
  Mailbox mailbox_;
  std::string other_;
  cluster::SocketBulk port_;
};

/// Takes windows until an empty message comes; looks at the last one's bytes.
void receive(const Window& window, const std::string& device, Side& side) {
  const Device own(device, window);
  // As of texts of other nodes, whose pages have a bound of their own: what has come is no more under way.
  std::vector<cluster::Bytes> pages;
  for (cluster::BulkReceived each = side.take(); !each.message.parts.empty(); each = side.take()) {
    pages.push_back(each.message.parts.front());
    each.receipt = {};
    if (pages.size() < static_cast<std::size_t>(window.pages)) continue;
    for (std::size_t i = 0; i < pages.size(); ++i)
      kernels::upload(own.stream, own.store.page(static_cast<kv::PageId>(i)), pages[i].data(), window.page());
    own.stream.synchronize();
    pages.clear();
    side.send({"there", {}});
  }
  std::vector<std::byte> back(window.bytes());
  for (std::int64_t i = 0; i < window.pages; ++i)
    kernels::download(own.stream, back.data() + static_cast<std::size_t>(i) * window.page(),
                      own.store.page(static_cast<kv::PageId>(i)), window.page());
  own.stream.synchronize();
  for (std::size_t i = 0; i < back.size(); ++i)
    if (back[i] != window.at(i)) throw std::runtime_error("other bytes have come");
}

struct Times {
  double all_ms = 0;
  /// Until the pages were in the sender's memory.
  double off_ms = 0;
};

Times send(const Window& window, const std::string& device, Side& side) {
  const Device own(device, window);
  {
    std::vector<std::byte> host(window.bytes());
    for (std::size_t i = 0; i < host.size(); ++i) host[i] = window.at(i);
    for (std::int64_t i = 0; i < window.pages; ++i)
      kernels::upload(own.stream, own.store.page(static_cast<kv::PageId>(i)),
                      host.data() + static_cast<std::size_t>(i) * window.page(), window.page());
    own.stream.synchronize();
  }
  std::vector<double> off;
  const auto once = [&] {
    const auto begin = std::chrono::steady_clock::now();
    std::vector<cluster::Bytes> pages;
    for (std::int64_t i = 0; i < window.pages; ++i) {
      const std::shared_ptr<std::byte[]> page(new std::byte[window.page()]);
      kernels::download(own.stream, page.get(), own.store.page(static_cast<kv::PageId>(i)), window.page());
      pages.emplace_back(std::shared_ptr<const std::byte>(page, page.get()), window.page());
    }
    own.stream.synchronize();
    const std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - begin;
    off.push_back(taken.count());
    for (std::size_t i = 0; i < pages.size(); ++i) side.send({std::to_string(i), {std::move(pages[i])}});
    side.take();
  };
  const double time = median_ms([] {}, once);
  side.send({"end", {}});
  std::nth_element(off.begin(), off.begin() + static_cast<std::ptrdiff_t>(off.size() / 2), off.end());
  return {time, off[off.size() / 2]};
}

void measure(const Window& window, const std::string& from, const std::string& to, bool is_encrypted) {
  const cluster::KeyPair own = cluster::make_key_pair(), other = cluster::make_key_pair();
  const auto keys = [&](const cluster::KeyPair& pair) { return is_encrypted ? &pair : nullptr; };
  const Ends ends;
  // Before anything of CUDA is there.
  std::fflush(stdout);
  const pid_t child = ::fork();
  if (child < 0) loadtest::fail("fork");
  if (child == 0) {
    try {
      Side side(kReceiver, keys(other));
      side.meet(kSender, exchange(side.endpoint(), ends.to_parent[1], ends.to_child[0]), keys(own));
      receive(window, to, side);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "bench_pages_nodes: %s\n", error.what());
      ::_exit(1);
    }
    ::_exit(0);
  }
  Times time;
  {
    // In a process of its own, too, so that the next one can be made before CUDA is.
    const Ends result;
    const pid_t sender = ::fork();
    if (sender < 0) loadtest::fail("fork");
    if (sender == 0) {
      try {
        Side side(kSender, keys(own));
        side.meet(kReceiver, exchange(side.endpoint(), ends.to_child[1], ends.to_parent[0]), keys(other));
        const Times taken = send(window, from, side);
        loadtest::write_all(result.to_parent[1], &taken, sizeof taken);
        // The receiver ends first, having heard of it.
        char rest = 0;
        loadtest::read_all(result.to_child[0], &rest, 1);
      } catch (const std::exception& error) {
        std::fprintf(stderr, "bench_pages_nodes: %s\n", error.what());
        ::_exit(1);
      }
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    const char rest = 0;
    loadtest::write_all(result.to_child[1], &rest, 1);
    int other_status = 0;
    ::waitpid(sender, &other_status, 0);
    if (status != 0 || other_status != 0) throw std::runtime_error("one side failed");
    loadtest::read_all(result.to_parent[0], &time, sizeof time);
  }
  std::printf(
      "{\"bench\": \"pages\", \"way\": \"%s\", \"from\": \"%s\", \"to\": \"%s\", \"pages\": %lld, \"bytes\": "
      "%zu, "
      "\"ms\": %.3f, \"off_ms\": %.3f, \"gb_per_s\": %.1f}\n",
      is_encrypted ? "to another process, CURVE" : "to another process", from.c_str(), to.c_str(),
      static_cast<long long>(window.pages), window.bytes(), time.all_ms, time.off_ms,
      static_cast<double>(window.bytes()) / 1e6 / time.all_ms);
}

}  // namespace

int main(int argc, char** argv) {
  const auto word = [&](int i, const char* otherwise) { return std::string(argc > i ? argv[i] : otherwise); };
  const auto number = [&](int i, int otherwise) { return argc > i ? std::atoi(argv[i]) : otherwise; };
  try {
    Window window{{.layers = number(4, 28),
                   .kv_heads = number(5, 4),
                   .head_dim = number(6, 128),
                   .dtype = kernels::DType::bf16}};
    window.pages = (number(3, 2048) + window.layout.page_tokens - 1) / window.layout.page_tokens;
    for (const bool is_encrypted : {false, true})
      measure(window, word(1, "cuda:0"), word(2, "cuda:0"), is_encrypted);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_pages_nodes: %s\n", error.what());
    return 1;
  }
  return 0;
}
