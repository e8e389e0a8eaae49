// Questions about cameras' pasts, from what is remembered to an answer: which pages are read, which windows
// are made of them, and what comes of it. What reads and what computes stand elsewhere.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/duration.h"
#include "engine/kv/history/history_store.h"
#include "engine/memory/memory.h"
#include "engine/memory/question_form.h"
#include "engine/memory/recall_desk.h"
#include "engine/memory/search.h"
#include "engine/memory/told_times.h"
#include "engine/stream/answer.h"

namespace vigil::memory {

struct PastAsking {
  history::CameraId camera;
  history::WallRange wall;
  std::string question;
  /// Empty: as `form_of` the question has it.
  std::string about;
  Method method = Method::windows;
  /// Of an answer in words, at most.
  int max_tokens = 64;
  /// When it was asked, if it has waited since.
  std::optional<base::Clock::TimePoint> since = std::nullopt;
};

struct PastAnswer {
  Wanted wanted = Wanted::whether;
  std::string about;
  Search::Result found;
  /// What the model says of the best window, its seconds as time of day; only if words are wanted, or a time
  /// by clusters, and `found` is no "no".
  std::string text;
  Coverage coverage;
  /// That were read, of each tier.
  std::uint64_t host_bytes = 0, disk_bytes = 0;
  /// Until it was known what is remembered; while something was read, and while windows were computed: both
  /// may go on at once. And all of it.
  std::chrono::nanoseconds finding{}, reading{}, looking{}, total{};
};

/// Holds what a question needs, while it needs it. In one thread; nothing here waits.
class QuestionDesk {
 public:
  struct Options {
    Search::Options search = {};
    /// Windows of a question that are computed at once, by the tokens that stand out and whole.
    std::size_t brief_at_once = 8, whole_at_once = 2;
    /// Of what was read, what a question holds at most for its next windows.
    std::uint64_t most_held = std::uint64_t{1} << 30U;
    /// A window that found no room is asked again after so long.
    base::Duration again = std::chrono::milliseconds(250);
  };
  /// They have to outlive it.
  QuestionDesk(Memory& memory, const base::Clock& clock, Options options)
      : memory_(memory), clock_(clock), options_(options) {}

  /// It is answered under this ticket, which is new.
  void ask(std::uint64_t ticket, const PastAsking& asking);
  /// Nobody waits for it any more.
  void give_up(std::uint64_t ticket);
  /// Somebody has erased this: pages that meet it are read no more, and answers that were made of them are
  /// not told.
  void erased(const history::CameraId& camera, const history::WallRange& wall);

  /// Values that are to be read, in the order of `names`.
  struct Reading {
    std::uint64_t id = 0;
    history::CameraId camera;
    std::vector<history::ValueName> names;
  };
  void read(std::uint64_t id, std::vector<history::Value> values);

  /// A window that is to be asked, without its questions.
  struct Window {
    std::uint64_t id = 0;
    Recalling what;
    std::string text;
    int max_tokens = 1;
  };
  void recalled(std::uint64_t id, const stream::Answer& answer);
  /// `is_busy`: later it might be answered.
  void failed(std::uint64_t id, bool is_busy);

  /// Asks again what found no room, if it is time.
  void tick();

  struct Progress {
    std::uint64_t ticket = 0;
    /// Windows that were looked at, of those of this round.
    std::size_t done = 0, of = 0;
    bool is_brief = false;
  };
  struct News {
    std::vector<Reading> readings;
    std::vector<Window> windows;
    /// Windows whose answers nobody waits for any more.
    std::vector<std::uint64_t> forgotten;
    std::vector<Progress> progress;
    std::vector<std::pair<std::uint64_t, PastAnswer>> answered;
    /// What it was of was erased meanwhile.
    std::vector<std::uint64_t> erased;
  };
  News take_news() { return std::exchange(news_, {}); }

  std::size_t open() const { return sessions_.size(); }

  /// Whose a window is: nothing if nobody waits for it any more.
  struct WindowOf {
    std::uint64_t ticket = 0;
    history::CameraId camera;
  };
  std::optional<WindowOf> asker_of(std::uint64_t id) const;

 private:
  /// A form of a page that a question has read, or waits for.
  struct Held {
    std::vector<RecalledPage::Value> values;
    std::uint64_t bytes = 0;
    bool is_there = false;
    /// Counted over the session.
    std::uint64_t used = 0;
  };
  using HeldKey = std::pair<std::size_t, kv::Form>;
  struct Job {
    Look look;
    std::string text;
    int max_tokens = 1;
    /// Of each slice's page.
    std::vector<kv::Form> forms;
    enum class State : std::uint8_t { reads, asked, waits } state = State::reads;
    base::Clock::TimePoint again{};
  };
  struct Session {
    PastAsking asking;
    PastAnswer answer;
    std::vector<Memory::Found> pages;
    std::optional<Search> search;
    std::deque<Look> pending;
    std::size_t round = 0, done = 0;
    /// By ids over all sessions.
    std::map<std::uint64_t, Job> jobs;
    std::map<HeldKey, Held> held;
    std::uint64_t uses = 0;
    /// Numbers of pages that cannot be read.
    std::vector<std::uint64_t> damaged;
    /// Of pages that were left out of what is seen by clusters.
    std::vector<std::uint64_t> keyless;
    /// The last look, for words, is under way or over.
    bool is_told = false;
    base::Clock::TimePoint asked{};
    /// The same, by the wall's clock.
    std::int64_t asked_wall = 0;
    std::optional<base::Clock::TimePoint> reads_since, looks_since;
    std::size_t readings = 0, windows = 0;
  };
  using Sessions = std::map<std::uint64_t, Session>;

  static std::optional<kv::Form> form_for(const Memory::Found& page, const Job& job);
  void go_on(Sessions::iterator session);
  void start(Session& session, Look look, std::string text, int max_tokens);
  void resume(Session& session, std::uint64_t id, Job& job);
  /// What the job needs is there: it is asked.
  bool ask_if_ready(Session& session, std::uint64_t id, Job& job);
  bool plan(Session& session, Job& job);
  void end(Session& session, std::uint64_t id, std::optional<double> log_odds);
  void release(Session& session);
  std::optional<Look> words_of(const Session& session) const;
  std::vector<ShownPatch> shown(const Session& session, const Look& look) const;
  bool moves_together(const Session& session, const Look& look) const;
  void finish(Sessions::iterator session);
  void begin_time(std::optional<base::Clock::TimePoint>& since) const;
  void end_time(std::optional<base::Clock::TimePoint>& since, std::chrono::nanoseconds& sum) const;
  /// Whose job that is; nothing if it is over.
  std::optional<std::uint64_t> ticket_of(std::uint64_t job) const;

  Memory& memory_;
  const base::Clock& clock_;
  Options options_;
  Sessions sessions_;
  /// What each reading is of: a session's form of a page, and how many values it has.
  struct Read {
    std::uint64_t ticket = 0;
    std::vector<std::pair<HeldKey, std::vector<history::Layers>>> of;
  };
  std::map<std::uint64_t, Read> readings_;
  std::uint64_t ids_ = 0;
  News news_;
};

}  // namespace vigil::memory
