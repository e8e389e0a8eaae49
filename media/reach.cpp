#include "media/reach.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <map>
#include <mutex>
#include <span>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <netdb.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/url_mask.h"
#include "media/connect.h"
#include "media/ffmpeg.h"
#include "media/name_queue.h"
#include "media/server.h"

namespace vigil::media {
namespace {

using Clock = std::chrono::steady_clock;

/// Of a server that has more.
constexpr std::size_t kMostAddresses = 4;

bool is_exhaustion(int error) {
  return error == EMFILE || error == ENFILE;
}

/// A name's addresses, and who asked for them.
struct Found {
  std::vector<std::uint64_t> tickets;
  Resolved resolved;
};

/// What others hand to the thread that waits for sockets. Resolving cannot be interrupted, so the threads
/// that do it may outlive all but this.
class Inbox {
 public:
  explicit Inbox(int resolvers)
      : wake_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
        names_(std::max(resolvers * 3 / 4, 1)),
        most_(resolvers) {
    if (!wake_) throw std::runtime_error("no file descriptor is left to ask cameras with");
  }

  struct Question {
    std::uint64_t ticket = 0;
    std::string url;
    std::string shown_name;
  };
  struct Content {
    std::vector<Question> questions;
    std::vector<std::uint64_t> forgotten;
    std::vector<Found> found;
    bool over = false;
  };

  int descriptor() const { return wake_.number(); }

  void ask(Question question) {
    put([&] { content_.questions.push_back(std::move(question)); });
  }
  void forget(std::uint64_t ticket) {
    put([&] { content_.forgotten.push_back(ticket); });
  }
  void end() {
    put([&] {
      content_.over = over_ = true;
      names_.clear();
    });
    named_.notify_all();
  }

  Content take() {
    std::uint64_t count = 0;
    static_cast<void>(read(wake_.number(), &count, sizeof count));
    const std::lock_guard lock(mutex_);
    return std::exchange(content_, {{}, {}, {}, over_});
  }

  /// `found` of a later content has the addresses. False: there is no thread that could find them, and
  /// none can be made now.
  static bool resolve(const std::shared_ptr<Inbox>& inbox, std::uint64_t ticket, const Server& server) {
    const std::lock_guard lock(inbox->mutex_);
    // Those that run take it in their turn if the machine has no thread for another.
    const bool wanted = inbox->idle_ == 0 && inbox->running_ < inbox->most_;
    if (wanted && !start(inbox) && inbox->running_ == 0) return false;
    inbox->names_.add(ticket, server.host, server.port);
    inbox->named_.notify_one();
    return true;
  }

  /// Nobody waits for it any more.
  void drop(std::uint64_t ticket) {
    const std::lock_guard lock(mutex_);
    names_.drop(ticket);
  }

 private:
  template <class Change>
  void put(Change change) {
    {
      const std::lock_guard lock(mutex_);
      change();
    }
    const std::uint64_t one = 1;
    static_cast<void>(write(wake_.number(), &one, sizeof one));
  }

  /// With the mutex held.
  static bool start(const std::shared_ptr<Inbox>& inbox) {
    try {
      std::thread([inbox] { inbox->work(); }).detach();
    } catch (const std::system_error&) {
      return false;
    }
    ++inbox->running_;
    return true;
  }

  void work() {
    pthread_setname_np(pthread_self(), "resolver");
    std::unique_lock lock(mutex_);
    while (true) {
      ++idle_;
      named_.wait(lock, [this] { return over_ || names_.ready(); });
      --idle_;
      if (over_) return;
      const NameQueue::Name name = names_.take().value();
      lock.unlock();
      Found found{name.tickets, media::resolve(name.host, name.port, 0)};
      put([&] { content_.found.push_back(std::move(found)); });
      lock.lock();
      names_.done(name);
    }
  }

  base::Descriptor wake_;
  std::mutex mutex_;
  std::condition_variable named_;
  Content content_;
  NameQueue names_;
  /// Threads: those that wait for a name, all that have been started, and how many these may be.
  int idle_ = 0;
  int running_ = 0;
  const int most_;
  bool over_ = false;
};

/// One thread, which waits for all sockets at once.
class EpollReach final : public Reach {
 public:
  EpollReach(Told told, Limits limits)
      : told_(std::move(told)),
        time_(limits.time),
        inbox_(std::make_shared<Inbox>(limits.resolvers)),
        epoll_(epoll_create1(EPOLL_CLOEXEC)) {
    if (!epoll_ || !watch(inbox_->descriptor(), EPOLL_CTL_ADD, EPOLLIN, 0))
      throw std::runtime_error("no file descriptor is left to ask cameras with");
    thread_ = std::thread([this] { run(); });
  }
  ~EpollReach() override {
    inbox_->end();
    thread_.join();
  }
  EpollReach(const EpollReach&) = delete;
  EpollReach& operator=(const EpollReach&) = delete;

  void ask(std::uint64_t ticket, const std::string& url, const std::string& shown_name) override {
    inbox_->ask({ticket, url, shown_name.empty() ? base::mask_source(url) : shown_name});
  }
  void forget(std::uint64_t ticket) override { inbox_->forget(ticket); }

 private:
  struct Socket {
    base::Descriptor descriptor;
    /// It is connected, and waits for an answer.
    bool greeted = false;
  };
  struct Probe {
    std::string name;
    Server server;
    /// One for each address.
    std::vector<Socket> sockets;
    /// Why the last address that failed did.
    int error = 0;
  };
  using Probes = std::map<std::uint64_t, Probe>;

  /// `mark`: a ticket and one more; 0 is the inbox.
  bool watch(int descriptor, int operation, std::uint32_t events, std::uint64_t mark) const {
    epoll_event event{};
    event.events = events;
    event.data.u64 = mark;
    return epoll_ctl(epoll_.number(), operation, descriptor, &event) == 0;
  }

  void run() {
    pthread_setname_np(pthread_self(), "reach");
    std::array<epoll_event, 256> events{};
    while (true) {
      const int count =
          epoll_wait(epoll_.number(), events.data(), static_cast<int>(events.size()), patience());
      for (int i = 0; i < count; ++i) {
        const epoll_event& event = events.at(static_cast<std::size_t>(i));
        if (event.data.u64 != 0) {
          stir(event.data.u64 - 1);
        } else if (!take()) {
          return;
        }
      }
      expire();
    }
  }

  /// Milliseconds until the first deadline.
  int patience() const {
    if (deadlines_.empty()) return -1;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadlines_.front().first - Clock::now());
    return static_cast<int>(std::max<std::chrono::milliseconds::rep>(0, left.count()));
  }

  bool take() {
    Inbox::Content content = inbox_->take();
    if (content.over) return false;
    for (Inbox::Question& question : content.questions) begin(question);
    for (const Found& found : content.found)
      for (const std::uint64_t ticket : found.tickets) connect(ticket, found.resolved);
    for (const std::uint64_t ticket : content.forgotten) {
      inbox_->drop(ticket);
      probes_.erase(ticket);
    }
    return true;
  }

  void begin(const Inbox::Question& question) {
    const auto server = server_of(question.url);
    if (!server) return told_({question.ticket, "", false});
    const auto entry =
        probes_.insert_or_assign(question.ticket, Probe{question.shown_name, *server, {}, 0}).first;
    const Resolved resolved = media::resolve(server->host, server->port, AI_NUMERICHOST);
    if (resolved.error == 0) return connect(question.ticket, resolved);
    if (!Inbox::resolve(inbox_, question.ticket, *server))
      fail(entry, "no thread is left to resolve hostname " + server->host, false);
  }

  void connect(std::uint64_t ticket, const Resolved& resolved) {
    const auto entry = probes_.find(ticket);
    if (entry == probes_.end()) return;
    Probe& probe = entry->second;
    if (resolved.error != 0) {
      // In FFmpeg's words, as all reasons here: another reason would be news of a camera that is down.
      return fail(entry,
                  reason_of(AVERROR(EIO)) + " (Failed to resolve hostname " + probe.server.host + ": " +
                      gai_strerror(resolved.error) + ')',
                  resolved.error == EAI_SYSTEM && is_exhaustion(resolved.system_error));
    }
    for (const Address& address :
         std::span(resolved.addresses).first(std::min(resolved.addresses.size(), kMostAddresses))) {
      base::Descriptor socket(
          ::socket(address.bytes.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
      const auto* const where = reinterpret_cast<const sockaddr*>(&address.bytes);
      if (!socket || (::connect(socket.number(), where, address.size) != 0 && errno != EINPROGRESS)) {
        probe.error = errno;
        continue;
      }
      if (watch(socket.number(), EPOLL_CTL_ADD, EPOLLOUT, ticket + 1))
        probe.sockets.push_back({std::move(socket)});
    }
    if (probe.sockets.empty()) return fail(entry);
    deadlines_.emplace_back(Clock::now() + time_, ticket);
  }

  /// Something happened at one of the probe's sockets.
  void stir(std::uint64_t ticket) {
    const auto entry = probes_.find(ticket);
    if (entry == probes_.end()) return;
    Probe& probe = entry->second;
    for (auto socket = probe.sockets.begin(); socket != probe.sockets.end();) {
      switch (look(*socket, ticket, probe)) {
        case Seen::nothing:
          ++socket;
          break;
        case Seen::failure:
          socket = probe.sockets.erase(socket);
          break;
        case Seen::answer:
          probes_.erase(entry);
          return told_({ticket, "", false});
      }
    }
    if (probe.sockets.empty()) fail(entry);
  }

  enum class Seen : std::uint8_t { nothing, failure, answer };

  Seen look(Socket& socket, std::uint64_t ticket, Probe& probe) const {
    const int number = socket.descriptor.number();
    socklen_t size = sizeof probe.error;
    int error = 0;
    getsockopt(number, SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) {
      probe.error = error;
      return Seen::failure;
    }
    if (socket.greeted) {
      char byte = 0;
      // Whatever it says, and be it that it hangs up: opening the source tells why.
      const bool silent =
          recv(number, &byte, 1, MSG_DONTWAIT) < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
      return silent ? Seen::nothing : Seen::answer;
    }
    sockaddr_storage peer{};
    size = sizeof peer;
    if (getpeername(number, reinterpret_cast<sockaddr*>(&peer), &size) != 0) return Seen::nothing;
    const std::string& greeting = probe.server.greeting;
    if (greeting.empty()) return Seen::answer;
    // A new connection takes a line at once; what it does not take goes to nobody who matters.
    static_cast<void>(send(number, greeting.data(), greeting.size(), MSG_NOSIGNAL));
    socket.greeted = true;
    return watch(number, EPOLL_CTL_MOD, EPOLLIN, ticket + 1) ? Seen::nothing : Seen::answer;
  }

  void fail(Probes::iterator entry) {
    const int error = entry->second.error;
    fail(entry, reason_of(AVERROR(error)), is_exhaustion(error));
  }
  void fail(Probes::iterator entry, const std::string& reason, bool no_descriptor) {
    const Answer answer{entry->first, entry->second.name + ": " + reason, no_descriptor};
    probes_.erase(entry);
    told_(answer);
  }

  void expire() {
    for (; !deadlines_.empty() && deadlines_.front().first <= Clock::now(); deadlines_.pop_front()) {
      const auto entry = probes_.find(deadlines_.front().second);
      if (entry == probes_.end()) continue;
      char text[64];
      std::snprintf(text, sizeof text, "nothing came for %.2f s",
                    std::chrono::duration<double>(time_).count());
      fail(entry, text, false);
    }
  }

  Told told_;
  std::chrono::milliseconds time_;
  std::shared_ptr<Inbox> inbox_;
  base::Descriptor epoll_;
  std::thread thread_;
  // Of the thread alone.
  Probes probes_;
  /// In order, as all probes have the same time.
  std::deque<std::pair<Clock::time_point, std::uint64_t>> deadlines_;
};

}  // namespace

bool Reach::can_ask(const std::string& url) {
  return server_of(url).has_value();
}

std::unique_ptr<Reach> Reach::make(Told told, Limits limits) {
  return std::make_unique<EpollReach>(std::move(told), limits);
}

}  // namespace vigil::media
