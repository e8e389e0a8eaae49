// The windows of a device's cameras: from visual tokens, as they come, to the answers of all rules.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/messages/data.h"
#include "actors/messages/reports.h"
#include "actors/messages/watch_book.h"
#include "actors/stream/audit_book.h"
#include "actors/stream/audit_desk.h"
#include "actors/stream/forgotten_memories.h"
#include "actors/stream/stream_room.h"
#include "actors/stream/window_budget.h"
#include "actors/stream/window_fit.h"
#include "base/clock.h"
#include "engine/memory/recall_desk.h"
#include "engine/run/executor.h"
#include "engine/stream/compiled_question.h"
#include "engine/stream/sliding_window.h"
#include "engine/stream/stream_desk.h"

namespace vigil::actors {

/// Each camera has a stream at the device's desk, which is asked the camera's rules whenever a window is due.
/// Under overload the windows of a camera overtake each other: one waits at most, and a newer one takes its
/// place. Since windows overlap, nothing that was seen is lost for the next. A camera that must lose nothing
/// is held back by its credit instead. Not thread-safe.
class WindowDesk final : public run::WorkSource {
 public:
  struct Options {
    int frames_per_patch = 2;
    /// Asks windows of the past at the same desk; null: nobody does. Has to outlive it.
    memory::RecallDesk* recalls = nullptr;
  };

  /// They have to outlive it. Streams and windows of the desk are its alone; texts are whoever's who knows a
  /// window's name (`WindowAnswers::id`), and are told with its news.
  WindowDesk(stream::StreamDesk& desk, stream::QuestionCompiler& questions, Options options);

  /// A camera starts. Returns the credits to grant for it: what a window and a stride hold.
  std::uint32_t join(const WatchPtr& watch);

  /// As `join`, but a stream of the camera that is there, and has not ended, goes on.
  std::uint32_t resume(const WatchPtr& watch);

  /// A camera's settings, ahead of the first patch that refers to them.
  void know(const WatchPtr& watch) { book_.put(watch); }
  /// The newest settings of a camera; null if nobody told any.
  WatchPtr watch(const std::string& camera) const { return book_.newest(camera); }

  struct Taken {
    /// The patch was a duplicate or out of order, or of a camera that did not join, or nobody told its
    /// settings; it is ignored. Of a new owner's first that is far out of order, a stream begins anew.
    bool refused = false;
    /// Why windows of full length cannot be answered, empty if they can; nothing if that is no news.
    std::optional<std::string> fit;
    /// What the stream calls for; of the device it knows nothing.
    Advice advice = {};
  };
  Taken push(const VisualPatch& patch);

  /// No patch of this camera follows. What is left of its stream becomes a last window.
  void end(const std::string& camera);

  /// Whoever takes answers can take so many more windows; none before the first call.
  void grant(std::uint32_t windows);

  std::optional<base::Clock::TimePoint> due() const override { return desk_.due(); }
  void work(const run::Turn& turn) override {
    now_ = turn.now;
    desk_.work(turn);
  }

  /// What has come of it since the last call.
  struct News {
    /// For a camera.
    std::map<std::string, std::uint32_t> credits;
    struct Answered {
      WindowAnswersPtr window;
      stream::WindowTokens tokens;
      /// When its first pass began.
      base::Clock::TimePoint begun;
      /// When the patch was encoded that made it due: what shows that it has ended may be the next one.
      base::Clock::TimePoint asked;
    };
    std::vector<Answered> answered;
    struct Failure {
      WatchPtr watch;
      std::string reason;
      bool out_of_memory = false;
    };
    std::vector<Failure> failures;
    /// Windows that will not be answered, since a newer one is due.
    std::size_t overtaken = 0;
    std::vector<stream::DeskNews::Told> told;
    std::optional<stream::DeskNews::Pressed> pressed;
    /// What is to be said about a camera's share of the cache, and about its windows' memory.
    struct Remark {
      WatchPtr watch;
      std::string line;
      /// Something is lost by it, or no more.
      bool is_warning = false;
    };
    std::vector<Remark> remarks;
    /// Of cameras that have a budget of keys and values, or had one until now, with each patch.
    struct Budget {
      std::string camera;
      /// What the window that ends now takes of it; nothing: there is none any more.
      std::optional<double> usage;
      /// Visual tokens that windows forgot because of it.
      std::int64_t forgotten = 0;
    };
    std::vector<Budget> budgets;
    /// An answer of a window that was audited.
    struct Audited {
      std::string camera, rule;
      /// Whether both count, or neither (`RuleSettings::threshold`), and how far apart they are.
      bool agrees = false;
      double difference = 0;
    };
    std::vector<Audited> audited;
    /// Audits that came to their ends, or to nothing.
    std::size_t audits = 0, audits_given_up = 0;
    /// Cameras that prune by so many steps less than they are told, from now on.
    std::map<std::string, int> less;
    /// Cameras of which no window is left.
    std::vector<std::string> ended;
  };
  News take_news();

  /// Windows that have no answers yet, of all cameras.
  std::size_t unanswered() const { return pending_.size(); }

 private:
  /// What of a patch is not in the stream.
  struct Shown {
    int frames = 0;
    /// When its last frame ends.
    double end = 0;
    CaptureTime captured;
    WorkSpan encoded;
  };
  struct Lane {
    /// The settings of its last patch, by which its stream goes on; and its rules in the model's tokens, or
    /// why they make no sense.
    WatchPtr watch;
    AuditBook audits;
    /// What it is pruned by, which may be less than its settings say.
    config::PruningSettings pruning;
    std::vector<stream::CompiledQuestionPtr> questions;
    std::string fault;
    stream::SlidingWindow sliding;
    /// Of the patches that a later window may show; the first one's number.
    std::deque<Shown> shown;
    std::int64_t first = 0;
    std::size_t unanswered = 0;
    bool ended = false;
    WindowBudget budget;
    /// As last told (`News::Budget`).
    std::optional<double> usage;
    /// Visual tokens that windows forgot since the last patch.
    std::int64_t forgotten = 0;

    const Shown& at(std::int64_t number) const { return shown[static_cast<std::size_t>(number - first)]; }
  };
  /// A window that was asked.
  struct Pending {
    WindowAnswers window;
    std::uint32_t held_credits = 0;
    base::Clock::TimePoint asked = {};
  };

  std::uint32_t credits_of(const WatchSettings& watch) const;
  void follow(Lane& lane, const WatchPtr& watch);
  /// Its stream keeps what this refresh says from now on.
  void prune_by(Lane& lane, const config::PruningSettings& pruning);
  /// What audits came to.
  void hear_audits();
  void forget_audits(Lane& lane);
  /// What the desk has forgotten of windows' memories, and which are shorter than they should be.
  void hear_forgotten(const stream::DeskNews& news);
  static bool is_of_another_time(const Lane& lane, const WatchSettings& watch, const VisualPatch& patch);
  /// Of a window that is due, what the camera's budget has room for; the rest leaves the stream.
  stream::SlidingWindow::Due within_budget(Lane& lane, const stream::SlidingWindow::Due& due);
  /// What the camera's budget calls for, as its patches go now. Returns its share of groups.
  double keep_budget(Lane& lane, const VisualPatch& patch);
  /// By when a window that ends then is due; `last`: the newest patch.
  static base::Clock::TimePoint due_of(const WatchSettings& watch, const Shown& last, double end);
  void ask(Lane& lane, const stream::SlidingWindow::Due& due, bool overtakes, std::uint32_t held_credits);
  /// Of a window that has come to its end, one way or the other.
  Pending settle(const stream::WindowId& id);

  stream::StreamDesk& desk_;
  stream::QuestionCompiler& questions_;
  Options options_;
  WindowFit fit_;
  StreamRoom room_;
  AuditDesk audits_;
  ForgottenMemories forgotten_;
  /// Of the last piece of work.
  base::Clock::TimePoint now_{};
  WatchBook book_;
  std::map<std::string, Lane> lanes_;
  std::map<stream::WindowId, Pending> pending_;
  std::size_t credits_ = 0;
  News news_;
};

}  // namespace vigil::actors
