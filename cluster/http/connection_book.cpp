#include "cluster/http/connection_book.h"

#include <algorithm>

namespace vigil::cluster {

template <class Which>
std::optional<ConnectionBook::Id> ConnectionBook::most_silent(Which which) const {
  auto found = entries_.end();
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry)
    if (which(entry->second) && (found == entries_.end() || entry->second.heard < found->second.heard))
      found = entry;
  return found == entries_.end() ? std::nullopt : std::optional(found->first);
}

std::optional<ConnectionBook::Id> ConnectionBook::whose_place(const std::string& address, bool local) const {
  const auto any = [](const Entry&) { return true; };
  const bool full = entries_.size() >= limits_.connections;
  if (local) return full ? most_silent(any) : std::nullopt;
  const auto same = [&](const Entry& entry) { return entry.address == address; };
  const auto foreign = [](const Entry& entry) { return !entry.local; };
  const auto count = [this](const auto& which) {
    return static_cast<std::size_t>(std::count_if(entries_.begin(), entries_.end(),
                                                  [&](const auto& entry) { return which(entry.second); }));
  };
  if (count(same) >= limits_.per_address) return most_silent(same);
  if (!full && count(foreign) + limits_.reserve < limits_.connections) return std::nullopt;
  const std::optional<Id> other = most_silent(foreign);
  return other ? other : most_silent(any);
}

ConnectionBook::Admitted ConnectionBook::admit(const std::string& address, bool local) {
  Admitted admitted{next_++, whose_place(address, local)};
  if (admitted.evicted) leave(*admitted.evicted);
  entries_[admitted.id] = {address, local, ++heard_};
  return admitted;
}

void ConnectionBook::touch(Id id) {
  if (const auto entry = entries_.find(id); entry != entries_.end()) entry->second.heard = ++heard_;
}

void ConnectionBook::leave(Id id) {
  entries_.erase(id);
}

}  // namespace vigil::cluster
