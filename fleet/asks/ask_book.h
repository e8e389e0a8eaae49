// Which requests about the past are under way at the cache, what goes there and what comes back of them, and
// what is logged: no sockets, no actors.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "actors/messages/log_fields.h"
#include "actors/messages/past.h"
#include "actors/supervisor/line_budget.h"
#include "base/clock.h"
#include "cluster/asks/answer.h"
#include "cluster/asks/permissions.h"
#include "cluster/asks/tickets.h"

namespace vigil::fleet {

/// A line of the log about a question or an erasure that is over: who asked, what of which camera of which
/// tenant (of the one that was named, or whose it turned out to be), and what came of it. None of the words
/// of a question.
struct AskLine {
  /// What was erased does not come back.
  bool is_erasure = false;
  std::string text;
  actors::LogFields::Fields fields = {};
};

/// Not thread-safe.
class AskBook {
 public:
  struct Options {
    cluster::Permissions permissions = {};
    /// Questions at the cache; one more is told to come back. What else is asked does not count.
    std::size_t at_once = 4;
    std::chrono::milliseconds retry_after{1000};
  };

  /// The clock outlives the book.
  AskBook(Options options, const base::Clock& clock) : options_(std::move(options)), clock_(clock) {}

  /// What goes to the cache, or what the asker is told instead. An erasure without an end is of what was seen
  /// until now. What begins after now is refused; of a question, only if it begins some seconds after it,
  /// since the asker's clock may be ahead, and one that does not is taken as if it began now.
  std::variant<actors::PastRequestPtr, cluster::AskRefusal> take(const cluster::AskedRequest& asked);

  /// What the asker is told of a word of the cache's; nothing if it is not under way.
  std::optional<cluster::AskReply> hear(const actors::PastReply& word);

  /// Nobody waits for it any more. Whether it was under way, so that the cache is to hear of it.
  bool give_up(const cluster::GivenUpAsk& given_up);

  /// Nothing is answered any more: those that were under way, and whoever asks from now on, are told
  /// `nobody_answers`.
  std::vector<cluster::AskTicket> close();
  static cluster::AskRefusal nobody_answers();

  /// Questions that were told to come back, and those whose time was over, since this was asked last.
  struct Counts {
    std::size_t busy = 0, too_late = 0;
  };
  Counts take_counts() { return std::exchange(counts_, {}); }

  /// Those that are due, in their order. Of what was not answered, there is a bound in a minute.
  std::vector<AskLine> take_lines();

 private:
  struct Asked {
    bool is_question = false;
    base::Clock::TimePoint since{};
    /// What will be logged, if it will be.
    std::optional<cluster::AskedRequest> logged = std::nullopt;
    /// Of a list or a check of all cameras of a tenant: what is told if there are none.
    std::string of_nobody = {};
  };

  /// `tenant`: whose camera it turned out to be; empty: nobody has said.
  void finish(std::map<cluster::AskTicket, Asked>::iterator asked, std::string_view outcome,
              const std::string& tenant = {});
  void log(const Asked& asked, std::string_view outcome, const std::string& tenant = {});

  Options options_;
  const base::Clock& clock_;
  bool is_closed_ = false;
  std::map<cluster::AskTicket, Asked> under_way_;
  std::size_t questions_ = 0;
  Counts counts_;
  std::vector<AskLine> lines_;
  actors::LineBudget unanswered_{60, std::chrono::minutes(1)};
};

}  // namespace vigil::fleet
