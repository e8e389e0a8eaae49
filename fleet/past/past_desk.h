// Requests about the past that are put to all nodes that remember, and one word made of theirs: no actors.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "actors/messages/past.h"
#include "base/clock.h"
#include "fleet/past/erasure_book.h"
#include "fleet/past/joined.h"

namespace vigil::fleet {

/// A camera's past lies where its stream has been: each node answers of what it has itself, and what they say
/// is told as one. A node that may remember something and does not say what is `silent`, which answers tell.
/// Which clips show the evidence of an answer is then asked of all nodes that read cameras: they have those.
/// An erasure is an order in the registry (erasure_book.h), and is answered when no node has to do it any
/// more. Not thread-safe.
class PastDesk {
 public:
  /// The book and the clock have to outlive it. `name`: one that no other has, for what it orders.
  PastDesk(ErasureBook& book, const base::Clock& clock, std::string name)
      : book_(book), clock_(clock), name_(std::move(name)) {}

  /// From whoever asks in this process; its ticket comes back in `News::replies`. Of an erasure, it is first
  /// looked whose camera that is.
  void take(const actors::PastRequest& request);
  /// Nobody waits for it any more. What was ordered stays ordered.
  void forget(std::uint64_t ticket);

  /// Who is to be asked, of those that are there, and who may remember something and cannot be.
  void nodes(std::uint64_t id, const std::vector<std::string>& asked, const std::vector<std::string>& silent);
  /// It remembers nothing, and never has.
  void absent(std::uint64_t id, const std::string& node);
  /// It cannot be asked, or does not answer.
  void silent(std::uint64_t id, const std::string& node);
  /// A word of it.
  void hear(std::uint64_t id, const std::string& node, const actors::PastReply& word);

  /// Who is asked for the clips of `News::clips`; and what one of them has, nothing of one that does not say.
  void clip_nodes(std::uint64_t id, const std::vector<std::string>& asked);
  void clips(std::uint64_t id, const std::string& node, const std::optional<FoundClips>& found);

  /// Whether somebody waits for an erasure.
  bool is_erasing() const;
  /// Whether this node's word is still waited for, other than which clips it has.
  bool waits(std::uint64_t id, const std::string& node) const;

  /// It is ordered; or why not, in a line.
  void ordered(std::uint64_t id, const std::string& failure);
  /// This is erased from now on: what nodes have said of it is told to nobody.
  void erased(const FleetErasure& what);
  /// The book is another now, and knows which nodes are there.
  void see_book();
  /// To be called some times a second: tells who waits for an erasure before his time is over.
  void tick();

  struct News {
    /// To be put to nodes (`nodes`, and a word of each), under the id.
    struct Wanted {
      std::uint64_t id = 0;
      actors::PastRequest what;
    };
    std::vector<Wanted> wanted;
    /// To be put to nodes that read cameras (`clip_nodes`, and `clips` of each).
    struct Clips {
      std::uint64_t id = 0;
      ClipWish wish;
    };
    std::vector<Clips> clips;
    /// To be put into the registry (`ordered`).
    struct Order {
      std::uint64_t id = 0;
      std::string erasure;
      FleetErasure what;
    };
    std::vector<Order> orders;
    /// What nodes may still say of these is not waited for.
    std::vector<std::uint64_t> over;
    /// Under the askers' tickets.
    std::vector<actors::PastReply> replies;
  };
  News take_news() { return std::exchange(news_, {}); }

 private:
  struct Asked {
    actors::PastRequest request;
    /// That have not had their last word; nothing: it is not known yet who they are.
    std::optional<std::set<std::string>> waiting;
    std::vector<std::string> silent;
    std::vector<NodeBody> bodies;
    std::map<std::string, std::string> progress;
    /// What they have answered, as one, once it is only to be known which clips show it; who has not said yet
    /// which do, and which do of the others'. What nodes still say of the request itself comes too late.
    std::optional<std::string> answer = {};
    std::optional<std::set<std::string>> clip_nodes = {};
    std::vector<FoundClips> clips = {};
    /// Of nodes that know the camera and refuse, and of one that does not know it.
    std::vector<actors::PastReply> refusals;
    std::optional<actors::PastReply> unknown;
    /// Of an erasure whose camera is looked for; and of one that is ordered, whether the registry has taken
    /// it, and whether the book has had it.
    bool finds_camera = false;
    std::string erasure;
    FleetErasure what = {};
    bool is_ordered = false, was_seen = false;
    std::size_t pages = 0;
  };
  using Entry = std::map<std::uint64_t, Asked>::iterator;

  void erase(Entry entry);
  void put(std::uint64_t id, Asked& asked, const actors::PastRequest& what);
  void say(const Asked& asked, actors::PastOutcome outcome, std::string text);
  void finish(Entry entry, actors::PastOutcome outcome, std::string text);
  void finish(Entry entry, actors::PastReply reply);
  void gather(Entry entry);
  void gather_clips(Entry entry);
  /// What nodes have said of such a request, as one.
  static Joined joined(const Asked& asked, const std::vector<NodeBody>& bodies,
                       const std::vector<std::string>& silent);
  /// All have answered: clips are looked for, if it has evidence.
  void answered(Entry entry, std::string answer);
  void progress(const Asked& asked);
  /// Nothing: it can be answered by what there is.
  std::optional<actors::PastReply> refusal(const Asked& asked) const;
  /// Nodes have said whose camera it is that is to be erased.
  void found_camera(Entry entry);
  void order(Entry entry, const std::string& tenant);
  /// Finishes it, if nobody has to do it any more.
  void look_at(Entry entry);

  ErasureBook& book_;
  const base::Clock& clock_;
  const std::string name_;
  std::map<std::uint64_t, Asked> asked_;
  std::uint64_t ids_ = 0;
  News news_;
};

}  // namespace vigil::fleet
