// The seam between whoever has cameras and questions (actors, commands) and the model that answers: streams,
// windows and texts of one device.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/duration.h"
#include "engine/kv/book.h"
#include "engine/kv/carried_view.h"
#include "engine/model/families/prompt.h"
#include "engine/model/model_folder.h"
#include "engine/past/past_options.h"
#include "engine/run/executor.h"
#include "engine/run/passes.h"
#include "engine/stream/answer.h"
#include "engine/stream/camera_stream.h"
#include "engine/stream/compiled_question.h"
#include "engine/stream/desk_news.h"
#include "engine/stream/ids.h"
#include "engine/stream/memory_shares.h"
#include "engine/stream/page_sink.h"
#include "engine/stream/pass_plan.h"
#include "engine/stream/text.h"
#include "engine/stream/window_memory.h"
#include "engine/stream/yes_no.h"

namespace vigil::stream {

/// What is asked of a stream.
struct Asking {
  PatchRange patches;
  struct Item {
    CompiledQuestionPtr question;
    /// May be empty.
    Text::OnText on_text = {};
  };
  std::vector<Item> questions;
  /// What is due earlier is computed first.
  base::Clock::TimePoint due{};
  /// So long after the first `expire` that follows its answers its texts can be continued; then it is over.
  /// Nothing: for ever.
  std::optional<base::Duration> keep = std::nullopt;
  /// It takes the place of the stream's windows that still wait for theirs, which are told as overtaken.
  bool overtakes = false;
};

/// Owns the streams of a device's cameras, their windows and their texts, by name: what lies behind a
/// WindowId is here alone, and is taken back when it is done, or its deadline has passed. A window gets all
/// pages that it and its answers may take, or waits, in the order in which windows are due; pages that
/// streams keep for later windows go when they are wanted. So a window that fits the cache alone is always
/// answered. What they keep leaves room for the texts of one window, those of the camera with the most.
///
/// A pass holds the next token of texts and rows of windows, so that both join and leave between passes. One
/// that fails changes nothing: it is tried again in smaller pieces, and what fails alone is told with the
/// reason. DeviceLost alone comes out of passes. Who owns it calls `expire` now and then, also when nothing
/// is due: windows may wait for the room of texts that nobody asks for. Not thread-safe.
class StreamDesk final : public run::WorkSource {
 public:
  /// Tokens of a question, its answer and all that is around them, as a rule.
  static constexpr std::int64_t kText = 512;

  struct Options {
    PassLimits limits;
    /// Which engine of its device this is, for the names of windows.
    std::uint32_t epoch = 0;
    /// Bytes of a page, on all devices that share the model; 0, where nobody has a budget of bytes.
    std::int64_t page_bytes = 0;
    /// How what lies before windows is chosen from, and in which form it lies in the host's memory; its bytes
    /// and blocks follow from the memory's length.
    past::PastOptions memory = {};
    /// Bytes of the host that what lies before all windows may take together (`MemoryShares`).
    std::int64_t memory_bytes = std::numeric_limits<std::int64_t>::max();
  };

  /// What it is given has to outlive it; the passes write to pages of the book. Throws ModelError for a
  /// tokenizer that has no token for "Yes" or "No".
  StreamDesk(const model::ModelFolder& folder, const model::PromptBuilder& prompts, kv::Book& book,
             run::Passes& passes, const Options& options);

  /// A camera's stream begins. Throws std::invalid_argument for one that is open.
  void open(const std::string& camera, RefreshPolicyPtr policy);
  /// A stream that begins with what is remembered of another one (`CameraStream::restore`): its slots, from
  /// oldest to newest, into which whoever calls writes keys and values of the patches that have some, before
  /// a window is asked. What it keeps goes as soon as somebody else wants the room; then its windows fail.
  /// Absent, and nothing is open, where the cache has no room for it that nobody keeps. Throws
  /// std::invalid_argument for a camera whose stream is open, and as that.
  std::optional<std::span<const std::int32_t>> restore(const std::string& camera,
                                                       std::span<const RememberedPatch> patches);
  /// A stream that was restored, and of which no window was asked, goes on with patches that have keys: their
  /// slots. Absent where there is no room for them, or what it had was given up: it is to be closed then.
  /// Throws std::invalid_argument for no such stream, for patches without keys, and as
  /// `CameraStream::restore`.
  std::optional<std::span<const std::int32_t>> restore_more(const std::string& camera,
                                                            std::span<const RememberedPatch> patches);
  /// Its next windows are placed by this policy; what the one before kept is given up. As
  /// `CameraStream::follow` for an open stream; std::invalid_argument for another.
  void follow(const std::string& camera, RefreshPolicyPtr policy);
  bool is_open(const std::string& camera) const { return streams_.contains(camera); }

  // Of an open stream; std::invalid_argument for another.

  /// As CameraStream::append.
  std::int64_t append(const std::string& camera, model::VisualTokensPtr patch,
                      std::optional<base::Clock::WallTime> captured = std::nullopt);
  /// Patches before this one are wanted no more, but by windows that were asked.
  void slide(const std::string& camera, std::int64_t first);
  const CameraStream& stream(const std::string& camera) const { return find(camera).stream; }

  /// So many bytes of keys and values the stream may keep between windows, and the visual tokens of its
  /// windows may take, from the next one on; 0: any number. Whole pages count. A window of one patch may be
  /// larger: then nothing of it is kept.
  void set_budget(const std::string& camera, std::uint64_t bytes);
  /// Of a window of these patches, those that the stream still has and its budget has room for: the newest.
  PatchRange within_budget(const std::string& camera, const PatchRange& range) const {
    return find(camera).stream.within_limit(range);
  }
  /// As `slide`, of patches that the stream's budget has no room for.
  void shorten(const std::string& camera, std::int64_t first);
  /// Texts of its windows see what lies before these, from the patches on that leave from now on: so long up
  /// to the newest of them, and what is in one block with it (`WindowMemory`); 0: nothing. Of a policy that
  /// keeps keys; of another, nothing is there. Such texts are not lent, nor carried. A memory that is there
  /// goes on as it was made (`how`), with another length. Throws std::invalid_argument for a stream that is
  /// not open.
  void set_memory(const std::string& camera, base::Duration length) {
    set_memory(camera, length, options_.memory);
  }
  void set_memory(const std::string& camera, base::Duration length, const past::PastOptions& how);
  /// As it was set last.
  base::Duration memory(const std::string& camera) const;
  /// No patch follows. Windows that have no answers yet are told as failed; texts go on.
  void close(const std::string& camera);

  /// Asks questions about a window. Throws std::invalid_argument for one that can never be answered: of
  /// patches that are not there, or larger than the cache or than its stream's budget (`within_budget`).
  WindowId ask(const std::string& camera, Asking asking);

  /// The camera's next window will show the patches from `first` on, and will be due then. What there is of
  /// it is computed after what was asked, in room that nobody else wants, and is there when it is asked. No
  /// answer depends on it.
  void expect(const std::string& camera, std::int64_t first, base::Clock::TimePoint due);

  /// Pages that a window with these questions takes at most, with answers of full length.
  std::int64_t pages_for(std::int64_t visual_tokens, std::span<const CompiledQuestionPtr> questions) const;

  /// From now on so many windows get answers, until it is called again; as many as there are, if it never is.
  /// For whoever takes answers no faster.
  void allow(std::size_t windows) { allowed_ = windows; }

  /// Where keys and values of all streams go when they leave them, from now on; null: nowhere.
  void leave_to(std::shared_ptr<PageSink> sink);

  /// Offers the sink what the camera's stream still has, as `Leaving::shown`: no window and no answer depends
  /// on it. Of patches that no window has shown yet, a policy that keeps keys has none. Returns the window of
  /// it that is to be answered next, after which (`is_open`) there may be more; nothing if there is none, or
  /// no stream.
  std::optional<WindowId> show(const std::string& camera);
  /// Whether this window of a camera was asked, and has no answers and no other end yet.
  bool is_open(const WindowId& window) const;

  /// Tokens that streams may keep together between windows: all but those in reserve for texts.
  std::int64_t most_kept() const {
    return std::max<std::int64_t>(0, book_.pages() - book_.reserve()) * book_.page_tokens();
  }

  /// Tokens before the frames of a window.
  std::int64_t before() const { return prompts_.before(); }

  /// Pages of the cache, and the share of them that windows, texts and streams hold; but for what is computed
  /// ahead, whose room is anybody's.
  std::int64_t pages() const { return book_.pages(); }
  double usage() const;
  /// Tokens that the cache has room for; and the longest window, in visual tokens, beside one question and
  /// its answer of ordinary length: negative where not even these have room.
  std::int64_t tokens() const { return book_.tokens(); }
  std::int64_t max_visual_tokens() const { return tokens() - kText; }

  /// From now on it is told what each pass adds to texts, for whoever proposes what follows.
  void tell_tokens(bool is_told) { tells_tokens_ = is_told; }
  /// What may follow in a text of which `said` tokens are there: its next pass verifies it, one pass for as
  /// many tokens as are right and one more; as much of it as a pass has room for, and of a pass that fails
  /// nothing. The answer is as `Text` says. Of a text that is to be continued (`explain`), instead of what
  /// was proposed before. False, and nothing is verified, for another one, where other tokens are there by
  /// now, and for a window with a memory: there, rows of one pass choose together what they see.
  bool propose(const WindowId& window, std::size_t question, std::size_t said,
               std::span<const std::int32_t> tokens);

  /// Completes an answer of a window whose answers were told; it is told when it has ended. Once for each
  /// question; false if there is nothing to continue: another engine's, done, over, or continued before.
  bool explain(const WindowId& window, std::size_t question);
  /// A text that another desk goes on with, of the same model on other devices (`adopt`). What it sees stays
  /// in this desk's pages until the text, or the window, is done.
  struct Loan {
    WindowId window;
    std::size_t question = 0;
    Text text;
    base::Clock::TimePoint due{};
    /// As of its window; nothing if that has none, or none yet.
    std::optional<base::Clock::TimePoint> deadline = std::nullopt;
    std::optional<base::Duration> keep = std::nullopt;
    bool is_far = false;
  };
  /// In place of `explain`; nothing where that would be false, and of a window with a memory, whose texts
  /// stay.
  std::optional<Loan> lend(const WindowId& window, std::size_t question);
  /// Goes on with it, as if its window had been asked here: it is told when it has ended. The cache has to be
  /// as large as the lender's. Throws DeviceLost, and what copying the pages does: the text is closed then.
  void adopt(Loan loan);

  /// A text that goes on in another process; what is needed of its window lies in the host's memory.
  struct Carried {
    CarriedText text;
    kv::CarriedView view;
    bool is_far = false;
    /// As `Passes` has them, of the pages; these, as many as the view has, one behind the other.
    std::uint64_t pages_form = 0;
    std::size_t page_bytes = 0;
    std::shared_ptr<std::byte[]> pages;
    base::Clock::TimePoint due{};
    /// As of a loan.
    std::optional<base::Clock::TimePoint> deadline = std::nullopt;
    std::optional<base::Duration> keep = std::nullopt;
  };
  /// In place of `explain`, once; nothing where that would be false, for a text that has ended already, and
  /// of a window with a memory. It stays here as well, for as long as its window does: `explain` goes on with
  /// it after all, `done` tells that this is not needed. Throws what reading the pages does, and nothing has
  /// changed then.
  std::optional<Carried> carry(const WindowId& window, std::size_t question);
  /// A text that another process's desk has carried, and its pages, `Passes::page_bytes()` each, which may go
  /// when it returns.
  struct Received {
    const CarriedText& text;
    const kv::CarriedView& view;
    std::uint64_t pages_form = 0;
    std::span<const std::byte* const> pages;
    bool is_far = false;
    base::Clock::TimePoint due{};
    base::Clock::TimePoint deadline{};
  };
  /// Goes on with it, as the only question of a window that has this name: it is told when it has ended.
  /// Throws std::invalid_argument for one that is none of this model, std::runtime_error if the cache has no
  /// room now, DeviceLost, and what copying pages does; nothing is left of it then.
  WindowId receive(const std::string& camera, const Received& received);

  /// Nobody will ask for this text, or for any text of the window, any more; a window that waits is
  /// forgotten.
  void done(const WindowId& window, std::size_t question);
  void done(const WindowId& window);
  /// Nobody will ask for another text of the window: those that were asked for come to their ends.
  void let_go(const WindowId& window);

  /// Takes back what is past its deadline; whoever has an answer's text computed still is told so.
  void expire(base::Clock::TimePoint now);
  std::optional<base::Clock::TimePoint> due() const override;
  /// Runs one pass, and before it those by which its windows' policies choose rows. One for texts that are
  /// due takes rows of windows that are due later along only if nobody else's work is due before these.
  void work(const run::Turn& turn) override;

  /// What has come of it since the last call.
  DeskNews take_news() { return std::exchange(news_, {}); }

  /// What lies before the windows of all open streams, those of questions about the past among them; `room`:
  /// of the host's memory, what these may take now.
  struct WindowMemories {
    std::int64_t tokens = 0, host_bytes = 0, device_bytes = 0, room = 0;
  };
  WindowMemories window_memory() const;

  /// Windows that wait for room, and those that are being computed; texts that go on.
  std::size_t waiting() const { return waiting_.size(); }
  std::size_t placed() const { return placed_.size(); }
  std::size_t texts() const { return going_.size(); }
  /// Rows of the last pass, and of the largest one that may follow.
  std::int64_t last_rows() const { return last_rows_; }
  std::int64_t most_rows() const { return limits_.rows; }

 private:
  /// Of a WindowId what tells windows apart.
  struct Key {
    std::uint32_t epoch = 0;
    std::uint64_t number = 0;
    friend bool operator==(const Key&, const Key&) = default;
    friend bool operator<(const Key& a, const Key& b) {
      return std::tie(a.epoch, a.number) < std::tie(b.epoch, b.number);
    }
  };
  struct Stream {
    Stream(std::string name, CameraStream of, std::uint64_t which)
        : camera(std::move(name)), stream(std::move(of)), run(which) {}
    std::string camera;
    CameraStream stream;
    /// It began with what is remembered: what leaves it, leaves nothing that is new.
    bool is_restored = false;
    /// Null: nobody sees what lies before its windows.
    std::shared_ptr<WindowMemory> memory;
    /// For the sink.
    std::uint64_t run;
    std::int64_t wanted_from = 0;
    /// Its budget has no room for the patches before this one.
    std::int64_t shortened_to = 0;
    /// Pages of the texts of its last window, and of what is before its frames.
    std::int64_t texts = 0;
    /// Its windows without answers, in the order in which they were asked.
    std::vector<Key> open;
    /// The turn in which a window of it was placed last.
    std::uint64_t used = 0;
    /// What it follows as soon as no window of it is being computed; null: what it does.
    RefreshPolicyPtr next_policy;
    /// Whose rows are being computed, since it was asked.
    std::optional<Key> placing;
    /// The next window, as far as its patches are there: it was not asked yet, or waits for the rest of its
    /// room.
    std::optional<Key> ahead;
    /// When the next window will be due.
    std::optional<base::Clock::TimePoint> next_due;
  };

  /// carried: it goes on in another process, and could here.
  enum class TextState : std::uint8_t { idle, goes_on, lent, carried, closed };
  struct OpenText {
    Text text;
    kv::Book::Claim claim;
    TextState state = TextState::idle;
    /// What a text that was lent saw.
    std::optional<kv::View> lent = std::nullopt;
    /// When the pass of its second token began.
    std::optional<base::Clock::TimePoint> begun = std::nullopt;
  };
  struct Window {
    WindowId id;
    Asking asking;
    bool is_asked = true;
    /// As urgent as the first window that it overtook.
    base::Clock::TimePoint rank{};
    /// When its first pass since it was asked began.
    std::optional<base::Clock::TimePoint> begun;
    /// Set by the first `expire` since it has its answers.
    std::optional<base::Clock::TimePoint> deadline;
    /// What its texts see before it; null: nothing.
    std::shared_ptr<WindowMemory> memory;
    kv::Book::Claim claim;
    /// While its rows are computed, which may begin before it is asked.
    std::optional<PlacedWindow> placed;
    /// Rows of `placed`, and those that are computed.
    std::int64_t rows = 0;
    std::int64_t filled = 0;
    /// Rows of its probe that were looked at, and what came of them.
    std::int64_t looked_at = 0;
    std::vector<float> distances;
    /// Those of its questions that were begun, and how many of them have their first token. (Of a window that
    /// was adopted: those that were.)
    std::map<std::size_t, OpenText> texts;
    std::size_t asked = 0;
    bool is_far = false;
    bool is_answered = false;
    /// Of one that was adopted.
    std::unique_ptr<kv::Handover> handover;
  };
  using Windows = std::map<Key, Window>;
  /// A text of a window.
  struct TextRef {
    Key window;
    std::size_t question = 0;
    friend bool operator==(const TextRef&, const TextRef&) = default;
  };
  /// A pass that is being put together.
  struct Draft;
  /// What may go into it.
  struct Candidates {
    std::vector<Key> windows;
    std::vector<TextRef> texts;
  };

  Key next_key() { return {options_.epoch, asked_++}; }
  Stream& find(const std::string& camera);
  const Stream& find(const std::string& camera) const;
  Window& window(Key key) { return windows_.find(key)->second; }
  /// Null if it is not there, or not of this camera.
  Window* find_window(const WindowId& id);
  /// Null if the window is not there, was not answered, or has no such question.
  OpenText* find_text(const WindowId& id, std::size_t question);
  std::int64_t tail_pages(const CompiledQuestion& question) const;
  /// Of all of its questions.
  std::int64_t tails(const Window& window) const;
  /// Keeps room for the texts of one window, whichever stream's.
  void reserve_texts();
  /// Its pages go back; of a window on its way, what was computed of it is given up.
  void forget(Key key);
  void fail(Key key, const std::string& reason, bool out_of_memory);
  static bool can_expire(const Window& window);
  void close_text(const TextRef& ref);
  /// Tells why a text that was to be continued has no end, and closes it.
  void fail_text(const TextRef& ref, std::exception_ptr why);
  /// As far as windows that wait for it allow.
  void slide(Stream& stream);
  /// Where what leaves the stream goes.
  void send_leaving(const std::string& camera, Stream& stream);
  /// What has left it, but for what windows show that are not over, is part of its memory.
  void settle_memory(Stream& stream);
  void settle_memories();
  /// Each memory may take its share, of what all that are there now need; where one has more, its oldest
  /// goes.
  void share_memory();
  /// What that has no room for is given up, and told.
  void change_memory(const std::string& camera, WindowMemory& memory, const std::function<void()>& change);
  /// Gives up what the texts of this pass see before their windows. False: nothing.
  bool forget_memories(const Draft& draft, const std::string& reason);
  /// The last segment is a text of this window, and begins at this position.
  void see_before(Draft& draft, const Window& window, const model::Position& at) const;
  /// Whether what was computed ahead is the beginning of a window of these patches.
  static bool begins(const Window& window, const PatchRange& range);
  static void follow_next(Stream& stream);
  /// Gives back what was computed ahead of the stream's next window.
  void drop_ahead(Stream& stream);
  /// Pages of what was computed ahead, but not for this window.
  std::int64_t pages_ahead(const Stream& stream, std::optional<Key> but = std::nullopt) const;
  /// The windows of which rows can be computed ahead.
  std::vector<const Window*> ahead() const;

  /// Others' pages go until the window has its place, if that is enough.
  void make_room(Key key, const Window& window, Stream& stream, const std::function<std::int64_t()>& needed);
  /// Rows of windows that have their places which are still to be computed.
  std::int64_t rows_placed() const;
  /// Gives places to windows that wait, as long as there is room and a pass is not full.
  void admit();
  void insert_by_rank(std::vector<Key>& into, Key key);
  bool may_admit() const { return !is_full_ && placed_.size() < std::min(limits_.windows, allowed_); }
  /// What other streams keep, or have computed ahead, goes as far as that is needed (`make_room`), of those
  /// first whose next window is due last.
  bool place(Key key, Window& window, Stream& stream);

  /// `until`: as of a turn.
  Candidates candidates(base::Clock::TimePoint until) const;
  /// Looks at the keys of those windows whose policy wants that, in passes of as many rows as any other, and
  /// lays out the rest of their places. False if something failed, whatever it was.
  bool look(std::span<const Key> windows);
  Draft draft_probe(std::span<const Key> windows);
  /// The rest of a window's place.
  bool choose_rows(Key key);
  /// Of each; what is proposed for them is cut to what a pass may have of it.
  std::vector<std::int64_t> rows_of_texts(std::span<const TextRef> texts);
  Draft draft(const Candidates& candidates);
  /// Adds the `count` rows of these runs after the first `skipped`, as a segment of its own.
  void add_rows(Draft& draft, const PlacedWindow& placed, std::span<const RowRun> runs, std::int64_t skipped,
                std::int64_t count);
  void add_window(Draft& draft, Key key, std::int64_t rows, std::size_t questions);
  void add_text(Draft& draft, const TextRef& ref);
  void commit(Draft& draft);
  void choose(const TextRef& ref, std::size_t output);
  void take(const TextRef& ref, OpenText& open, std::size_t output);
  void answer(Key key);
  /// Those that are computed and have all their first tokens.
  void answer_complete();
  void failed(const Draft& draft, const std::exception& error, bool out_of_memory);
  /// Smaller passes from now on; false if they would be no smaller than this one.
  bool shrink(const Draft& draft);
  /// Waits for all that was submitted.
  void settle();
  void grow(const Draft& draft);

  const model::ModelFolder& folder_;
  const model::PromptBuilder& prompts_;
  kv::Book& book_;
  run::Passes& passes_;
  Options options_;
  /// As large as memory has allowed.
  PassLimits limits_;
  int full_passes_ = 0;
  YesNo words_;
  std::map<std::string, Stream> streams_;
  /// Of streams, restored ones or not, and of windows that saw one that is its stream's no more.
  std::vector<std::tuple<std::string, std::weak_ptr<WindowMemory>, bool>> memories_;
  MemoryShares shares_;
  Windows windows_;
  /// Without answers so far, the most urgent first: those that are placed, and those that wait.
  std::vector<Key> placed_, waiting_;
  /// Those that go on, of the most urgent windows first.
  std::vector<TextRef> going_;
  /// After a pass that failed, its parts, each in a pass of its own.
  std::vector<Key> windows_alone_;
  std::vector<TextRef> texts_alone_;
  /// No window that waits has room until something goes: more pages are free than then, at the latest.
  bool is_full_ = false;
  std::int64_t free_when_full_ = 0;
  std::size_t allowed_ = std::numeric_limits<std::size_t>::max();
  /// What passes without outputs read, which may still be on their way: their memory is not to go before they
  /// have ended.
  std::vector<model::VisualTokensPtr> in_flight_;
  /// The time of the last pass, and its rows.
  base::Clock::TimePoint now_{};
  std::int64_t last_rows_ = 0;
  std::uint64_t asked_ = 0;
  std::uint64_t turn_ = 0;
  bool tells_tokens_ = false;
  DeskNews news_;
  std::shared_ptr<PageSink> sink_;
  /// Streams that were opened.
  std::uint64_t runs_ = 0;
};

}  // namespace vigil::stream
