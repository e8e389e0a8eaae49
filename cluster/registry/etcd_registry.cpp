#include "cluster/registry/etcd_registry.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <random>
#include <utility>

#include "cluster/registry/callback_gate.h"
#include "cluster/registry/etcd_channel.h"
#include "cluster/registry/etcd_failure.h"
#include "cluster/registry/etcd_patience.h"
#include "cluster/registry/registry_history.h"

namespace vigil::cluster {
namespace {

using Kind = RegistryFailure::Kind;
using Answer = RegistryHistory::Answer;
using std::chrono::steady_clock;

constexpr base::Duration kFirstPause{100};
constexpr base::Duration kLongestPause{2000};
// An election takes a second or so, and a server says at once that there is none that leads.
constexpr base::Duration kElection{1000};
// A connection that lasts so long was a good one.
constexpr std::chrono::seconds kLasting{1};
// Calls that may wait for a connection.
constexpr std::size_t kWaiting = 4096;
// Tokens that are asked for on behalf of one call or watch.
constexpr int kRenewals = 2;

void check(const EtcdRegistry::Options& options) {
  if (options.endpoints.empty()) throw RegistryError("registry: no endpoint");
  for (const std::string& endpoint : options.endpoints) {
    const std::size_t colon = endpoint.rfind(':');
    const bool good = colon != std::string::npos && colon != 0 && colon + 1 < endpoint.size() &&
                      endpoint.find_first_not_of("0123456789", colon + 1) == std::string::npos &&
                      endpoint.find('/') == std::string::npos && endpoint.find('@') == std::string::npos;
    // Not shown: it may be a URL with a password.
    if (!good) throw RegistryError("registry: an endpoint is HOST:PORT");
  }
  if (options.tls.has_value() == options.plain_text)
    throw RegistryError(options.plain_text ? "registry: both TLS and plain text"
                                           : "registry: neither TLS nor plain text in so many words");
  if (options.user.empty() != options.password.empty())
    throw RegistryError("registry: a user and a password come together");
  if (options.time_limit <= base::Duration(0)) throw RegistryError("registry: no time for a call");
}

}  // namespace

class EtcdRegistry::Watch {
 public:
  Watch(std::string of, Revision from, std::function<void(RegistryResult<RegistryNews>)> to)
      : prefix(std::move(of)), seen(std::move(to)), next(std::max<Revision>(from, 1)) {}

  const std::string prefix;
  CallbackGate gate;
  // In the gate.
  const std::function<void(RegistryResult<RegistryNews>)> seen;

  // Of the registry's thread.
  Revision next;
  std::uint64_t history = 0;
  RegistryHistory::Asked asked;
  std::unique_ptr<EtcdStream> stream;
  int renewals = 0;
};

/// All of it runs on the loop's thread, but for what the registry calls.
class EtcdRegistry::Client {
 public:
  explicit Client(Options options)
      : options_(std::move(options)),
        patience_(options_.time_limit, options_.endpoints.size()),
        random_(std::random_device()()) {
    if (options_.tls) tls_.emplace(*options_.tls, options_.log);
  }

  void post(std::function<void()> step) { loop_.post(std::move(step)); }
  void stop() { loop_.stop(); }

  template <class T>
  using Begin = std::function<void(EtcdChannel&, EtcdChannel::TimePoint until, EtcdChannel::Done<T>)>;
  enum class Repeat : std::uint8_t { no, yes };

  template <class T>
  void call(Repeat repeat, Answer fresh, Done<T> done, Begin<T> begin) {
    auto call = std::make_shared<Call>();
    call->until = steady_clock::now() + options_.time_limit;
    call->repeat = repeat;
    call->fail = [done](RegistryFailure failure) { done(std::move(failure)); };
    call->send = [this, fresh, done = std::move(done), begin = std::move(begin)](
                     const std::shared_ptr<Call>& self, EtcdChannel::TimePoint until) {
      begin(*channel_, until,
            [this, self, fresh, done, channel = channel_, asked = history_.ask(), sent = steady_clock::now()](
                const EtcdStatus& status, T answer) {
              if (status.code != 0) return failed(self, channel, status, sent);
              patience_.call_answered(elapsed(sent));
              header_of(answer) = history_.answered(asked, header_of(answer), fresh);
              done(std::move(answer));
              end_replaced();
            });
    };
    loop_.post([this, call = std::move(call)] { dispatch(call); });
  }

  void refuse(RegistryFailure failure, const std::function<void(RegistryFailure)>& fail) {
    loop_.post([failure = std::move(failure), fail] { fail(failure); });
  }

  void add(const std::shared_ptr<Watch>& watch) {
    watch->history = history_.current();
    watches_.push_back(watch);
    if (state_ == State::up) return begin(watch);
    connect_if_wanted();
  }

  void remove(const std::shared_ptr<Watch>& watch) {
    watch->stream.reset();
    std::erase(watches_, watch);
  }

 private:
  struct Call {
    EtcdChannel::TimePoint until;
    Repeat repeat = Repeat::no;
    int renewals = 0;
    std::function<void(const std::shared_ptr<Call>& self, EtcdChannel::TimePoint until)> send;
    std::function<void(RegistryFailure)> fail;
  };
  using Channel = std::shared_ptr<EtcdChannel>;

  const std::string& endpoint() const { return options_.endpoints[at_]; }

  std::string hidden(std::string text) const {
    for (std::size_t at = 0;
         !options_.password.empty() && (at = text.find(options_.password, at)) != std::string::npos; at += 3)
      text.replace(at, options_.password.size(), "***");
    return text;
  }

  RegistryFailure failure(Kind kind, const std::string& endpoint, const EtcdStatus& status,
                          base::Duration limit) const {
    std::string reason = status.code == etcd_code::kDeadlineExceeded
                             ? "no answer within " + base::format_duration(limit)
                             : hidden(plain_reason(status.text));
    if (const std::string again = "ipv4:" + endpoint + ": "; reason.starts_with(again))
      reason.erase(0, again.size());
    return {kind, "registry: etcd at " + endpoint + ": " + reason};
  }

  void log(const std::string& line) const {
    if (options_.log) options_.log(line);
  }

  // --- Calls ---

  void dispatch(const std::shared_ptr<Call>& call) {
    const auto now = steady_clock::now();
    if (call->until <= now) return call->fail(why_waiting());
    if (state_ == State::up && !channel_->ready())
      lose("registry: etcd at " + endpoint() + ": the connection is closed");
    if (state_ == State::up) {
      const bool once = call->repeat == Repeat::no || options_.endpoints.size() == 1;
      return call->send(call, once ? call->until : std::min(call->until, now + patience_.call()));
    }
    if (waiting_.size() >= kWaiting)
      return call->fail({Kind::unreachable, "registry: too many calls wait for a connection"});
    waiting_.push_back(call);
    loop_.after(std::chrono::ceil<base::Duration>(call->until - now), [this, weak = std::weak_ptr(call)] {
      const auto late = weak.lock();
      if (late && std::erase(waiting_, late) != 0) late->fail(why_waiting());
    });
    connect_if_wanted();
  }

  RegistryFailure why_waiting() const {
    if (last_failure_) return *last_failure_;
    return {Kind::unreachable, "registry: etcd at " + endpoint() + ": no answer within " +
                                   base::format_duration(options_.time_limit)};
  }

  void failed(const std::shared_ptr<Call>& call, const Channel& channel, const EtcdStatus& status,
              EtcdChannel::TimePoint sent) {
    const EtcdVerdict verdict = judge(status);
    const RegistryFailure why = failure(verdict.kind, channel->endpoint(), status, elapsed(sent));
    if (verdict.unknown_user && !options_.user.empty() && call->renewals++ < kRenewals) {
      if (channel == channel_ && state_ == State::up) hello();
      return dispatch(call);
    }
    if (verdict.lost) {
      // One that had little time left says nothing about the server.
      const bool silent =
          status.code != etcd_code::kDeadlineExceeded || elapsed(sent) >= patience_.call() * 9 / 10;
      if (silent && channel == channel_) lose(why.text, verdict.no_leader);
      if (call->repeat == Repeat::yes && steady_clock::now() < call->until) return dispatch(call);
    }
    call->fail(why);
  }

  // --- Connections ---

  enum class State : std::uint8_t { none, pause, hello, up };

  void connect_if_wanted() {
    if (state_ == State::none && !(waiting_.empty() && watches_.empty())) connect();
  }

  void connect() {
    channel_ = std::make_shared<EtcdChannel>(
        loop_, endpoint(), tls_ ? &tls_->current() : nullptr,
        EtcdChannel::Times{.connect = patience_.attempt(), .ping = options_.ping});
    hello();
  }

  /// Asks the server who it is and says who asks.
  void hello() {
    state_ = State::hello;
    asked_ = steady_clock::now();
    greet([this](const EtcdStatus& status, const RegistryHeader& header) {
      // Users without rights to what is asked for, and servers without users, are fine.
      if (status.code == 0 || status.code == etcd_code::kPermissionDenied ||
          status.text.find("authentication is not enabled") != std::string::npos)
        found(status.code == 0 ? header.revision : 0);
      else
        missed(status);
    });
  }

  void greet(std::function<void(const EtcdStatus&, const RegistryHeader&)> greeted) {
    auto done = [this, greeted = std::move(greeted), channel = channel_, asked = history_.ask()](
                    const EtcdStatus& status, RegistryHeader header) {
      if (status.code == 0) header = history_.answered(asked, header, Answer::current);
      if (channel == channel_) greeted(status, header);
      end_replaced();
    };
    const auto until = steady_clock::now() + patience_.attempt();
    if (options_.user.empty())
      channel_->hello(until, std::move(done));
    else
      channel_->authenticate(options_.user, options_.password, until, std::move(done));
  }

  void found(Revision revision) {
    state_ = State::up;
    since_ = steady_clock::now();
    tried_ = 0;
    last_failure_.reset();
    const std::string slow = patience_.answered(elapsed(asked_));
    if (std::exchange(complained_, false) || !slow.empty())
      log("registry: connected to etcd at " + endpoint() + (slow.empty() ? "" : ": " + slow));
    end_replaced();
    for (const auto& watch : std::vector(watches_)) {
      if (watch->stream) continue;
      if (revision != 0 && revision < watch->next - 1)
        end_ahead(watch, revision);
      else
        begin(watch);
    }
    for (const auto& call : std::exchange(waiting_, {})) dispatch(call);
  }

  void missed(const EtcdStatus& status) {
    const EtcdVerdict verdict = judge(status);
    RegistryFailure why = failure(verdict.kind, endpoint(), status, patience_.attempt());
    if (verdict.lost && patience_.is_silence(elapsed(asked_))) patience_.silent();
    if (const std::string address = address_in(status.text); tls_ && verdict.lost && !address.empty()) {
      if (const auto wrong = tls_->why_not(address, endpoint()))
        why = {Kind::refused, "registry: etcd at " + endpoint() + ": " + *wrong};
    }
    if (!last_failure_ || tried_ == 0 || why.kind == Kind::refused) last_failure_ = why;
    if (!std::exchange(complained_, true)) log(why.text);
    drop();
    const bool is_last = ++tried_ >= options_.endpoints.size();
    if (!is_last && !verdict.no_leader) return connect();
    tried_ = 0;
    if (const auto complaint = is_last ? patience_.complaint(steady_clock::now()) : std::nullopt)
      log(*complaint);
    rest(verdict.no_leader);
    // Another attempt would have the same answer, and this one is certain.
    if (is_last && last_failure_->kind == Kind::refused)
      for (const auto& call : std::exchange(waiting_, {})) call->fail(*last_failure_);
  }

  void lose(const std::string& reason, bool no_leader = false) {
    log(reason);
    complained_ = true;
    const bool lasted = state_ == State::up && steady_clock::now() - since_ >= kLasting;
    if (lasted) pause_ = base::Duration(0);
    drop();
    rest(no_leader);
  }

  /// Has no server any more, and will try the next one.
  void drop() {
    channel_.reset();
    for (const auto& watch : watches_) watch->stream.reset();
    at_ = (at_ + 1) % options_.endpoints.size();
  }

  /// Waits before the next attempt, at the next server: if no server leads, for about as long as an election
  /// takes, so that a city's clients do not ask one server after the other meanwhile.
  void rest(bool no_leader) {
    state_ = State::pause;
    if (no_leader) pause_ = std::max(pause_, kElection);
    // Not all clients at once.
    const auto pause = pause_ * std::uniform_int_distribution(50, 100)(random_) / 100;
    pause_ = std::clamp(pause_ * 2, kFirstPause, kLongestPause);
    loop_.after(pause, [this] {
      state_ = State::none;
      connect_if_wanted();
    });
  }

  // --- Watches ---

  void begin(const std::shared_ptr<Watch>& watch) {
    watch->asked = history_.ask();
    const std::weak_ptr weak(watch);
    // One revision earlier: a deletion at the very revision up to which etcd has forgotten is lost without a
    // word in etcd before 3.4.34; so it would say that it has forgotten.
    watch->stream = channel_->watch(
        watch->prefix, std::max<Revision>(watch->next - 1, 1),
        [this, weak](EtcdNews news) {
          if (const auto still = weak.lock()) heard(still, std::move(news));
        },
        [this, weak, channel = channel_](const EtcdStatus& status) {
          if (const auto still = weak.lock()) broken(still, channel, status);
        });
  }

  void heard(const std::shared_ptr<Watch>& watch, EtcdNews news) {
    const RegistryHeader header = history_.answered(watch->asked, news.news.header, Answer::may_lag);
    if (header.history != watch->history) return end_replaced();
    if (news.compacted != 0)
      return end(watch, {Kind::compacted,
                         "registry: etcd at " + endpoint() + ": revision " + std::to_string(watch->next) +
                             " is forgotten, as all are up to " + std::to_string(news.compacted)});
    if (news.cancelled) return cancelled(watch, news.reason);
    if (news.created && header.revision < watch->next - 1) return doubt(watch);
    std::erase_if(news.news.events,
                  [&](const RegistryEvent& event) { return event.entry.modified < watch->next; });
    if (news.news.events.empty()) return;
    watch->next = news.news.events.back().entry.modified + 1;
    watch->renewals = 0;
    news.news.header = header;
    watch->gate.run([&] { watch->seen(std::move(news.news)); });
  }

  /// A server that is behind what the watch knows is one of another history, or did not get all of it yet.
  void doubt(const std::shared_ptr<Watch>& watch) {
    greet([this, weak = std::weak_ptr(watch)](const EtcdStatus& status, const RegistryHeader& header) {
      const auto still = weak.lock();
      if (still && status.code == 0 && header.revision < still->next - 1) end_ahead(still, header.revision);
      if (status.code != 0 && judge(status).lost)
        lose(failure(Kind::unreachable, endpoint(), status, patience_.attempt()).text);
    });
  }

  void cancelled(const std::shared_ptr<Watch>& watch, const std::string& reason) {
    const EtcdStatus status{etcd_code::kPermissionDenied, reason};
    // A token that is not known is reported so, too.
    if (!options_.user.empty() && watch->renewals++ < kRenewals) {
      watch->stream.reset();
      if (state_ == State::up) hello();
      return;
    }
    end(watch, failure(Kind::refused, endpoint(), status, patience_.attempt()));
  }

  void broken(const std::shared_ptr<Watch>& watch, const Channel& channel, const EtcdStatus& status) {
    if (channel != channel_) return;
    const EtcdVerdict verdict = judge(status);
    if (status.code != 0 && !verdict.lost && verdict.kind == Kind::refused)
      return cancelled(watch, status.text);
    lose(failure(Kind::unreachable, endpoint(), status, patience_.attempt()).text, verdict.no_leader);
  }

  void end_ahead(const std::shared_ptr<Watch>& watch, Revision revision) {
    end(watch, {Kind::replaced, "registry: etcd at " + endpoint() + ": it is at revision " +
                                    std::to_string(revision) + ", and " + std::to_string(watch->next - 1) +
                                    " was known"});
  }

  void end_replaced() {
    for (const auto& watch : std::vector(watches_))
      if (watch->history != history_.current())
        end(watch, {Kind::replaced, "registry: etcd at " + endpoint() + ": it has another history now"});
  }

  void end(const std::shared_ptr<Watch>& watch, RegistryFailure failure) {
    remove(watch);
    watch->gate.run([&] { watch->seen(std::move(failure)); });
  }

  const Options options_;
  EtcdPatience patience_;
  std::minstd_rand random_;
  std::optional<EtcdTls> tls_;

  State state_ = State::none;
  Channel channel_;
  /// Of the endpoints, the one that is used or tried, and how many were in vain since the last pause.
  std::size_t at_ = 0;
  std::size_t tried_ = 0;
  /// When it was asked who it is, and when it had said so.
  EtcdChannel::TimePoint asked_;
  EtcdChannel::TimePoint since_;
  base::Duration pause_{0};
  std::optional<RegistryFailure> last_failure_;
  bool complained_ = false;

  RegistryHistory history_;
  std::deque<std::shared_ptr<Call>> waiting_;
  std::vector<std::shared_ptr<Watch>> watches_;

  // The last one: its thread uses all of the above.
  EtcdLoop loop_;
};

class EtcdRegistry::Handle final : public RegistryWatch {
 public:
  Handle(std::weak_ptr<Client> client, std::shared_ptr<Watch> watch)
      : client_(std::move(client)), watch_(std::move(watch)) {}
  ~Handle() override {
    watch_->gate.close();
    if (const auto client = client_.lock())
      client->post([at = client.get(), watch = watch_] { at->remove(watch); });
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

 private:
  const std::weak_ptr<Client> client_;
  const std::shared_ptr<Watch> watch_;
};

EtcdRegistry::EtcdRegistry(Options options) {
  check(options);
  client_ = std::make_shared<Client>(std::move(options));
}

EtcdRegistry::~EtcdRegistry() {
  client_->stop();
}

void EtcdRegistry::range(const std::string& prefix, Done<RegistryRange> done) {
  client_->call<RegistryRange>(Client::Repeat::yes, Answer::current, std::move(done),
                               [prefix](EtcdChannel& channel, EtcdChannel::TimePoint until,
                                        EtcdChannel::Done<RegistryRange> answered) {
                                 channel.range(prefix, until, std::move(answered));
                               });
}

void EtcdRegistry::commit(RegistryTransaction transaction, Done<RegistryCommit> done) {
  if (auto reason = why_not(transaction))
    return client_->refuse(*std::move(reason), [done](RegistryFailure why) { done(std::move(why)); });
  client_->call<RegistryCommit>(
      Client::Repeat::no, Answer::current, std::move(done),
      [transaction = std::move(transaction)](EtcdChannel& channel, EtcdChannel::TimePoint until,
                                             EtcdChannel::Done<RegistryCommit> answered) {
        channel.commit(transaction, until, std::move(answered));
      });
}

void EtcdRegistry::grant(base::Duration ttl, Done<RegistryLease> done) {
  const auto seconds = std::max(std::chrono::ceil<std::chrono::seconds>(ttl), std::chrono::seconds(1));
  client_->call<RegistryLease>(Client::Repeat::yes, Answer::current, std::move(done),
                               [seconds](EtcdChannel& channel, EtcdChannel::TimePoint until,
                                         EtcdChannel::Done<RegistryLease> answered) {
                                 channel.grant(seconds, until, std::move(answered));
                               });
}

void EtcdRegistry::keep_alive(LeaseId lease, Done<RegistryLease> done) {
  client_->call<RegistryLease>(
      Client::Repeat::yes, Answer::may_lag, std::move(done),
      [lease](EtcdChannel& channel, EtcdChannel::TimePoint until, EtcdChannel::Done<RegistryLease> answered) {
        channel.keep_alive(
            lease, until, [answered = std::move(answered)](const EtcdStatus& status, RegistryLease found) {
              // etcd does not call that an error.
              const bool none = status.code == 0 && found.ttl == base::Duration(0);
              answered(none ? EtcdStatus{etcd_code::kNotFound, "lease not found"} : status, found);
            });
      });
}

void EtcdRegistry::revoke(LeaseId lease, Done<RegistryHeader> done) {
  client_->call<RegistryHeader>(Client::Repeat::no, Answer::current, std::move(done),
                                [lease](EtcdChannel& channel, EtcdChannel::TimePoint until,
                                        EtcdChannel::Done<RegistryHeader> answered) {
                                  channel.revoke(lease, until, std::move(answered));
                                });
}

std::unique_ptr<RegistryWatch> EtcdRegistry::watch(const std::string& prefix, Revision from,
                                                   std::function<void(RegistryResult<RegistryNews>)> seen) {
  auto watch = std::make_shared<Watch>(prefix, from, std::move(seen));
  client_->post([at = client_.get(), watch] { at->add(watch); });
  return std::make_unique<Handle>(client_, std::move(watch));
}

}  // namespace vigil::cluster
