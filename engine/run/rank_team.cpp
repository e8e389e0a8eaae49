#include "engine/run/rank_team.h"

#include <utility>

namespace vigil::run {
namespace {

/// Waits until `value` is no longer `old`. Looks for some hundred microseconds first: the steps of a pass
/// follow each other closely, and a thread that sleeps takes as long to wake up.
void await_change(const std::atomic<int>& value, int old) {
  constexpr int kLooks = 2000;
  for (int i = 0; i < kLooks; ++i) {
    if (value.load(std::memory_order_acquire) != old) return;
    std::this_thread::yield();
  }
  value.wait(old, std::memory_order_acquire);
}

}  // namespace

RankTeam::RankTeam(int ranks) {
  for (int rank = 1; rank < ranks; ++rank) threads_.emplace_back([this, rank] { work(rank); });
}

RankTeam::~RankTeam() {
  round_.store(-1, std::memory_order_release);
  round_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void RankTeam::run(const std::function<void(int)>& body, const std::function<void()>& release) {
  body_ = &body;
  release_ = &release;
  failure_ = nullptr;
  busy_.store(static_cast<int>(threads_.size()), std::memory_order_relaxed);
  if (!threads_.empty()) {
    round_.fetch_add(1, std::memory_order_release);
    round_.notify_all();
  }
  do_part(0);
  for (int busy = busy_.load(std::memory_order_acquire); busy != 0;
       busy = busy_.load(std::memory_order_acquire))
    await_change(busy_, busy);
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void RankTeam::work(int rank) {
  for (int seen = 0;;) {
    await_change(round_, seen);
    seen = round_.load(std::memory_order_acquire);
    if (seen < 0) return;
    do_part(rank);
    busy_.fetch_sub(1, std::memory_order_release);
    busy_.notify_one();
  }
}

void RankTeam::do_part(int rank) {
  try {
    (*body_)(rank);
  } catch (...) {
    const std::lock_guard lock(mutex_);
    if (failure_) return;
    failure_ = std::current_exception();
    (*release_)();
  }
}

}  // namespace vigil::run
