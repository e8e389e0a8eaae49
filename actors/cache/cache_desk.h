// What cameras remember, and what is asked about it: all of the cache but threads and messages.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "actors/cache/disk.h"
#include "actors/cache/past_text.h"
#include "actors/cache/present_book.h"
#include "actors/messages/clips.h"
#include "actors/messages/past.h"
#include "actors/messages/remembered.h"
#include "actors/messages/watch.h"
#include "base/clock.h"
#include "base/repeated_lines.h"
#include "engine/kv/history/history_store.h"
#include "engine/memory/memory.h"
#include "engine/memory/question_desk.h"

namespace vigil::actors {

/// In one thread. Nothing here waits for a disk, but an erasure for its first stage, which is short.
class CacheDesk {
 public:
  struct Options {
    memory::Memory::Options memory;
    memory::QuestionDesk::Options questions = {};
    /// Which show what cameras saw; has to outlive it. Null: none is named.
    const Clips* clips = nullptr;
  };
  /// `store`: null if nothing goes to a disk. They have to outlive it.
  CacheDesk(history::HistoryStore* store, const base::Clock& clock, Options options);

  // Of the pipeline.
  void watch(const WatchPtr& watch);
  void end(const std::string& camera);
  /// Of cameras that are watched here, `watch` says it. What is kept for less long than before is asked about
  /// no more.
  void keep(const Keeps& keeps);
  void take(LeftPages& pages);

  // Of those who ask.
  void take(const PastRequest& request);
  void forget(std::uint64_t ticket);

  // Of those whom it asks.
  void read(ReadPages& pages);
  void recalled(const Recalled& recalled);
  /// All devices have told what they have of a camera, or are no more.
  void shown(std::uint64_t show);
  /// The device that had these is no more.
  void lost(const std::vector<std::uint64_t>& recalls);
  void hear(const DiskNews& news);

  /// To be called some times a second.
  void tick();
  /// It ends: what is yet to be said to whoever writes is news.
  void finish() { age(); }

  /// What was kept, and what was not.
  struct Counts {
    /// Pages that are remembered, and those of them that the host has alone though the disk was to have them.
    std::uint64_t pages = 0, unwritten = 0;
    std::uint64_t written_bytes = 0, removed_bytes = 0, failed_writes = 0;
    /// Pages, by why they are not remembered.
    std::map<memory::Gap, std::uint64_t> lost;
    /// That questions have read.
    std::uint64_t host_bytes = 0, disk_bytes = 0;
    std::uint64_t erasures = 0;
  };
  struct News {
    std::vector<PagesToRead> to_read;
    /// For all devices.
    std::vector<Show> shows;
    std::vector<Recall> recalls;
    std::vector<std::uint64_t> forgotten;
    std::vector<PastReply> replies;
    /// From now on.
    std::optional<WantedForms> wanted;
    /// For whoever writes: in the place of what he was told before, if it was looked at anew.
    memory::Memory::Aged aged;
    bool was_aged = false;
    /// There is something to be written, or to be removed.
    bool wakes_writer = false;
    /// Lines for the log.
    std::vector<std::string> warnings;
    Counts counts;
  };
  News take_news();

  memory::Memory& memory() { return memory_; }
  std::size_t open_questions() const { return present_.waiting() + questions_.open(); }

 private:
  struct Verifying {
    std::vector<history::CameraId> left;
    std::vector<Verified> done;
  };

  /// Of this name, those that are there for who asks.
  std::vector<history::CameraId> named(const PastRights& rights, const PastCamera& camera) const;
  /// The one that is meant; nothing, and it is refused, where none is, or several are.
  std::optional<history::CameraId> resolve(const PastRequest& request, const PastCamera& camera);
  std::vector<history::CameraId> resolve(const PastRequest& request, const std::optional<PastCamera>& camera);
  void take(const PastRequest& request, const PastQuestion& question);
  void take(const PastRequest& request, const PastList& list);
  void take(const PastRequest& request, const PastVerify& verify);
  void take(const PastRequest& request, const PastErasure& erasure);
  /// Of a camera that is not known here.
  void hold_for_later(const PastRequest& request, const PastErasure& erasure);
  /// What is being gathered of a camera ends as a page, so that what it sees next does not go with it.
  void end_page(std::uint64_t ticket, const history::CameraId& camera, const history::WallRange& wall);
  std::int64_t wall_now() const;
  /// The question need not wait for what devices have. Of what it is about, what had not come when it was
  /// asked is cut off; of a file that is read ahead of its time, more has.
  void begin(std::uint64_t ticket);
  bool is_watched(const history::CameraId& camera) const;
  /// What has come, for questions that are about what has not.
  void note_come(const LeftPages& pages);
  /// It is not watched any more.
  void leave(const history::CameraId& camera);
  /// Questions about what is not kept any more since `kept_from` was this, at the same time, are not
  /// answered. False: it is still that.
  bool let_go(const history::CameraId& camera, std::int64_t kept_from, std::int64_t wall_now);
  void verify_next(std::uint64_t ticket);
  /// `gone`: why questions that are given up are.
  void hear_questions(const char* gone = "what it was about was erased meanwhile");
  void warn_of_lost_window(const Recalled& recalled);
  void say(std::uint64_t ticket, PastOutcome outcome, std::string text);
  void tell_wanted();
  void age();

  history::HistoryStore* store_;
  const base::Clock& clock_;
  const Clips* clips_;
  memory::Memory memory_;
  memory::QuestionDesk questions_;
  PresentBook present_;
  /// That have pages, or had some, or are watched.
  std::set<history::CameraId> known_;
  /// Of a camera's name, whose it is now.
  std::map<std::string, history::CameraId> watched_;
  struct Asked {
    history::CameraId camera;
    PastQuestion question;
    base::Clock::TimePoint since{};
  };
  void cut_off(Asked& asked);
  std::map<std::uint64_t, Asked> asked_;
  std::map<std::uint64_t, Verifying> verifying_;
  /// Which request a reading of the readers' verifies.
  std::map<std::uint64_t, std::uint64_t> verifications_;
  std::uint64_t verification_ids_ = 0;
  /// Erasures whose bytes are being removed, and what is said when none is left.
  struct Erasing {
    std::uint64_t ticket = 0;
    history::CameraId camera;
    history::WallRange wall;
    std::string text;
  };
  bool is_finished(const Erasing& erasing) const;
  std::vector<Erasing> erasing_;
  base::RepeatedLines<history::CameraId> lost_windows_;
  std::vector<kv::Form> wanted_;
  base::Clock::TimePoint aged_{};
  bool has_aged_ = false;
  News news_;
};

}  // namespace vigil::actors
