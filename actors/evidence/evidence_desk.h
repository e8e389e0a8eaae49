// From what alerts ask for to files: waits until all of a clip has come, cuts it, and writes one after the
// other.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "actors/evidence/evidence_store.h"
#include "actors/messages/data.h"
#include "actors/status/metrics.h"
#include "base/clock.h"

namespace vigil::actors {

/// Each request is answered exactly once, whatever fails. Not thread-safe.
class EvidenceDesk {
 public:
  struct Options {
    /// Requests that wait at most; what is asked beyond fails at once.
    std::size_t most_waiting = 256;
    /// How much longer than a clip's end needs to come a request waits, before it is made of what there is.
    base::Duration patience = std::chrono::seconds(5);
    /// Bytes of a camera's packets. While clips that wait for their turn hold so much, no more are cut.
    std::size_t memory = config::EvidenceSettings().memory.bytes;
  };

  /// What it is given has to outlive it.
  EvidenceDesk(Options options, EvidenceStore& store, Metrics& metrics, const base::Clock& clock);

  /// Takes the place of what was said of the camera before.
  void record(Recording recording);

  /// An answer only if there will be no other.
  std::optional<EvidenceReport> ask(EvidenceRequest request);

  /// Nothing of this camera will come any more: what is asked is due, and then its packets are let go.
  void end(const std::string& camera);

  /// Whether something can be made now: its end has come, or will not come.
  bool due() const;

  /// Makes the first that is due, which takes as long as the disk and a decoder do. The packets of all that
  /// are due are held until then. Nothing if none is.
  std::optional<EvidenceReport> make_next();
  /// Whether there are clips of an earlier run of which it is not known what they show; and reads it of one.
  bool has_unread() const { return store_.has_unread(); }
  void read_next() { store_.read_next(); }

  /// Holds the packets of what has become due, removes files that have to go. To be called regularly.
  void tick();

  /// What people should know of the files since the last call, as a line.
  std::optional<std::string> take_news() { return store_.take_news(); }

  std::size_t waiting() const { return waiting_.size(); }

 private:
  struct Waiting {
    EvidenceRequest request;
    base::Clock::TimePoint until;
    bool ended = false;
    /// Once it is due: its packets, or why there are none.
    std::optional<media::Cut> cut = {};
    std::string failure = {};
    bool settled() const { return cut || !failure.empty(); }
  };

  media::PacketHistory* history_of(const std::string& camera) const;
  bool is_due(const Waiting& waiting) const;
  void cut_due();
  void cut(Waiting& waiting) const;
  std::size_t held_of(const std::string& camera) const;
  Evidence make(const Waiting& waiting);
  EvidenceReport report(const EvidenceRequest& request, Evidence evidence);
  void let_go(const std::string& camera);

  Options options_;
  EvidenceStore& store_;
  Metrics& metrics_;
  const base::Clock& clock_;
  std::map<std::string, std::shared_ptr<media::PacketHistory>> recordings_;
  std::deque<Waiting> waiting_;
};

}  // namespace vigil::actors
