#include "cluster/asks/tickets.h"

#include <algorithm>
#include <iterator>

namespace vigil::cluster {

std::variant<AskTicket, AskRefusal> AskTickets::open(AskRoute route, Asker who, AskRequest request,
                                                     base::Clock::TimePoint now) {
  // A client with a key does not have more by having more connections.
  const std::string client = who.key ? "key " + *who.key : "connection " + route.routing_id;
  const auto same = std::count_if(entries_.begin(), entries_.end(), [&](const auto& each) {
    return each.second.route.routing_id == route.routing_id && each.second.route.tag == route.tag;
  });
  if (same != 0)
    return AskRefusal{AskRefusalType::bad_request, "tag: is of a request that is not answered yet"};
  const auto own = std::count_if(entries_.begin(), entries_.end(),
                                 [&](const auto& each) { return each.second.client == client; });
  if (static_cast<std::size_t>(own) >= limits_.of_client) {
    return AskRefusal{AskRefusalType::busy, "as many requests of this client as may be are under way",
                      limits_.retry_after};
  }
  if (entries_.size() >= limits_.all) {
    return AskRefusal{AskRefusalType::busy, "as many requests as may be are under way", limits_.retry_after};
  }
  const auto patience = std::min(timeout_of(request).value_or(limits_.patience), limits_.longest);
  const auto deadline = now + patience;
  const AskTicket ticket = ++last_;
  entries_.emplace(ticket,
                   Entry{.route = std::move(route),
                         .client = client,
                         .deadline = deadline,
                         .patience = patience,
                         .untaken = AskedRequest{ticket, std::move(who), std::move(request), deadline}});
  return ticket;
}

std::vector<AskedRequest> AskTickets::take_untaken() {
  std::vector<AskedRequest> taken;
  for (auto& [ticket, entry] : entries_) {
    if (!entry.untaken) continue;
    taken.push_back(std::move(*entry.untaken));
    entry.untaken.reset();
  }
  return taken;
}

AskTickets::Entry* AskTickets::find(AskTicket ticket) {
  const auto found = entries_.find(ticket);
  return found == entries_.end() ? nullptr : &found->second;
}

std::vector<AskTicket> AskTickets::held() const {
  std::vector<AskTicket> tickets;
  for (const auto& [ticket, entry] : entries_)
    if (entry.held) tickets.push_back(ticket);
  return tickets;
}

// Who never had it, or has said his last word, need not be told.
AskTickets::Entries::iterator AskTickets::give_up(Entries::iterator each, AskEnd end) {
  if (!each->second.untaken && !each->second.held) given_up_.push_back({each->first, end});
  return entries_.erase(each);
}

bool AskTickets::cancel(const std::string& routing_id, const std::string& tag) {
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const auto& each) {
    return each.second.route.routing_id == routing_id && each.second.route.tag == tag;
  });
  if (found == entries_.end()) return false;
  give_up(found, AskEnd::cancelled);
  return true;
}

void AskTickets::lost(int connection) {
  for (auto each = entries_.begin(); each != entries_.end();)
    each = each->second.route.connection == connection ? give_up(each, AskEnd::gone) : std::next(each);
}

std::vector<AskTickets::Entry> AskTickets::expire(base::Clock::TimePoint now) {
  std::vector<Entry> late;
  for (auto each = entries_.begin(); each != entries_.end();) {
    if (now < each->second.deadline) {
      ++each;
      continue;
    }
    Entry entry = each->second;
    each = give_up(each, AskEnd::too_late);
    if (!entry.held) late.push_back(std::move(entry));
  }
  return late;
}

}  // namespace vigil::cluster
