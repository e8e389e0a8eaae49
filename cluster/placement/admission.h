// What of each item a fleet can afford: all of it, less of it by its declared ladder, or nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace vigil::cluster {

struct AdmissionRung {
  /// "full", "fewer frames".
  std::string name;
  /// In load units, up to a million of them.
  double load = 1;
};

/// Where an item was before. refused: it was, and stays so until there is room to spare.
struct AdmissionBefore {
  enum class State : std::uint8_t { added, admitted, refused };
  State state = State::added;
  /// Of admitted: which rung.
  std::size_t rung = 0;
};

struct AdmissionItem {
  std::string name;
  /// Of a smaller one less is left, sooner.
  std::int64_t priority = 0;
  /// Of equal priority, those that were added last are lowered first.
  std::uint64_t added = 0;
  /// From all of it to the least; no rung may have a higher load than the one before.
  std::vector<AdmissionRung> ladder = {};
  AdmissionBefore before = {};
};

struct AdmissionOptions {
  /// What of the capacity has to be free before anything is raised or admitted again: 0.05 is 5 %. While the
  /// capacity, or the load, varies by no more than this, nothing goes up and down. From 0 to 1.
  double margin = 0.05;
};

enum class AdmissionCause : std::uint8_t {
  /// All of it.
  full,
  /// The fleet has no room for more of it.
  lowered,
  /// It was lowered before, and there is not room to spare yet.
  held,
  /// It does not fit, even the least of it.
  refused,
  /// It was refused before, and there is not room to spare yet.
  held_out,
  /// Its ladder is empty, ascends, or has a load that is none.
  bad_ladder,
};

struct Admitted {
  std::string item;
  /// Nothing: refused.
  std::optional<std::size_t> rung;
  /// Of the rung; empty and 0 if it is refused.
  std::string name;
  double load = 0;
  AdmissionCause cause = AdmissionCause::full;

  friend bool operator==(const Admitted&, const Admitted&) = default;
};

struct Admission {
  /// Of every item, by name.
  std::vector<Admitted> items;
  /// What they take together, at most `capacity`; what they would take if all were full.
  double load = 0;
  double wanted = 0;
  double capacity = 0;
  /// Names that come twice: of two the first by priority counts. A line each.
  std::vector<std::string> faults;
};

/// In words, in one line: "fewer frames: the fleet has room for 80 of 120".
std::string why(const Admitted& item, const Admission& admission);

/// Lowers items until all fit: those of the lowest priority first, and all of a priority one rung before any
/// of it is lowered by another, those that were added last first. Nothing is refused before all are at their
/// last rungs; then those stay that fit, by priority, and of equal ones those that were added first. `before`
/// decides what is raised: only what would also fit if `margin` of the capacity were not there.
///
/// The same for the same items in any order, on every machine. Keeps no state. Throws std::invalid_argument
/// for a capacity or options that make no sense, and for more than four million items.
Admission admit(const std::vector<AdmissionItem>& items, double capacity, const AdmissionOptions& options);

}  // namespace vigil::cluster
