// Which series of events this process may write, in a fleet where they have one maker after the other.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "actors/alerts/books.h"

namespace vigil::actors {

/// A series is wanted with the fence of its camera's owner, and held from its books on until it is lost or
/// its camera has a higher fence; then it is wanted anew as soon as there is something to tell. The process's
/// own series has no name, and a fence that only its books tell. Not thread-safe.
class SeriesClaims {
 public:
  struct Claim {
    std::string camera;
    std::uint64_t fence = 0;
    friend bool operator==(const Claim&, const Claim&) = default;
  };

  /// What is to be done with something of a camera's owner with this fence. wait: the series is not held yet;
  /// gone: it never will be with this fence.
  enum class Entry : std::uint8_t { go, wait, gone };
  Entry enter(const std::string& camera, std::uint64_t fence);

  /// There is something to tell: a series that is not held is wanted.
  void want(const std::string& camera);

  /// What is wanted since the last call.
  std::vector<Claim> take() { return std::exchange(wanted_, {}); }

  /// Whether these books are those that were asked for: of a series that is wanted, with its fence. Newer
  /// ones of the process's own series are always.
  bool fits(const SeriesBooks& books) const;

  /// From now on it is held. `former`: the fence of the tenure before, in whatever process; 0: none that is
  /// known.
  void hold(const std::string& camera, std::uint64_t fence);
  bool holds(const std::string& camera) const;
  bool is_lost(const std::string& camera) const;
  /// The highest that is known; 0 if there is none.
  std::uint64_t fence(const std::string& camera) const;
  std::uint64_t former(const std::string& camera) const;
  /// Whether that was this process's.
  bool lived(const std::string& camera) const;
  /// What a process before this one noted.
  void remember(const std::string& camera, std::uint64_t fence);
  /// What that one left is to be told, whoever has the camera by now: its series is wanted with the fence
  /// that was noted, unless another one is known. When the camera enters, it is claimed anew.
  void want_former(const std::string& camera);

  /// Somebody has it with a higher fence. False if that is about a tenure that has been followed by another
  /// here.
  bool lose(const std::string& camera, std::uint64_t fence);

  /// What was held has to be claimed anew with the same fences: nobody knows any more where it stands.
  void doubt();

 private:
  enum class State : std::uint8_t { idle, wanted, held, lost };
  struct Series {
    std::uint64_t fence = 0;
    State state = State::idle;
    std::uint64_t former = 0;
    bool lived = false;
    /// It is wanted or held for what a process before this one left.
    bool is_left = false;
  };
  std::map<std::string, Series> series_;
  std::vector<Claim> wanted_;
};

}  // namespace vigil::actors
