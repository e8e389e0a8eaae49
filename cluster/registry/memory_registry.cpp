#include "cluster/registry/memory_registry.h"

#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "cluster/registry/callback_gate.h"
#include "cluster/registry/registry_history.h"

namespace vigil::cluster {
namespace {

using Kind = RegistryFailure::Kind;
using Answer = RegistryHistory::Answer;

}  // namespace

class MemoryRegistry::Watch {
 public:
  Watch(std::string of, Revision from, std::uint64_t in, std::function<void(RegistryResult<RegistryNews>)> to)
      : prefix(std::move(of)), history(in), next(from), seen(std::move(to)) {}

  const std::string prefix;
  const std::uint64_t history;
  CallbackGate gate;

  // Under the client's lock.
  Revision next;
  bool ended = false;
  /// The latest asking for news; what belongs to earlier ones comes to nothing. 0 while the store is not
  /// asked.
  std::uint64_t asked = 0;
  base::Clock::TimePoint asked_at;
  /// The store has heard of it, and sends what changes from `sent` on.
  bool served = false;
  Revision sent = 0;
  base::Clock::TimePoint sent_at;
  /// From here on the store was not looked at: what came since `sent` is none of this watch's.
  Revision looked = 0;

  // In the gate.
  const std::function<void(RegistryResult<RegistryNews>)> seen;
};

class MemoryRegistry::Client : public std::enable_shared_from_this<Client> {
 public:
  Client(std::shared_ptr<MemoryStore> store, const base::Clock& clock, Options options)
      : store_(std::move(store)), clock_(clock), options_(std::move(options)) {}

  void open() {
    listener_ = store_->listen([weak = weak_from_this()](MemoryStore::Notice notice) {
      if (const auto self = weak.lock()) self->notice(notice);
    });
  }

  void close() {
    store_->forget(listener_);
    gate_.close();
    std::vector<std::shared_ptr<Watch>> watches;
    {
      const std::lock_guard lock(mutex_);
      std::swap(watches, watches_);
      calls_.clear();
    }
    for (const auto& watch : watches) watch->gate.close();
  }

  /// `at` is done at the store.
  template <class T, class At>
  void call(Answer fresh, Done<T> done, At at) {
    std::uint64_t id = 0;
    RegistryHistory::Asked asked;
    {
      const std::lock_guard lock(mutex_);
      id = ++last_;
      asked = history_.ask();
      calls_[id] = {clock_.now() + options_.time_limit, [done](RegistryFailure failure) { done(failure); }};
    }
    post(Leg::request, [weak = weak_from_this(), store = store_, id, asked, fresh, done = std::move(done),
                        at = std::move(at)] {
      auto result = std::make_shared<RegistryResult<T>>(at(*store));
      const auto self = weak.lock();
      if (!self) return;
      self->post(Leg::answer, [weak, result, id, asked, fresh, done] {
        if (const auto client = weak.lock()) client->answer(id, asked, fresh, done, std::move(*result));
      });
    });
  }

  std::shared_ptr<Watch> add(const std::string& prefix, Revision from,
                             std::function<void(RegistryResult<RegistryNews>)> seen) {
    std::shared_ptr<Watch> watch;
    {
      const std::lock_guard lock(mutex_);
      watch = std::make_shared<Watch>(prefix, from, history_.current(), std::move(seen));
      watches_.push_back(watch);
    }
    ask_for_news(watch);
    return watch;
  }

  void remove(const std::shared_ptr<Watch>& watch) {
    watch->gate.close();
    const std::lock_guard lock(mutex_);
    watch->ended = true;
    std::erase(watches_, watch);
  }

  void expire() {
    std::vector<Call> over;
    std::vector<std::shared_ptr<Watch>> late;
    {
      const std::lock_guard lock(mutex_);
      const auto now = clock_.now();
      for (auto at = calls_.begin(); at != calls_.end();) {
        if (at->second.end > now) {
          ++at;
          continue;
        }
        over.push_back(std::move(at->second));
        at = calls_.erase(at);
      }
      for (const auto& watch : watches_) {
        const bool not_served = !watch->served && watch->asked_at + options_.time_limit <= now;
        const bool not_seen =
            watch->served && watch->next < watch->sent && watch->sent_at + options_.time_limit <= now;
        if (not_served || not_seen) late.push_back(watch);
      }
    }
    for (const Call& call : over)
      gate_.run([&] {
        call.fail({Kind::unreachable,
                   "registry in memory: no answer within " + base::format_duration(options_.time_limit)});
      });
    for (const auto& watch : late) ask_for_news(watch);
  }

 private:
  struct Call {
    base::Clock::TimePoint end;
    std::function<void(RegistryFailure)> fail;
  };

  void post(Leg leg, std::function<void()> step) {
    if (options_.post) {
      options_.post(leg, std::move(step));
      return;
    }
    std::unique_lock lock(steps_mutex_);
    steps_.push_back(std::move(step));
    if (running_) return;
    running_ = true;
    while (!steps_.empty()) {
      const std::function<void()> first = std::move(steps_.front());
      steps_.pop_front();
      lock.unlock();
      first();
      lock.lock();
    }
    running_ = false;
  }

  template <class T>
  void answer(std::uint64_t id, const RegistryHistory::Asked& asked, Answer fresh, const Done<T>& done,
              RegistryResult<T> result) {
    {
      const std::lock_guard lock(mutex_);
      if (calls_.erase(id) == 0) return;
      if (auto* value = std::get_if<T>(&result))
        header_of(*value) = history_.answered(asked, header_of(*value), fresh);
    }
    gate_.run([&] { done(std::move(result)); });
    end_replaced();
  }

  /// A new history is the end of the watches of those before.
  void end_replaced() {
    std::vector<std::shared_ptr<Watch>> old;
    {
      const std::lock_guard lock(mutex_);
      for (const auto& watch : watches_)
        if (watch->history != history_.current()) old.push_back(watch);
    }
    for (const auto& watch : old)
      end(watch, {Kind::replaced, "registry in memory: it has another history now"});
  }

  void end(const std::shared_ptr<Watch>& watch, RegistryFailure failure) {
    watch->gate.run([&] {
      {
        const std::lock_guard lock(mutex_);
        if (std::exchange(watch->ended, true)) return;
        std::erase(watches_, watch);
      }
      watch->seen(std::move(failure));
    });
  }

  void ask_for_news(const std::shared_ptr<Watch>& watch) {
    std::uint64_t id = 0;
    Revision from = 0;
    RegistryHistory::Asked asked;
    {
      const std::lock_guard lock(mutex_);
      if (watch->ended) return;
      id = watch->asked = ++last_;
      watch->asked_at = clock_.now();
      watch->served = false;
      from = watch->next;
      asked = history_.ask();
    }
    post(Leg::request, [weak = weak_from_this(), watch, id, from, asked] {
      if (const auto self = weak.lock()) self->serve(watch, id, from, asked);
    });
  }

  /// What the store does when it hears of a watch.
  void serve(const std::shared_ptr<Watch>& watch, std::uint64_t id, Revision from,
             const RegistryHistory::Asked& asked) {
    auto news = std::make_shared<RegistryResult<RegistryNews>>();
    RegistryHeader header;
    {
      const std::lock_guard lock(mutex_);
      if (watch->ended || watch->asked != id) return;
      *news = store_->changes(watch->prefix, from);
      const auto* found = std::get_if<RegistryNews>(news.get());
      header = found == nullptr ? store_->header() : found->header;
      watch->served = true;
      watch->sent = watch->looked = std::max(from, header.revision + 1);
      watch->sent_at = clock_.now();
    }
    post(Leg::news, [weak = weak_from_this(), watch, id, from, header, asked, news] {
      if (const auto self = weak.lock()) self->begin(watch, id, from, header, asked, *news);
    });
  }

  void begin(const std::shared_ptr<Watch>& watch, std::uint64_t id, Revision from, RegistryHeader header,
             const RegistryHistory::Asked& asked, const RegistryResult<RegistryNews>& news) {
    {
      const std::lock_guard lock(mutex_);
      if (watch->asked != id) return;
      header = history_.answered(asked, header, Answer::current);
    }
    end_replaced();
    if (header.revision < from - 1) {
      end(watch, {Kind::replaced, "registry in memory: it is at revision " + std::to_string(header.revision) +
                                      ", and " + std::to_string(from - 1) + " was known"});
    } else if (const auto* failure = std::get_if<RegistryFailure>(&news)) {
      end(watch, *failure);
    } else {
      deliver(watch, id, from, asked, std::get<RegistryNews>(news));
    }
  }

  void notice(MemoryStore::Notice notice) {
    std::vector<std::shared_ptr<Watch>> again;
    std::vector<std::function<void()>> steps;
    {
      const std::lock_guard lock(mutex_);
      for (const auto& watch : watches_) {
        if (notice == MemoryStore::Notice::restored) {
          again.push_back(watch);
          continue;
        }
        if (!watch->served) continue;
        const auto result = store_->changes(watch->prefix, watch->looked);
        const auto* news = std::get_if<RegistryNews>(&result);
        if (news == nullptr) {
          again.push_back(watch);
          continue;
        }
        watch->looked = std::max(watch->looked, news->header.revision + 1);
        if (news->events.empty()) continue;
        steps.emplace_back([weak = weak_from_this(), watch, id = watch->asked, from = watch->sent,
                            asked = history_.ask(), news = *news] {
          if (const auto self = weak.lock()) self->deliver(watch, id, from, asked, news);
        });
        watch->sent = news->header.revision + 1;
        watch->sent_at = clock_.now();
      }
    }
    for (auto& step : steps) post(Leg::news, std::move(step));
    for (const auto& watch : again) ask_for_news(watch);
  }

  /// News that begin at `from`.
  void deliver(const std::shared_ptr<Watch>& watch, std::uint64_t id, Revision from,
               const RegistryHistory::Asked& asked, RegistryNews news) {
    bool missed = false;
    watch->gate.run([&] {
      {
        const std::lock_guard lock(mutex_);
        if (watch->ended || watch->asked != id) return;
        missed = from > watch->next;
        if (missed) return;
        std::erase_if(news.events,
                      [&](const RegistryEvent& event) { return event.entry.modified < watch->next; });
        watch->next = std::max(watch->next, news.header.revision + 1);
        news.header = history_.answered(asked, news.header, Answer::may_lag);
      }
      if (!news.events.empty()) watch->seen(std::move(news));
    });
    if (missed) ask_for_news(watch);
  }

  const std::shared_ptr<MemoryStore> store_;
  const base::Clock& clock_;
  const Options options_;
  std::uint64_t listener_ = 0;
  CallbackGate gate_;

  std::mutex mutex_;
  std::map<std::uint64_t, Call> calls_;
  std::vector<std::shared_ptr<Watch>> watches_;
  RegistryHistory history_;
  std::uint64_t last_ = 0;

  std::mutex steps_mutex_;
  std::deque<std::function<void()>> steps_;
  bool running_ = false;
};

class MemoryRegistry::Handle final : public RegistryWatch {
 public:
  Handle(std::weak_ptr<Client> client, std::shared_ptr<Watch> watch)
      : client_(std::move(client)), watch_(std::move(watch)) {}
  ~Handle() override {
    watch_->gate.close();
    if (const auto client = client_.lock()) client->remove(watch_);
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

 private:
  const std::weak_ptr<Client> client_;
  const std::shared_ptr<Watch> watch_;
};

MemoryRegistry::MemoryRegistry(std::shared_ptr<MemoryStore> store, const base::Clock& clock, Options options)
    : client_(std::make_shared<Client>(std::move(store), clock, std::move(options))) {
  client_->open();
}

MemoryRegistry::~MemoryRegistry() {
  client_->close();
}

void MemoryRegistry::range(const std::string& prefix, Done<RegistryRange> done) {
  client_->call<RegistryRange>(
      Answer::current, std::move(done),
      [prefix](MemoryStore& store) -> RegistryResult<RegistryRange> { return store.range(prefix); });
}

void MemoryRegistry::commit(RegistryTransaction transaction, Done<RegistryCommit> done) {
  client_->call<RegistryCommit>(
      Answer::current, std::move(done),
      [transaction = std::move(transaction)](MemoryStore& store) { return store.commit(transaction); });
}

void MemoryRegistry::grant(base::Duration ttl, Done<RegistryLease> done) {
  client_->call<RegistryLease>(Answer::current, std::move(done),
                               [ttl](MemoryStore& store) { return store.grant(ttl); });
}

void MemoryRegistry::keep_alive(LeaseId lease, Done<RegistryLease> done) {
  client_->call<RegistryLease>(Answer::may_lag, std::move(done),
                               [lease](MemoryStore& store) { return store.keep_alive(lease); });
}

void MemoryRegistry::revoke(LeaseId lease, Done<RegistryHeader> done) {
  client_->call<RegistryHeader>(Answer::current, std::move(done),
                                [lease](MemoryStore& store) { return store.revoke(lease); });
}

std::unique_ptr<RegistryWatch> MemoryRegistry::watch(const std::string& prefix, Revision from,
                                                     std::function<void(RegistryResult<RegistryNews>)> seen) {
  return std::make_unique<Handle>(client_, client_->add(prefix, from, std::move(seen)));
}

void MemoryRegistry::expire() {
  client_->expire();
}

}  // namespace vigil::cluster
