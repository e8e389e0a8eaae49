// Which source is opened when: opening takes a thread, and those that cannot be reached must hold up neither
// each other nor those that can. Without actors.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "actors/messages/data.h"
#include "base/clock.h"

namespace vigil::actors {

/// An input of a camera.
struct SourceId {
  std::string camera;
  config::Role role = config::Role::detect;
  friend bool operator==(const SourceId&, const SourceId&) = default;
  friend bool operator<(const SourceId& a, const SourceId& b) {
    return std::tie(a.camera, a.role) < std::tie(b.camera, b.role);
  }
};

/// What becomes of a source whose actor has ended.
struct SourceEnd {
  /// gone: it is not to be opened again; rest: at `until`; no_descriptor: once there is a descriptor.
  enum class Next : std::uint8_t { gone, rest, no_descriptor };
  Next next = Next::gone;
  base::Clock::TimePoint until = {};
  friend bool operator==(const SourceEnd&, const SourceEnd&) = default;
};

/// A source waits for its time, then for its turn, without a thread. In its turn it is asked first whether
/// its server answers (media/reach.h), which takes a descriptor and no thread, or opened at once where
/// threads are plenty. Turns come in the order of hope: what was lost after it delivered, what was never
/// tried, what failed last time. Not thread-safe.
class Dialer {
 public:
  using TimePoint = base::Clock::TimePoint;

  struct Limits {
    /// Sources that are being opened, each in a thread, until they deliver or fail.
    std::size_t opens = 192;
    /// How many of these may have failed the last time. The others are left for those that did not.
    std::size_t repeats = 64;
    /// While fewer are being opened, a source that did not fail is opened without being asked before.
    std::size_t unasked = 64;
    /// Sources whose servers are being asked.
    std::size_t questions = 4096;
    /// Files and devices that are being opened; they queue for nothing else.
    std::size_t files = 64;
    /// What takes longer to deliver makes room for another: a camera that sends a key frame a minute, a disk
    /// that hangs.
    base::Duration patience = std::chrono::seconds(30);
    base::Duration file_patience = std::chrono::seconds(1);
    /// Descriptors that all sources together may hold, by `descriptors` of each.
    std::size_t descriptors = std::numeric_limits<std::size_t>::max();
  };

  /// Of a process that may have so many descriptors: half for the sources, as alerts and their readers need
  /// some, too.
  static Limits limits_for(std::uint64_t descriptors);

  /// file: opened as soon as it is due; asked: its server can be asked; blind: it cannot.
  enum class Way : std::uint8_t { file, asked, blind };

  explicit Dialer(Limits limits) : limits_(limits) {}
  Dialer(const Dialer&) = delete;
  Dialer& operator=(const Dialer&) = delete;

  /// It is due now. `descriptors`: how many it takes to read it. An id that is there already is replaced.
  void add(const SourceId& id, Way way, std::size_t descriptors, TimePoint now);

  /// It is not wanted any more, whatever it does. The question about it that is to be forgotten, if there is
  /// one.
  std::optional<std::uint64_t> remove(const SourceId& id);

  struct Question {
    std::uint64_t ticket = 0;
    SourceId id;
  };
  struct Turn {
    /// Each ends with `delivers`, `rest`, `no_descriptor` or `remove`.
    std::vector<SourceId> open;
    /// Each ends with `answered`, unless it is forgotten.
    std::vector<Question> ask;
    /// They wait until descriptors are free, which is told once until they are opened.
    std::vector<SourceId> without_descriptor;
    bool empty() const { return open.empty() && ask.empty() && without_descriptor.empty(); }
  };
  /// What to do now; again after each of the calls below, and at `wake`.
  Turn next(TimePoint now);

  /// When there will be something to do of itself; nothing if never.
  std::optional<TimePoint> wake() const;

  /// Whose server answered, or did not; it is opened in its turn, or to be laid to rest by the caller.
  /// Nothing if the question was forgotten.
  std::optional<SourceId> answered(std::uint64_t ticket, bool reachable);

  /// It was opened, and its first frame came.
  void delivers(const SourceId& id);

  /// It cannot be reached, or was lost: it is due again then.
  void rest(const SourceId& id, TimePoint until);

  /// It could not be tried, since no descriptor was left: nothing is for a second, then one source, and then
  /// all.
  void no_descriptor(const SourceId& id, TimePoint now);
  /// Whether that is so: until a source could be tried again.
  bool exhausted() const { return exhausted_; }
  /// The same, when it is another than at the last call.
  std::optional<bool> exhaustion_news();

  /// Why the sources of a turn wait for descriptors.
  std::string without_descriptor_reason() const {
    return "all " + std::to_string(limits_.descriptors) + " file descriptors for cameras are in use";
  }

  /// Whoever had it open has ended: `remove`, `rest` or `no_descriptor`, as it says. As `remove`, a question
  /// that is to be forgotten.
  std::optional<std::uint64_t> ended(const SourceId& id, const SourceEnd& end, TimePoint now);

  /// How much is under way.
  std::size_t opening() const { return opens_ + file_opens_; }
  std::size_t asking() const { return asking_; }

 private:
  enum class Hope : std::uint8_t { delivered, untried, failed };
  enum class State : std::uint8_t { waiting, queued, asking, opening, delivering };
  /// due: its server is to be asked before the next attempt; waived: it is not.
  enum class Asking : std::uint8_t { due, answered, waived };
  struct Entry;
  /// By time, then in the order in which they came.
  using Place = std::pair<TimePoint, std::uint64_t>;
  using Queue = std::map<Place, Entry*>;

  struct Entry {
    SourceId id;
    Way way = Way::file;
    std::size_t descriptors = 1;
    State state = State::waiting;
    Hope hope = Hope::untried;
    /// Attempts that failed since it delivered.
    int failures = 0;
    Asking asking = Asking::due;
    /// It is told that it waits for descriptors.
    bool told = false;
    std::uint64_t ticket = 0;
    /// Where it waits, or is opened with a deadline.
    Queue* queue = nullptr;
    Place place;
  };

  void put(Entry& entry, Queue& queue, TimePoint when);
  void take(Entry& entry);
  void leave(Entry& entry);
  void enqueue(Entry& entry);
  void open(Entry& entry, TimePoint now, Turn& turn);
  void ask(Entry& entry, Turn& turn);
  void serve(Hope hope, TimePoint now, Turn& turn);
  void open_scout(TimePoint now, Turn& turn);
  void expire(TimePoint now);
  bool has_room(std::size_t descriptors);
  bool has_slot(Hope hope) const;
  void free_slot(Entry& entry);
  void tried(const SourceId& id);
  Queue& unasked(Hope hope) { return unasked_[static_cast<std::size_t>(hope)]; }
  Queue& ready(Hope hope) { return ready_[static_cast<std::size_t>(hope)]; }
  bool has_queued() const { return queued_ > 0; }

  Limits limits_;
  std::map<SourceId, Entry> entries_;
  std::map<std::uint64_t, Entry*> tickets_;
  Queue waiting_;
  Queue files_;
  /// By hope: those whose servers are to be asked, and those that are to be opened.
  std::array<Queue, 3> unasked_;
  std::array<Queue, 3> ready_;
  std::size_t queued_ = 0;
  /// Until their patience is over.
  Queue opening_;
  /// Queued, and not told of descriptors.
  std::set<Entry*> untold_;
  std::size_t opens_ = 0;
  std::size_t repeats_ = 0;
  std::size_t file_opens_ = 0;
  std::size_t asking_ = 0;
  std::size_t held_ = 0;
  std::uint64_t order_ = 0;
  std::uint64_t last_ticket_ = 0;
  bool short_of_descriptors_ = false;
  bool exhausted_ = false;
  bool exhaustion_told_ = false;
  TimePoint paused_until_{};
  /// The one that tries whether descriptors are still exhausted.
  std::optional<SourceId> scout_;
};

}  // namespace vigil::actors
