#include "cluster/placement/admission.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "cluster/placement/load_units.h"

namespace vigil::cluster {
namespace {

using State = AdmissionBefore::State;

struct Entry {
  const AdmissionItem* item = nullptr;
  /// Of the rungs; empty if they make no sense.
  std::vector<LoadUnits> loads = {};
  bool is_admitted = false;
  /// It would fit, but for the margin.
  bool is_held_out = false;
  /// The rung that the capacity demands at least, and the one that a capacity without the margin does.
  std::size_t needed = 0, relaxed = 0;
};

std::vector<LoadUnits> loads_of(const std::vector<AdmissionRung>& ladder) {
  std::vector<LoadUnits> loads;
  for (const AdmissionRung& rung : ladder) {
    const auto load = load_units(rung.load);
    if (!load || (!loads.empty() && *load > loads.back())) return {};
    loads.push_back(*load);
  }
  return loads;
}

/// Whose turn it is to stay: of higher priority, then added before.
bool is_before(const AdmissionItem& a, const AdmissionItem& b) {
  return std::tie(b.priority, a.added, a.name) < std::tie(a.priority, b.added, b.name);
}

/// In that order, each name once.
std::vector<Entry> entries_of(const std::vector<AdmissionItem>& items, std::vector<std::string>& faults) {
  std::vector<const AdmissionItem*> order;
  order.reserve(items.size());
  for (const AdmissionItem& item : items) order.push_back(&item);
  const auto full = [](const AdmissionItem* item) {
    return item->ladder.empty() ? -1 : load_units(item->ladder.front().load).value_or(-1);
  };
  std::sort(order.begin(), order.end(), [&](const AdmissionItem* a, const AdmissionItem* b) {
    if (a->name != b->name) return a->name < b->name;
    return is_before(*a, *b) || (!is_before(*b, *a) && full(a) > full(b));
  });
  std::vector<Entry> entries;
  entries.reserve(order.size());
  for (const AdmissionItem* item : order) {
    if (!entries.empty() && entries.back().item->name == item->name) {
      faults.push_back("item " + item->name + ": there are two of this name");
      continue;
    }
    entries.push_back({item, loads_of(item->ladder)});
  }
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return is_before(*a.item, *b.item); });
  return entries;
}

/// Which of them fit at their last rungs. One that was refused has to fit without the margin.
void let_in(std::vector<Entry>& entries, LoadUnits capacity, LoadUnits without_margin) {
  LoadUnits used = 0;
  for (Entry& entry : entries) {
    if (entry.loads.empty()) continue;
    const LoadUnits least = entry.loads.back();
    entry.is_admitted =
        used + least <= (entry.item->before.state == State::refused ? without_margin : capacity);
    entry.is_held_out = !entry.is_admitted && used + least <= capacity;
    if (entry.is_admitted) used += least;
  }
}

/// Lowers those that are in, one rung after the other, until all fit or all are at their last rungs.
void lower(std::vector<Entry>& entries, LoadUnits capacity, std::size_t Entry::*rung) {
  LoadUnits total = 0;
  for (const Entry& entry : entries)
    if (entry.is_admitted) total += entry.loads.front();
  std::size_t end = entries.size();
  while (end > 0 && total > capacity) {
    std::size_t begin = end;
    std::size_t rungs = 0;
    while (begin > 0 && entries[begin - 1].item->priority == entries[end - 1].item->priority)
      rungs = std::max(rungs, entries[--begin].loads.size());
    for (std::size_t next = 1; next < rungs && total > capacity; ++next) {
      for (std::size_t i = end; i > begin && total > capacity; --i) {
        Entry& entry = entries[i - 1];
        if (!entry.is_admitted || next >= entry.loads.size()) continue;
        total -= entry.loads[next - 1] - entry.loads[next];
        entry.*rung = next;
      }
    }
    end = begin;
  }
}

std::size_t rung_of(const Entry& entry) {
  const AdmissionBefore& before = entry.item->before;
  switch (before.state) {
    case State::added:
      return entry.needed;
    case State::admitted:
      return std::clamp(before.rung, entry.needed, entry.relaxed);
    case State::refused:
      break;
  }
  return entry.relaxed;
}

Admitted result_of(const Entry& entry) {
  Admitted result;
  result.item = entry.item->name;
  if (!entry.is_admitted) {
    result.cause = entry.loads.empty() ? AdmissionCause::bad_ladder
                   : entry.is_held_out ? AdmissionCause::held_out
                                       : AdmissionCause::refused;
    return result;
  }
  const std::size_t rung = rung_of(entry);
  result.rung = rung;
  result.name = entry.item->ladder[rung].name;
  result.load = in_load_units(entry.loads[rung]);
  result.cause = rung == 0             ? AdmissionCause::full
                 : rung > entry.needed ? AdmissionCause::held
                                       : AdmissionCause::lowered;
  return result;
}

std::string number(double value) {
  std::array<char, 32> text{};
  const double rounded = std::round(value * 1000) / 1000;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), rounded).ptr;
  return {text.data(), end};
}

}  // namespace

std::string why(const Admitted& item, const Admission& admission) {
  const std::string room =
      "the fleet has room for " + number(admission.capacity) + " of " + number(admission.wanted);
  switch (item.cause) {
    case AdmissionCause::full:
      return item.name;
    case AdmissionCause::lowered:
      return item.name + ": " + room;
    case AdmissionCause::held:
      return item.name + ": until there is room to spare";
    case AdmissionCause::refused:
      return "refused: " + room + ", with all at the least";
    case AdmissionCause::held_out:
      return "refused: until there is room to spare";
    case AdmissionCause::bad_ladder:
      return "refused: its ladder of loads is empty, ascends, or has a load that is none";
  }
  return {};
}

Admission admit(const std::vector<AdmissionItem>& items, double capacity, const AdmissionOptions& options) {
  const auto units = capacity_units(capacity);
  if (!units) throw std::invalid_argument("the capacity of a fleet has to be 0 or more");
  if (!(options.margin >= 0 && options.margin <= 1))
    throw std::invalid_argument("the margin of admission has to be from 0 to 1");
  if (items.size() > kMostItems) throw std::invalid_argument("admission has room for four million items");
  constexpr std::int64_t kWhole = 1'000'000;
  const LoadUnits without_margin = *units - scaled_up(*units, std::llround(options.margin * 1e6), kWhole);

  Admission result;
  std::vector<Entry> entries = entries_of(items, result.faults);
  let_in(entries, *units, without_margin);
  lower(entries, *units, &Entry::needed);
  lower(entries, without_margin, &Entry::relaxed);

  LoadUnits load = 0, wanted = 0;
  result.items.reserve(entries.size());
  for (const Entry& entry : entries) {
    result.items.push_back(result_of(entry));
    if (!entry.loads.empty()) wanted += entry.loads.front();
    if (entry.is_admitted) load += entry.loads[*result.items.back().rung];
  }
  std::sort(result.items.begin(), result.items.end(),
            [](const Admitted& a, const Admitted& b) { return a.item < b.item; });
  result.load = in_load_units(load);
  result.wanted = in_load_units(wanted);
  result.capacity = in_load_units(*units);
  return result;
}

}  // namespace vigil::cluster
