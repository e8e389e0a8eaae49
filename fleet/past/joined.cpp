#include "fleet/past/joined.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/timestamp.h"
#include "engine/memory/coverage.h"
#include "engine/memory/search.h"

namespace vigil::fleet {
namespace {

using nlohmann::json;

/// Windows that an answer tells of, at most.
constexpr std::size_t kEvidence = 4;
/// In nanoseconds.
constexpr std::int64_t kMillisecond = 1'000'000;
constexpr std::string_view kUnreachable = "unreachable";

/// What another node says, whatever it is: throws json::exception, or std::runtime_error, for what is not
/// there.
struct Said {
  std::string node;
  json body;
};

/// A stretch of milliseconds, both ends in it.
struct Gap {
  std::int64_t from = 0, to = 0;
  std::size_t why = 0;
};

std::string text_of(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

double rounded(double value) {
  return std::round(value * 1e4) / 1e4;
}

/// The earliest or the latest there is, where no time is named.
std::int64_t time_of(const json& object, const char* key, std::int64_t otherwise) {
  const json& value = object.at(key);
  if (value.is_null()) return otherwise;
  const auto time = base::parse_rfc3339(value.get<std::string>());
  if (!time) throw std::runtime_error(std::string(key) + " is no time");
  return std::chrono::duration_cast<std::chrono::milliseconds>(time->time_since_epoch()).count();
}

constexpr std::int64_t kEver = std::numeric_limits<std::int64_t>::max() / 4;

json time_text(std::int64_t ms) {
  if (ms <= -kEver || ms >= kEver) return nullptr;
  return base::format_rfc3339(base::Clock::WallTime(std::chrono::milliseconds(ms)));
}

std::size_t why_of(const std::string& name) {
  const auto known = std::find(memory::kGapNames.begin(), memory::kGapNames.end(), name);
  // One of a newer build says more than that nobody knows.
  return known == memory::kGapNames.end() ? 1 : static_cast<std::size_t>(known - memory::kGapNames.begin());
}

std::vector<Gap> gaps_of(const json& answer) {
  std::vector<Gap> gaps;
  for (const json& each : answer.at("coverage").at("gaps"))
    gaps.push_back({time_of(each, "from", -kEver), time_of(each, "to", kEver),
                    why_of(each.at("why").get<std::string>())});
  return gaps;
}

const Gap* gap_at(const std::vector<Gap>& gaps, std::int64_t from, std::int64_t to) {
  for (const Gap& each : gaps)
    if (each.from <= from && to <= each.to) return &each;
  return nullptr;
}

/// What lies in a gap of all of them.
std::vector<Gap> gaps_of_all(const std::vector<std::vector<Gap>>& nodes) {
  std::set<std::int64_t> edges;
  for (const std::vector<Gap>& gaps : nodes)
    for (const Gap& each : gaps) {
      edges.insert(each.from);
      edges.insert(each.to + 1);
    }
  std::vector<Gap> all;
  for (auto edge = edges.begin(); edge != edges.end() && std::next(edge) != edges.end(); ++edge) {
    Gap part{*edge, *std::next(edge) - 1, 0};
    bool is_missing = true;
    for (const std::vector<Gap>& gaps : nodes) {
      const Gap* const gap = gap_at(gaps, part.from, part.to);
      is_missing = is_missing && gap != nullptr;
      if (gap != nullptr) part.why = std::max(part.why, gap->why);
    }
    if (!is_missing) continue;
    if (!all.empty() && all.back().to + 1 == part.from && all.back().why == part.why) {
      all.back().to = part.to;
    } else {
      all.push_back(part);
    }
  }
  return all;
}

json coverage_of(const std::vector<Said>& said, bool some_are_silent) {
  std::vector<std::vector<Gap>> nodes;
  nodes.reserve(said.size());
  for (const Said& each : said) nodes.push_back(gaps_of(each.body));
  const std::int64_t from = time_of(said.front().body, "from", -kEver);
  const std::int64_t to = time_of(said.front().body, "to", kEver);
  double missing = 0;
  json gaps = json::array();
  for (const Gap& each : gaps_of_all(nodes)) {
    const bool is_elsewhere = some_are_silent && each.why == static_cast<std::size_t>(memory::Gap::down);
    missing += static_cast<double>(std::min(each.to, to) - std::max(each.from, from)) + 1;
    gaps.push_back({{"from", time_text(each.from)},
                    {"to", time_text(each.to)},
                    {"why", is_elsewhere ? kUnreachable : memory::kGapNames.at(each.why)}});
  }
  const double asked = static_cast<double>(to - from) + 1;
  return {{"share", rounded(std::clamp(1 - missing / asked, 0.0, 1.0))}, {"gaps", std::move(gaps)}};
}

/// The sums of numbers that all have, by these names.
json sums(const std::vector<Said>& said, const char* key, std::initializer_list<const char*> names) {
  json all = json::object();
  for (const char* const name : names) {
    std::uint64_t sum = 0;
    for (const Said& each : said) sum += each.body.at(key).at(name).get<std::uint64_t>();
    all[name] = sum;
  }
  return all;
}

/// They look at the same time: whoever takes longest is waited for.
json longest(const std::vector<Said>& said) {
  json all = json::object();
  for (const char* const name : {"find", "read", "look", "total"}) {
    double seconds = 0;
    for (const Said& each : said) seconds = std::max(seconds, each.body.at("seconds").at(name).get<double>());
    all[name] = seconds;
  }
  return all;
}

std::optional<NotOne> several(const std::set<std::string>& tenants, const std::string& camera) {
  if (tenants.size() < 2) return std::nullopt;
  std::string line = "several tenants have or had a camera " + camera + ": name one of";
  for (const std::string& each : tenants) line += (each == *tenants.begin() ? " " : ", ") + each;
  return NotOne{std::move(line)};
}

/// What it makes of them; what a node says that makes no sense is that node's.
template <class Join>
Joined joined(const std::vector<NodeBody>& bodies, const Join& join) {
  std::vector<Said> said;
  for (const NodeBody& each : bodies) {
    said.push_back({each.node, json::parse(each.json, nullptr, /*allow_exceptions=*/false)});
    if (!said.back().body.is_object()) return NotOne{"what it says is no JSON", each.node};
  }
  try {
    return join(said);
  } catch (const std::exception&) {
    // Which of them it is matters to nobody but who looks for it.
    return NotOne{"what nodes say of the past cannot be read"};
  }
}

json names_of(const std::vector<std::string>& nodes) {
  json names = json::array();
  for (const std::string& each : nodes) names.push_back(each);
  return names;
}

/// Rows of all nodes, by tenant and camera.
template <class Add>
Joined rows_of(const std::vector<NodeBody>& bodies, const std::vector<std::string>& silent, bool of_one,
               const Add& add) {
  return joined(bodies, [&](const std::vector<Said>& said) -> Joined {
    std::map<std::pair<std::string, std::string>, json> rows;
    std::set<std::string> tenants;
    std::string camera;
    for (const Said& each : said) {
      for (const json& row : each.body.at("cameras")) {
        camera = row.at("camera").get<std::string>();
        const auto tenant = row.at("tenant").get<std::string>();
        tenants.insert(tenant);
        const auto [known, is_new] = rows.try_emplace({tenant, camera}, row);
        if (!is_new) add(known->second, row);
        known->second["nodes"].push_back(each.node);
      }
    }
    if (of_one)
      if (auto fault = several(tenants, camera)) return *std::move(fault);
    json list = json::array();
    for (auto& [name, row] : rows) list.push_back(std::move(row));
    return text_of({{"cameras", std::move(list)}, {"silent", names_of(silent)}});
  });
}

void add_number(json& to, const json& from, const char* key) {
  to[key] = to.at(key).get<std::uint64_t>() + from.at(key).get<std::uint64_t>();
}

/// The earlier or the later of two times in one form; null is none.
void take_time(json& to, const json& from, const char* key, bool earlier) {
  const json& other = from.at(key);
  json& own = to.at(key);
  if (other.is_null()) return;
  if (own.is_null() || (other.get<std::string>() < own.get<std::string>()) == earlier) own = other;
}

void add_listed(json& to, const json& from) {
  add_number(to, from, "pages");
  for (const char* const tier : {"host", "disk"}) add_number(to.at("bytes"), from.at("bytes"), tier);
  to["watched"] = to.at("watched").get<bool>() || from.at("watched").get<bool>();
  to["keep_s"] = std::max(to.at("keep_s").get<double>(), from.at("keep_s").get<double>());
  take_time(to, from, "from", /*earlier=*/true);
  take_time(to, from, "to", /*earlier=*/false);
  for (const json& form : from.at("forms"))
    if (std::find(to.at("forms").begin(), to.at("forms").end(), form) == to.at("forms").end())
      to.at("forms").push_back(form);
}

/// In milliseconds; `kEver` for none.
std::int64_t moment_of(const json& answer) {
  return answer.contains("moment") ? time_of(answer, "moment", kEver) : kEver;
}

/// In order; none is there twice.
std::set<std::int64_t> moments_of(const json& answer) {
  std::set<std::int64_t> moments;
  if (const auto named = answer.find("moments"); named != answer.end())
    for (const json& each : *named) {
      if (each.is_null()) throw std::runtime_error("a moment is no time");
      moments.insert(time_of({{"moment", each}}, "moment", kEver));
    }
  if (const std::int64_t moment = moment_of(answer); moment != kEver) moments.insert(moment);
  return moments;
}

/// `moment` is the best node's, and one of `moments`; where it was the answer, it still is.
void join_moments(const std::vector<Said>& said, json& answer) {
  std::set<std::int64_t> all;
  for (const Said& each : said) all.merge(moments_of(each.body));
  const std::int64_t own = moment_of(answer);
  const bool is_answer = own != kEver && answer.at("answer") == answer.at("moment");
  std::int64_t last = -kEver;
  json moments = json::array();
  for (const std::int64_t each : all) {
    if (each - last >= memory::kApart / kMillisecond) {
      last = each;
      moments.push_back(time_text(each));
    }
    if (each == own) answer["moment"] = moments.back();
  }
  if (is_answer) answer["answer"] = answer.at("moment");
  answer["moments"] = std::move(moments);
}

}  // namespace

Joined join_answers(const std::vector<NodeBody>& bodies, const std::vector<std::string>& silent) {
  return joined(bodies, [&](const std::vector<Said>& said) -> Joined {
    std::set<std::string> tenants;
    for (const Said& each : said) tenants.insert(each.body.at("tenant").get<std::string>());
    if (auto fault = several(tenants, said.front().body.at("camera").get<std::string>()))
      return *std::move(fault);
    std::vector<double> likely;
    for (const Said& each : said) {
      const json& value = each.body.at("probability");
      likely.push_back(value.is_null() ? -1 : value.get<double>());
    }
    const auto best = std::max_element(likely.begin(), likely.end()) - likely.begin();
    json answer = said[static_cast<std::size_t>(best)].body;
    json evidence = json::array();
    std::uint64_t lost = 0;
    for (const Said& each : said) {
      for (json window : each.body.at("evidence")) {
        window["node"] = each.node;
        evidence.push_back(std::move(window));
      }
      lost += each.body.at("windows_lost").get<std::uint64_t>();
    }
    std::stable_sort(evidence.begin(), evidence.end(), [](const json& a, const json& b) {
      return a.at("score").get<double>() > b.at("score").get<double>();
    });
    while (evidence.size() > kEvidence) evidence.erase(evidence.size() - 1);
    answer["evidence"] = std::move(evidence);
    join_moments(said, answer);
    answer["coverage"] = coverage_of(said, !silent.empty());
    answer["bytes"] = sums(said, "bytes", {"host", "disk"});
    answer["tokens"] = sums(said, "tokens", {"read", "exhaustive"});
    answer["windows_lost"] = lost;
    answer["seconds"] = longest(said);
    answer["silent"] = names_of(silent);
    return text_of(answer);
  });
}

std::optional<ClipWish> clips_of(const std::string& answer) {
  try {
    const json read = json::parse(answer);
    ClipWish wish{{read.at("tenant").get<std::string>(), read.at("camera").get<std::string>()}, {}};
    for (const json& window : read.at("evidence")) {
      // Where no time is named, nothing shows it.
      const std::int64_t from = time_of(window, "from", 0);
      const std::int64_t to = time_of(window, "to", from);
      constexpr std::int64_t kLast = std::numeric_limits<std::int64_t>::max() / kMillisecond;
      if (std::min(from, to) < 0 || std::max(from, to) > kLast) return std::nullopt;
      wish.walls.push_back({from * kMillisecond, (from == 0 ? 0 : to) * kMillisecond});
    }
    return wish.walls.empty() ? std::nullopt : std::optional(std::move(wish));
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

std::string with_clips(const std::string& answer, const std::vector<FoundClips>& nodes) {
  json told = json::parse(answer);
  json& evidence = told.at("evidence");
  for (std::size_t i = 0; i < evidence.size(); ++i) {
    const actors::ShownClip* best = nullptr;
    for (const FoundClips& found : nodes) {
      if (i >= found.size() || !found[i]) continue;
      if (best == nullptr || actors::shows_better(*found[i], *best)) best = &*found[i];
    }
    evidence[i]["clip"] = best == nullptr ? json() : json(best->clip);
    evidence[i]["thumb"] = best == nullptr || best->thumb.empty() ? json() : json(best->thumb);
  }
  return text_of(told);
}

Joined join_lists(const std::vector<NodeBody>& bodies, const std::vector<std::string>& silent, bool of_one) {
  return rows_of(bodies, silent, of_one, add_listed);
}

Joined join_verified(const std::vector<NodeBody>& bodies, const std::vector<std::string>& silent,
                     bool of_one) {
  return rows_of(bodies, silent, of_one, [](json& to, const json& from) {
    add_number(to, from, "whole");
    add_number(to, from, "damaged");
  });
}

Joined join_progress(const std::vector<NodeBody>& bodies) {
  return joined(bodies, [](const std::vector<Said>& said) -> Joined {
    std::uint64_t windows = 0, of = 0;
    bool is_brief = false;
    for (const Said& each : said) {
      windows += each.body.at("windows").get<std::uint64_t>();
      of += each.body.at("of").get<std::uint64_t>();
      is_brief = is_brief || each.body.at("brief").get<bool>();
    }
    return text_of({{"windows", windows}, {"of", of}, {"brief", is_brief}});
  });
}

std::vector<std::string> tenants_of(const std::string& list) {
  std::set<std::string> tenants;
  const json body = json::parse(list, nullptr, /*allow_exceptions=*/false);
  if (!body.is_object() || !body.contains("cameras") || !body.at("cameras").is_array()) return {};
  for (const json& row : body.at("cameras")) {
    if (!row.is_object()) continue;
    const auto tenant = row.find("tenant");
    if (tenant != row.end() && tenant->is_string()) tenants.insert(tenant->get<std::string>());
  }
  return {tenants.begin(), tenants.end()};
}

}  // namespace vigil::fleet
