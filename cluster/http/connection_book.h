// Who is connected to a server, and who has to go when there are too many.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "cluster/http/http.h"

namespace vigil::cluster {

/// Keeps a server's connections within its limits: a new one is always let in, and takes the place of the one
/// that has been silent for the longest time. Who has as many as an address may have loses one of its own, so
/// that one address cannot push out others. Not thread-safe.
class ConnectionBook {
 public:
  using Id = std::uint64_t;

  explicit ConnectionBook(const HttpLimits& limits) : limits_(limits) {}

  struct Admitted {
    Id id = 0;
    /// Is to be closed, and is not in the book any more.
    std::optional<Id> evicted;
  };
  /// `local`: this machine's own address.
  Admitted admit(const std::string& address, bool local);
  /// It sent a request, or took an answer.
  void touch(Id id);
  /// It is gone. One that is not in the book is none.
  void leave(Id id);

  std::size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    std::string address;
    bool local = false;
    std::uint64_t heard = 0;
  };
  template <class Which>
  std::optional<Id> most_silent(Which which) const;
  std::optional<Id> whose_place(const std::string& address, bool local) const;

  const HttpLimits limits_;
  std::map<Id, Entry> entries_;
  Id next_ = 1;
  std::uint64_t heard_ = 0;
};

}  // namespace vigil::cluster
