#include "fleet/asks/past_lines.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "actors/status/text_parts.h"
#include "base/one_line.h"

namespace vigil::fleet {
namespace {

using nlohmann::json;

// Deeper than any body is; what writes JSON calls itself once a level.
constexpr int kDeepestBody = 32;

/// An object; null for anything else.
json object_of(const std::string& body) {
  json object = json::parse(body, nullptr, /*allow_exceptions=*/false);
  // Never a copy: what copies calls itself once a level.
  if (!object.is_object()) object = nullptr;
  return object;
}

/// The member, if it is there; null otherwise, as of what is no object.
const json& member(const json& object, const char* key) {
  static const json none;
  const auto entry = object.find(key);
  return entry == object.end() ? none : *entry;
}

std::string words_of(const json& object, const char* key) {
  const json& value = member(object, key);
  return value.is_string() ? base::one_line(value.get_ref<const std::string&>()) : "";
}

std::optional<double> figure_of(const json& object, const char* key) {
  const json& value = member(object, key);
  return value.is_number() ? std::optional(value.get<double>()) : std::nullopt;
}

std::string count_of(const json& object, const char* key) {
  const auto count = figure_of(object, key);
  return count ? actors::number(*count) : "";
}

bool is_utc(const std::string& time) {
  return time.size() == 24 && time.back() == 'Z';
}

/// "2026-08-01 10:00:12" of a time of RFC 3339 in UTC; others as they are.
std::string clock_time(const std::string& time) {
  return is_utc(time) ? time.substr(0, 10) + ' ' + time.substr(11, 8) : time;
}

/// The same with its zone.
std::string zoned_time(const std::string& time) {
  return clock_time(time) + (is_utc(time) ? " UTC" : "");
}

std::string time_of(const json& object, const char* key) {
  return clock_time(words_of(object, key));
}

std::string zoned_of(const json& object, const char* key) {
  return zoned_time(words_of(object, key));
}

/// "FROM to TO UTC"; empty if an end is missing.
std::string span_of(const json& object) {
  const std::string from = time_of(object, "from");
  const std::string to = zoned_of(object, "to");
  return from.empty() || to.empty() ? "" : from + " to " + to;
}

/// "2026-08-01 10:12:03, 10:15:20 and 2026-08-02 09:00:00 UTC" of the times that are there: the day once.
std::string times_text(const json& times) {
  std::vector<std::string> told;
  std::string day;
  std::string zone;
  if (!times.is_array()) return "";
  for (const json& each : times) {
    if (!each.is_string()) continue;
    const std::string said = base::one_line(each.get_ref<const std::string&>());
    const std::string time = clock_time(said);
    const std::string own = time.substr(0, time.find(' '));
    told.push_back(own == day && own.size() < time.size() ? time.substr(own.size() + 1) : time);
    day = own;
    zone = is_utc(said) ? " UTC" : "";
  }
  std::string text;
  for (std::size_t i = 0; i < told.size(); ++i)
    text += (i == 0 ? "" : i + 1 == told.size() ? " and " : ", ") + told[i];
  return text + zone;
}

std::string size_text(double bytes) {
  constexpr std::array kUnits{"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < kUnits.size(); ++unit) bytes /= 1024;
  return actors::number(bytes, unit == 0 ? 0 : 1) + ' ' + kUnits.at(unit);
}

/// The window that says most clearly that it is so; null if there is none.
const json& best_of(const json& evidence) {
  static const json none;
  const json* best = &none;
  double highest = -1;
  if (!evidence.is_array()) return none;
  for (const json& each : evidence) {
    const double score = figure_of(each, "score").value_or(-1);
    if (score <= highest) continue;
    highest = score;
    best = &each;
  }
  return *best;
}

std::string camera_text(const json& object) {
  const std::string tenant = words_of(object, "tenant");
  return words_of(object, "camera") + (tenant.empty() ? "" : " (" + tenant + ')');
}

/// "gpu-2 does not answer" of nodes that may remember something; empty if there are none.
std::string silent_of(const json& object) {
  std::string nodes;
  const json& silent = member(object, "silent");
  std::size_t count = 0;
  if (silent.is_array())
    for (const json& node : silent)
      if (node.is_string())
        nodes.append(count++ == 0 ? "" : ", ").append(base::one_line(node.get_ref<const std::string&>()));
  return count == 0 ? "" : nodes + (count == 1 ? " does not answer" : " do not answer");
}

std::string nothing_but(const std::string& silent) {
  return "nothing is remembered" + (silent.empty() ? "" : "; " + silent);
}

std::size_t gap_count(const json& object) {
  const json& gaps = member(object, "gaps");
  return gaps.is_array() ? gaps.size() : 0;
}

/// Why gaps are: each reason once, in the order of their time.
std::vector<std::string> reasons_of(const json& coverage) {
  std::vector<std::string> reasons;
  const json& gaps = member(coverage, "gaps");
  if (!gaps.is_array()) return reasons;
  for (const json& each : gaps) {
    std::string why = words_of(each, "why");
    if (!why.empty() && std::find(reasons.begin(), reasons.end(), why) == reasons.end())
      reasons.push_back(std::move(why));
  }
  return reasons;
}

/// "nothing of gate (north) is remembered between … and … UTC: evicted".
std::string why_unknown(const json& answer) {
  const json& coverage = member(answer, "coverage");
  std::vector<std::string> reasons = reasons_of(coverage);
  const double lost = figure_of(answer, "windows_lost").value_or(0);
  const std::string windows =
      count_of(answer, "windows_lost") + (lost == 1 ? " window was" : " windows were");
  if (lost > 0) reasons.insert(reasons.begin(), windows + " lost");
  // What came a moment ago is not called missing (docs/memory.md).
  if (reasons.empty()) reasons.push_back("nothing of it has come yet");
  const bool is_remembered = lost > 0 || figure_of(coverage, "share").value_or(0) > 0;
  std::string line = "nothing of " + camera_text(answer);
  line += is_remembered ? " could be looked at" : " is remembered";
  if (const std::string from = time_of(answer, "from"), to = zoned_of(answer, "to");
      !from.empty() && !to.empty())
    line.append(" between ").append(from).append(" and ").append(to);
  for (const std::string& each : reasons) line.append(&each == &reasons.front() ? ": " : ", ").append(each);
  if (const std::string silent = silent_of(answer); !silent.empty()) line.append("; ").append(silent);
  return line;
}

}  // namespace

std::optional<std::string> indented(const std::string& body) {
  bool is_deep = false;
  const json value = json::parse(
      body,
      [&](int depth, json::parse_event_t, const json&) {
        is_deep = is_deep || depth > kDeepestBody;
        return !is_deep;
      },
      /*allow_exceptions=*/false);
  if (is_deep || value.is_discarded()) return std::nullopt;
  return value.dump(2);
}

std::optional<AnswerLine> answer_line(const std::string& body) {
  const json answer = object_of(body);
  if (answer.is_null() || !answer.contains("answer")) return std::nullopt;
  const std::string words = words_of(answer, "answer");
  if (words.empty()) return AnswerLine{why_unknown(answer), /*is_unknown=*/true};
  const std::string moment = words_of(answer, "moment");
  const json& moments = member(answer, "moments");
  const bool are_several = moments.is_array() && moments.size() > 1;
  const std::string times = are_several ? times_text(moments) : "";
  // Of "When", the moment is the answer, and where there are several, all are.
  const bool is_answer = !moment.empty() && moment == words;
  std::string line = is_answer && !times.empty() ? "at " + times : zoned_time(words);
  if (const auto probability = figure_of(answer, "probability"))
    line += "  (probability of yes " + actors::number(*probability, 2) + ')';
  if (!times.empty() && !is_answer) line += "; moments " + times;
  if (!moment.empty() && !(is_answer && times.empty())) line += "; moment " + zoned_time(moment);
  if (const std::string span = span_of(best_of(member(answer, "evidence"))); !span.empty())
    line += "; best window " + span;
  const json& coverage = member(answer, "coverage");
  if (const auto share = figure_of(coverage, "share")) {
    // What is not all does not look like all.
    line += "; " + actors::number(std::floor(*share * 100)) + "% of the time is remembered";
    if (const std::size_t gaps = gap_count(coverage))
      line += ", " + std::to_string(gaps) + (gaps == 1 ? " gap" : " gaps");
  }
  if (const std::string silent = silent_of(answer); !silent.empty()) line.append("; ").append(silent);
  return AnswerLine{std::move(line)};
}

std::optional<std::string> memory_table(const std::string& body) {
  const json list = object_of(body);
  const json& cameras = member(list, "cameras");
  if (!cameras.is_array()) return std::nullopt;
  const std::string silent = silent_of(list);
  if (cameras.empty()) return nothing_but(silent);
  std::vector<actors::Row> rows = {{"camera", "tenant", "pages", "bytes", "from (UTC)", "to (UTC)", "forms"}};
  for (const json& each : cameras) {
    const json& bytes = member(each, "bytes");
    const double in_all = figure_of(bytes, "host").value_or(0) + figure_of(bytes, "disk").value_or(0);
    std::string forms;
    if (const json& known = member(each, "forms"); known.is_array())
      for (const json& form : known)
        if (form.is_string())
          forms.append(forms.empty() ? "" : ",").append(base::one_line(form.get_ref<const std::string&>()));
    rows.push_back({words_of(each, "camera"), words_of(each, "tenant"), count_of(each, "pages"),
                    size_text(in_all), time_of(each, "from"), time_of(each, "to"), forms});
  }
  std::string text = actors::table(rows) + silent;
  if (silent.empty()) text.pop_back();
  return text;
}

std::optional<VerifiedTable> verified_table(const std::string& body) {
  const json list = object_of(body);
  const json& cameras = member(list, "cameras");
  if (!cameras.is_array()) return std::nullopt;
  VerifiedTable verified;
  const std::string silent = silent_of(list);
  verified.is_partial = !silent.empty();
  if (cameras.empty()) {
    verified.text = nothing_but(silent);
    return verified;
  }
  std::vector<actors::Row> rows = {{"camera", "tenant", "whole", "damaged"}};
  for (const json& each : cameras) {
    rows.push_back({words_of(each, "camera"), words_of(each, "tenant"), count_of(each, "whole"),
                    count_of(each, "damaged")});
    verified.is_damaged = verified.is_damaged || figure_of(each, "damaged").value_or(0) > 0;
  }
  verified.text = actors::table(rows) + silent;
  if (silent.empty()) verified.text.pop_back();
  return verified;
}

std::optional<std::string> erasure_line(const std::string& body) {
  const json erased = object_of(body);
  if (erased.is_null() || !erased.contains("pages")) return std::nullopt;
  const std::string to = zoned_of(erased, "to");
  const std::string from = to.empty() ? zoned_of(erased, "from") : time_of(erased, "from");
  std::string line = camera_text(erased) + ": " + count_of(erased, "pages") + " pages are erased";
  if (!from.empty()) line += ", from " + from;
  if (!to.empty()) line += (from.empty() ? ", until " : " to ") + to;
  const json& finished = member(erased, "finished");
  if (finished.is_boolean() && !finished.get<bool>())
    line += "; nobody sees them any more, and what is on the disk goes now";
  return line;
}

std::optional<std::string> progress_line(const std::string& body) {
  const json progress = object_of(body);
  const std::string done = count_of(progress, "windows");
  const std::string of = count_of(progress, "of");
  if (done.empty() || of.empty()) return std::nullopt;
  return done + " of " + of + " windows";
}

}  // namespace vigil::fleet
