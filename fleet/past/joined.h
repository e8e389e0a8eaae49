// What several nodes remember of the same camera, told as one (docs/memory.md has the keys).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "fleet/messages/clip_wish.h"

namespace vigil::fleet {

/// A node's last word on a request: JSON as actors/cache/past_text.h makes it.
struct NodeBody {
  std::string node;
  std::string json;
};

/// Why they cannot be one, in a line: they are of cameras of several tenants, or one is no such JSON.
struct NotOne {
  std::string line;
  /// Which node's it is, if it is no such JSON.
  std::string node = {};
};
using Joined = std::variant<std::string, NotOne>;

// `silent`: nodes that may remember something and have not said what.

/// Each node has answered of what it has itself: the answer is that of the node whose best window says "Yes"
/// most clearly, evidence and moments are all nodes', and only what none of them remembers is a gap, for the
/// reason that says most. Moments of two nodes that are closer than a search tells apart are one, the
/// earlier. What may be at a node that is silent is `unreachable`.
Joined join_answers(const std::vector<NodeBody>& bodies, const std::vector<std::string>& silent);
/// Whose evidence an answer has, and when that was; nothing where it has none.
std::optional<ClipWish> clips_of(const std::string& answer);
/// The answer with the clips that show its evidence best, of what nodes have found; `null` where none has.
std::string with_clips(const std::string& answer, const std::vector<FoundClips>& nodes);
/// A row for each camera and tenant; `of_one`: one camera was named, so all have to be of one tenant.
Joined join_lists(const std::vector<NodeBody>& bodies, const std::vector<std::string>& silent, bool of_one);
Joined join_verified(const std::vector<NodeBody>& bodies, const std::vector<std::string>& silent,
                     bool of_one);
/// Of what each node has said last.
Joined join_progress(const std::vector<NodeBody>& bodies);

/// The tenants of a list's rows; nothing of what is no list.
std::vector<std::string> tenants_of(const std::string& list);

}  // namespace vigil::fleet
