#include "fleet/evidence/fetch_desk.h"

#include <utility>

namespace vigil::fleet {

std::uint64_t FetchDesk::begin(const std::string& node, std::uint64_t size) {
  Fetch& fetch = fetches_[++last_];
  const auto now = clock_.now();
  fetch = {node, size, {}, now, now};
  fetch.bytes.reserve(size);
  return last_;
}

std::optional<FetchDesk::Step> FetchDesk::take(const std::string& node, const EvidenceChunk& chunk) {
  const auto found = fetches_.find(chunk.ticket);
  if (found == fetches_.end() || found->second.node != node) return std::nullopt;
  Fetch& fetch = found->second;
  // Files are written once; one that changes is none of ours.
  const bool fits = chunk.size == fetch.size && chunk.offset == fetch.bytes.size() && !chunk.bytes.empty() &&
                    chunk.bytes.size() <= limits_.chunk && chunk.bytes.size() <= fetch.size - chunk.offset;
  Step step;
  if (!fits) {
    step.failure = chunk.bytes.empty() ? "it is gone" : "what came of it does not fit";
    fetches_.erase(found);
    return step;
  }
  fetch.bytes.append(chunk.bytes.text());
  fetch.asked = clock_.now();
  if (fetch.bytes.size() < fetch.size) {
    step.next = fetch.bytes.size();
    return step;
  }
  step.done = std::move(fetch.bytes);
  fetches_.erase(found);
  return step;
}

std::vector<FetchDesk::Overdue> FetchDesk::take_overdue() {
  std::vector<Overdue> overdue;
  const auto now = clock_.now();
  std::erase_if(fetches_, [&](const auto& entry) {
    const auto& [ticket, fetch] = entry;
    if (now - fetch.asked >= limits_.patience) {
      overdue.push_back({ticket, "did not send it in time"});
    } else if (now - fetch.begun >= limits_.in_all) {
      overdue.push_back({ticket, "sends it too slowly: " + std::to_string(fetch.bytes.size()) + " of " +
                                     std::to_string(fetch.size) + " bytes came within " +
                                     base::format_duration(limits_.in_all)});
    } else {
      return false;
    }
    return true;
  });
  return overdue;
}

}  // namespace vigil::fleet
