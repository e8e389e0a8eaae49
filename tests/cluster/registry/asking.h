// A registry's answers, waited for.
#pragma once

#include <chrono>
#include <condition_variable>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "cluster/registry/registry.h"

namespace vigil::cluster::testing {

/// Longer than any time limit of these tests.
inline constexpr std::chrono::seconds kPatience{60};

/// Each call waits for its answer.
class Asking {
 public:
  explicit Asking(Registry& registry) : registry_(registry) {}

  RegistryResult<RegistryRange> range(const std::string& prefix) {
    return answer<RegistryRange>([&](auto done) { registry_.range(prefix, done); });
  }
  RegistryResult<RegistryCommit> commit(RegistryTransaction transaction) {
    return answer<RegistryCommit>([&](auto done) { registry_.commit(std::move(transaction), done); });
  }
  RegistryResult<RegistryCommit> put(const std::string& key, const std::string& value, LeaseId lease = 0) {
    return commit({.conditions = {}, .changes = {RegistryPut{key, value, lease}}});
  }
  RegistryResult<RegistryCommit> erase(const std::string& key) {
    return commit({.conditions = {}, .changes = {RegistryDelete{key}}});
  }
  RegistryResult<RegistryLease> grant(base::Duration ttl) {
    return answer<RegistryLease>([&](auto done) { registry_.grant(ttl, done); });
  }
  RegistryResult<RegistryLease> keep_alive(LeaseId lease) {
    return answer<RegistryLease>([&](auto done) { registry_.keep_alive(lease, done); });
  }
  RegistryResult<RegistryHeader> revoke(LeaseId lease) {
    return answer<RegistryHeader>([&](auto done) { registry_.revoke(lease, done); });
  }

 private:
  template <class T, class Call>
  static RegistryResult<T> answer(Call call) {
    const auto promise = std::make_shared<std::promise<RegistryResult<T>>>();
    auto future = promise->get_future();
    call(Registry::Done<T>([promise](RegistryResult<T> result) { promise->set_value(std::move(result)); }));
    if (future.wait_for(kPatience) != std::future_status::ready) throw std::runtime_error("no answer");
    return future.get();
  }

  Registry& registry_;
};

/// What was asked for; throws, with the reason, if there is a failure instead.
template <class T>
T good(RegistryResult<T> result) {
  if (auto* failure = std::get_if<RegistryFailure>(&result)) throw std::runtime_error(failure->text);
  return std::get<T>(std::move(result));
}

/// Asks again until the answer is good, for a while.
template <class Call>
auto until_good(Call call) {
  const auto until = std::chrono::steady_clock::now() + kPatience;
  for (;;) {
    auto result = call();
    if (!std::holds_alternative<RegistryFailure>(result) || std::chrono::steady_clock::now() > until)
      return good(std::move(result));
  }
}

/// The failure; of a kind that is none where there is none.
template <class T>
RegistryFailure bad(const RegistryResult<T>& result) {
  const auto* failure = std::get_if<RegistryFailure>(&result);
  return failure == nullptr ? RegistryFailure{RegistryFailure::Kind(255), "no failure"} : *failure;
}

/// Keeps what a watch sees.
class Seen {
 public:
  Seen(Registry& registry, const std::string& prefix, Revision from)
      : watch_(registry.watch(prefix, from, [what = what_](RegistryResult<RegistryNews> result) {
          const std::lock_guard lock(what->mutex);
          EXPECT_FALSE(what->failure) << "nothing follows a failure";
          if (auto* failure = std::get_if<RegistryFailure>(&result)) {
            what->failure = *failure;
          } else {
            auto& news = std::get<RegistryNews>(result);
            EXPECT_FALSE(news.events.empty());
            for (const RegistryEvent& event : news.events) {
              EXPECT_GE(event.entry.modified, what->last);
              what->last = event.entry.modified;
              what->events.push_back(event);
            }
            // All of a revision comes at once.
            ++what->last;
            what->headers.push_back(news.header);
          }
          what->changed.notify_all();
        })) {}

  /// What was seen up to and with this revision.
  std::vector<RegistryEvent> until(Revision revision) {
    std::unique_lock lock(what_->mutex);
    what_->changed.wait_for(lock, kPatience, [&] { return what_->last > revision || what_->failure; });
    return what_->events;
  }
  std::vector<RegistryEvent> so_far() {
    const std::lock_guard lock(what_->mutex);
    return what_->events;
  }
  std::vector<RegistryHeader> headers() {
    const std::lock_guard lock(what_->mutex);
    return what_->headers;
  }
  RegistryFailure failure() {
    std::unique_lock lock(what_->mutex);
    what_->changed.wait_for(lock, kPatience, [&] { return what_->failure.has_value(); });
    return what_->failure.value_or(RegistryFailure{RegistryFailure::Kind(255), "no failure"});
  }
  void end() { watch_.reset(); }

 private:
  struct What {
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<RegistryEvent> events;
    std::vector<RegistryHeader> headers;
    std::optional<RegistryFailure> failure;
    Revision last = 0;
  };

  std::shared_ptr<What> what_ = std::make_shared<What>();
  std::unique_ptr<RegistryWatch> watch_;
};

/// "key=value", "-key", for what is easier to read.
inline std::vector<std::string> short_form(const std::vector<RegistryEvent>& events) {
  std::vector<std::string> texts;
  for (const RegistryEvent& event : events)
    texts.push_back(event.deleted ? '-' + event.entry.key : event.entry.key + '=' + event.entry.value);
  return texts;
}

}  // namespace vigil::cluster::testing
