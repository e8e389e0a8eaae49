// Threads that do the same at the same time, one for each device of a model that several share.
#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace vigil::run {

/// A thread for each rank but the first, which is whoever calls `run`. One caller at a time.
class RankTeam {
 public:
  explicit RankTeam(int ranks);
  ~RankTeam();
  RankTeam(const RankTeam&) = delete;
  RankTeam& operator=(const RankTeam&) = delete;

  int ranks() const { return static_cast<int>(threads_.size()) + 1; }

  /// Calls `body(rank)` for all ranks at once and returns when all are done. If one throws, `release` is
  /// called at once, which lets go of those that wait for it; what was thrown first is thrown again.
  void run(const std::function<void(int rank)>& body, const std::function<void()>& release);

 private:
  void work(int rank);
  void do_part(int rank);

  /// Counts calls of `run`; negative: it is over.
  std::atomic<int> round_ = 0;
  std::atomic<int> busy_ = 0;
  const std::function<void(int)>* body_ = nullptr;
  const std::function<void()>* release_ = nullptr;
  std::mutex mutex_;
  std::exception_ptr failure_;
  std::vector<std::thread> threads_;
};

}  // namespace vigil::run
