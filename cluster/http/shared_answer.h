// One answer for all who ask at about the same time.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "cluster/http/http.h"

namespace vigil::cluster {

/// However many ask, an answer is made once within `shared_for`. Not thread-safe.
class SharedAnswer {
 public:
  using Answer = std::shared_ptr<const HttpResponse>;
  using Done = std::function<void(Answer)>;

  SharedAnswer(base::Duration shared_for, const base::Clock& clock)
      : shared_for_(shared_for), clock_(clock) {}

  /// Calls `done` with an answer that is young enough, or keeps it until there is one. True: nobody is making
  /// one, and the caller has to, and to call `made`.
  bool ask(Done done) {
    if (answer_ && clock_.now() - made_at_ <= shared_for_) {
      done(answer_);
      return false;
    }
    waiting_.push_back(std::move(done));
    return waiting_.size() == 1;
  }

  void made(Answer answer) {
    answer_ = std::move(answer);
    made_at_ = clock_.now();
    for (Done& done : std::exchange(waiting_, {})) done(answer_);
  }

  /// Forgets who waits.
  void clear() { waiting_.clear(); }

 private:
  const base::Duration shared_for_;
  const base::Clock& clock_;
  Answer answer_;
  base::Clock::TimePoint made_at_;
  std::vector<Done> waiting_;
};

}  // namespace vigil::cluster
