#include "cluster/membership/own_name.h"

#include <exception>
#include <utility>

namespace vigil::cluster {

OwnName::OwnName(const base::Clock& clock, Options options) : clock_(clock), options_(std::move(options)) {}

OwnName::Verdict OwnName::look(const NodeRecord& own, const RegistryEntry* there) {
  if (there == nullptr || there->lease == 0) return Verdict::may_write;
  std::optional<NodeRecord> other;
  try {
    other = parse_node(there->value);
  } catch (const std::exception&) {
    // Whatever it is, it lives, and will say so or go.
  }
  if (other && (other->incarnation == own.incarnation || other->incarnation == over_))
    return Verdict::may_write;
  const auto now = clock_.now();
  if (!waits_since_) {
    waits_since_ = now;
    const bool is_here = other && other->control == own.control;
    if (is_here && !options_.namesake) {
      over_ = other->incarnation;
      return Verdict::may_write;
    }
    if (is_here) {
      namesake_ = other->incarnation;
      options_.namesake(*other);
      if (other->incarnation == over_) return Verdict::may_write;
    } else {
      options_.say("waits: a node is called " + own.name + " already" +
                   (other ? ", at " + text_of(other->control) : "") + ", until its lease ends");
    }
  }
  if (now - *waits_since_ < options_.patience) return Verdict::waits;
  options_.say("another node is called " + own.name + ", and goes on" +
               (other ? ": the one at " + text_of(other->control) : ""));
  return Verdict::taken;
}

}  // namespace vigil::cluster
