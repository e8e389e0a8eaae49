#include "actors/cache/past_text.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include <nlohmann/json.hpp>

#include "base/timestamp.h"

namespace vigil::actors {
namespace {

using nlohmann::json;

/// What is no UTF-8 is replaced.
std::string text_of(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

json time_text(std::int64_t nanoseconds) {
  // Beyond it, an end is none.
  if (nanoseconds == std::numeric_limits<std::int64_t>::min() ||
      nanoseconds == std::numeric_limits<std::int64_t>::max())
    return nullptr;
  return base::format_rfc3339(base::Clock::WallTime(
      std::chrono::duration_cast<base::Clock::WallTime::duration>(std::chrono::nanoseconds(nanoseconds))));
}

/// A file's; null where there is none.
json name_text(const std::string& name) {
  return name.empty() ? json() : json(name);
}

double probability(double log_odds) {
  return 1 / (1 + std::exp(-log_odds));
}

double rounded(double value) {
  return std::round(value * 1e4) / 1e4;
}

double seconds(std::chrono::nanoseconds time) {
  return rounded(std::chrono::duration<double>(time).count());
}

json coverage(const memory::Coverage& coverage) {
  json gaps = json::array();
  for (const memory::KnownGap& gap : coverage.gaps)
    gaps.push_back({{"from", time_text(gap.wall.from)},
                    {"to", time_text(gap.wall.to)},
                    {"why", memory::name_of(gap.why)}});
  return {{"share", rounded(coverage.share)}, {"gaps", std::move(gaps)}};
}

/// Null where nothing was looked at: nobody knows.
json words(const memory::PastAnswer& answer) {
  const memory::Search::Result& found = answer.found;
  if (found.windows.empty()) return nullptr;
  if (found.verdict == memory::Search::Verdict::no) return "No";
  // Of a question for the time, too, where no moment is looked for.
  if (answer.wanted != memory::Wanted::whether && !answer.text.empty()) return answer.text;
  if (found.verdict == memory::Search::Verdict::unsure) return "unsure";
  if (answer.wanted == memory::Wanted::when && found.moment) return time_text(*found.moment);
  return "Yes";
}

}  // namespace

std::string answer_text(const history::CameraId& camera, const PastQuestion& question,
                        const memory::PastAnswer& answer, const Clips* clips) {
  const memory::Search::Result& found = answer.found;
  json evidence = json::array();
  for (const memory::Search::Window& window : found.windows) {
    const auto shown = clips == nullptr ? std::nullopt : clips->showing(camera, window.wall);
    evidence.push_back({{"from", time_text(window.wall.from)},
                        {"to", time_text(window.wall.to)},
                        {"score", rounded(probability(window.log_odds))},
                        {"clip", name_text(shown ? shown->clip : "")},
                        {"thumb", name_text(shown ? shown->thumb : "")}});
  }
  json moments = json::array();
  for (const std::int64_t moment : found.moments) moments.push_back(time_text(moment));
  return text_of({
      {"camera", camera.camera},
      {"tenant", camera.tenant},
      {"question", question.question},
      {"about", answer.about},
      {"from", time_text(question.wall.from)},
      {"to", time_text(question.wall.to)},
      {"method", memory::kMethodNames[static_cast<std::size_t>(question.method)]},
      {"answer", words(answer)},
      {"probability", found.windows.empty() ? json() : json(rounded(probability(found.log_odds)))},
      {"moment", found.moment ? time_text(*found.moment) : json()},
      {"moments", std::move(moments)},
      {"evidence", std::move(evidence)},
      {"coverage", coverage(answer.coverage)},
      {"bytes", {{"host", answer.host_bytes}, {"disk", answer.disk_bytes}}},
      {"tokens", {{"read", found.tokens}, {"exhaustive", found.all_tokens}}},
      {"windows_lost", found.failed},
      {"seconds",
       {{"find", seconds(answer.finding)},
        {"read", seconds(answer.reading)},
        {"look", seconds(answer.looking)},
        {"total", seconds(answer.total)}}},
  });
}

std::string progress_text(const memory::QuestionDesk::Progress& progress) {
  return text_of({{"windows", progress.done}, {"of", progress.of}, {"brief", progress.is_brief}});
}

std::string list_text(const std::vector<memory::Memory::Summary>& cameras) {
  json list = json::array();
  for (const memory::Memory::Summary& each : cameras) {
    json forms = json::array();
    for (const kv::Form form : each.forms) forms.push_back(kv::name_of(form));
    list.push_back({{"camera", each.camera.camera},
                    {"tenant", each.camera.tenant},
                    {"watched", each.is_watched},
                    {"keep_s", std::chrono::duration<double>(each.keep).count()},
                    {"pages", each.pages},
                    {"bytes", {{"host", each.host_bytes}, {"disk", each.disk_bytes}}},
                    {"from", each.wall ? time_text(each.wall->from) : json()},
                    {"to", each.wall ? time_text(each.wall->to) : json()},
                    {"forms", std::move(forms)}});
  }
  return text_of({{"cameras", std::move(list)}});
}

std::string verify_text(const std::vector<Verified>& cameras) {
  json list = json::array();
  for (const Verified& each : cameras)
    list.push_back({{"camera", each.camera.camera},
                    {"tenant", each.camera.tenant},
                    {"whole", each.report.whole},
                    {"damaged", each.report.damaged}});
  return text_of({{"cameras", std::move(list)}});
}

std::string erasure_text(const history::CameraId& camera, const history::WallRange& wall, std::size_t pages,
                         bool is_finished) {
  return text_of({{"camera", camera.camera},
                  {"tenant", camera.tenant},
                  {"from", time_text(wall.from)},
                  {"to", time_text(wall.to)},
                  {"pages", pages},
                  {"finished", is_finished}});
}

}  // namespace vigil::actors
