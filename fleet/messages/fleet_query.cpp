#include "fleet/messages/fleet_query.h"

#include <charconv>

#include "config/schema/fields.h"

namespace vigil::fleet {
namespace {

constexpr std::string_view kKnownKeys = "known are cameras, after=NAME, limit=N (1 to 1000) and camera=NAME";

/// One of "key" and "key=value"; false if it makes no sense.
bool take(std::string_view key, std::string_view value, bool has_value, FleetQuery& query) {
  if (key == "cameras") return query.cameras = value.empty() || value == "1";
  // Whatever is no name is none of a camera.
  if (key == "after" || key == "camera") {
    if (!config::is_name(value)) return false;
    (key == "after" ? query.after : query.camera) = value;
    return true;
  }
  if (key != "limit" || !has_value) return false;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), query.limit);
  return error == std::errc() && end == value.data() + value.size() && query.limit >= 1 &&
         query.limit <= FleetQuery::kMost;
}

}  // namespace

std::variant<FleetQuery, std::string> parse_fleet_query(std::string_view text) {
  FleetQuery query;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find('&'));
    text.remove_prefix(std::min(part.size() + 1, text.size()));
    if (part.empty()) continue;
    const std::size_t equals = part.find('=');
    const bool has_value = equals != std::string_view::npos;
    const std::string_view value = has_value ? part.substr(equals + 1) : std::string_view();
    // What it is, a stranger has written, who need not see it again.
    if (!take(part.substr(0, equals), value, has_value, query))
      return "what is asked of the fleet makes no sense: " + std::string(kKnownKeys);
  }
  if (!query.after.empty() && !query.cameras) return std::string("after=NAME goes with cameras");
  if (!query.camera.empty() && query.cameras) return std::string("either cameras or camera=NAME");
  return query;
}

std::string print(const FleetQuery& query) {
  if (!query.camera.empty()) return "camera=" + query.camera;
  if (!query.cameras) return "";
  return "cameras" + (query.after.empty() ? "" : "&after=" + query.after) +
         (query.limit == FleetQuery::kMost ? "" : "&limit=" + std::to_string(query.limit));
}

}  // namespace vigil::fleet
