// The books of requests that are not answered yet: whose they are, how many there may be, and until when. No
// sockets.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "cluster/asks/answer.h"
#include "cluster/asks/permissions.h"
#include "cluster/asks/request.h"

namespace vigil::cluster {

/// Names a request; never given twice by one server.
using AskTicket = std::uint64_t;

/// The way back to who asks.
struct AskRoute {
  /// What ROUTER calls the connection.
  std::string routing_id;
  /// Whether a REQ socket asks, which expects an empty part first.
  bool delimited = false;
  std::string tag;
  /// The connection's descriptor.
  int connection = -1;
};

/// For whoever answers. After `deadline` nobody waits for it any more.
struct AskedRequest {
  AskTicket ticket = 0;
  Asker who;
  AskRequest request;
  base::Clock::TimePoint deadline{};
};

enum class AskEnd : std::uint8_t {
  too_late,
  cancelled,
  /// The asker's connection was closed.
  gone
};

/// One that is not to be answered any more, since its asker does not wait.
struct GivenUpAsk {
  AskTicket ticket = 0;
  AskEnd end = AskEnd::too_late;
  bool operator==(const GivenUpAsk&) const = default;
};

struct AskLimits {
  /// Requests at once of all clients, and of one: of a key, or without keys of a connection.
  std::size_t all = 64;
  std::size_t of_client = 4;
  /// How long a request may take that does not say so itself, and any.
  std::chrono::milliseconds patience{60'000};
  std::chrono::milliseconds longest{600'000};
  /// When one that was too much is worth repeating.
  std::chrono::milliseconds retry_after{1000};
};

/// Not thread-safe.
class AskTickets {
 public:
  /// A request on its way.
  struct Entry {
    AskRoute route;
    /// Whose share it takes.
    std::string client;
    base::Clock::TimePoint deadline{};
    std::chrono::milliseconds patience{};
    /// Until somebody has taken it.
    std::optional<AskedRequest> untaken;
    /// The last word, which waits for room on the way back.
    std::optional<AskReply> held = std::nullopt;
  };

  explicit AskTickets(const AskLimits& limits) : limits_(limits) {}

  /// Takes up a request, unless as many are under way as may be, or one of the same tag is.
  std::variant<AskTicket, AskRefusal> open(AskRoute route, Asker who, AskRequest request,
                                           base::Clock::TimePoint now);

  /// Those that nobody has taken, in their order.
  std::vector<AskedRequest> take_untaken();
  /// Those that were taken and will not be answered, in the order in which that became so.
  std::vector<GivenUpAsk> take_given_up() { return std::exchange(given_up_, {}); }

  /// Nothing if it is not under way.
  Entry* find(AskTicket ticket);
  void close(AskTicket ticket) { entries_.erase(ticket); }
  /// Tickets whose last word waits for room.
  std::vector<AskTicket> held() const;

  /// Withdraws the request of this tag; false if there is none.
  bool cancel(const std::string& routing_id, const std::string& tag);
  /// Whatever came by this connection has nobody to be told.
  void lost(int connection);
  /// Closes what is over by now, and tells which of it has had no last word.
  std::vector<Entry> expire(base::Clock::TimePoint now);

  std::size_t size() const { return entries_.size(); }

 private:
  using Entries = std::map<AskTicket, Entry>;

  Entries::iterator give_up(Entries::iterator each, AskEnd end);

  AskLimits limits_;
  Entries entries_;
  std::vector<GivenUpAsk> given_up_;
  AskTicket last_ = 0;
};

}  // namespace vigil::cluster
