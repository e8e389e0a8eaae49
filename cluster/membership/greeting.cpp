#include "cluster/membership/greeting.h"

#include <algorithm>
#include <stdexcept>

#include <nlohmann/json.hpp>

#include "base/json_line.h"

namespace vigil::cluster {
namespace {

using nlohmann::json;
using std::chrono::duration_cast;
using std::chrono::milliseconds;

constexpr std::string_view kClocksApart = "clocks are apart";

std::string range_text(const ProtocolRange& range) {
  if (range.oldest == range.newest) return std::to_string(range.newest);
  return std::to_string(range.oldest) + " to " + std::to_string(range.newest);
}

/// How far their clock is before ours at least, whatever the way took; negative if behind.
milliseconds clocks_apart(base::Clock::WallTime theirs, base::Clock::WallTime heard,
                          std::optional<base::Duration> way) {
  const auto apart = duration_cast<milliseconds>(theirs - heard);
  // They wrote it down at some time on the way.
  if (apart > milliseconds(0)) return apart;
  return way ? std::min(milliseconds(0), apart + *way) : milliseconds(0);
}

}  // namespace

std::string print(const Greeting& greeting) {
  json text = {{"fleet", greeting.fleet},
               {"node", json::parse(print(greeting.node))},
               {"wall_ms", duration_cast<milliseconds>(greeting.wall.time_since_epoch()).count()}};
  if (greeting.asks_whether_reached) text["asks_whether_reached"] = true;
  return base::json_line(text);
}

Greeting parse_greeting(std::string_view text) {
  try {
    const json read = json::parse(text);
    Greeting greeting;
    greeting.fleet = read.at("fleet");
    greeting.node = parse_node(read.at("node").dump());
    greeting.wall = base::Clock::WallTime(milliseconds(read.at("wall_ms").get<std::int64_t>()));
    greeting.asks_whether_reached = read.value("asks_whether_reached", false);
    return greeting;
  } catch (const std::exception& error) {
    throw std::runtime_error(std::string("no greeting of a node: ") + error.what());
  }
}

std::string print(const GreetingAnswer& answer) {
  json text;
  if (answer.greeting) {
    text["greeting"] = json::parse(print(*answer.greeting));
  } else {
    text["refusal"] = answer.refusal;
  }
  if (answer.not_reached) text["not_reached"] = *answer.not_reached;
  return base::json_line(text);
}

GreetingAnswer parse_answer(std::string_view text) {
  try {
    const json read = json::parse(text);
    if (read.contains("refusal")) return {std::nullopt, read.at("refusal")};
    GreetingAnswer answer{parse_greeting(read.at("greeting").dump()), {}};
    if (read.contains("not_reached")) answer.not_reached = read.at("not_reached").get<std::string>();
    return answer;
  } catch (const std::exception& error) {
    throw std::runtime_error(std::string("no answer to a greeting: ") + error.what());
  }
}

std::uint32_t agreed_protocol(const ProtocolRange& mine, const ProtocolRange& theirs) {
  return std::min(mine.newest, theirs.newest);
}

bool is_about_clocks(std::string_view misfit) {
  return misfit.find(kClocksApart) != std::string_view::npos;
}

std::optional<std::string> misfit(const Greeting& mine, const Greeting& theirs, base::Clock::WallTime heard,
                                  std::optional<base::Duration> way) {
  const std::string& me = mine.node.name;
  const std::string& them = theirs.node.name;
  const auto differ = [&](const std::string& what, const std::string& own, const std::string& other) {
    return what + ": " + me + " has " + own + ", " + them + " has " + other;
  };
  if (mine.fleet != theirs.fleet) return differ("another fleet", mine.fleet, theirs.fleet);
  const ProtocolRange& own = mine.node.protocol;
  const ProtocolRange& other = theirs.node.protocol;
  if (agreed_protocol(own, other) < std::max(own.oldest, other.oldest))
    return differ("no protocol in common", range_text(own) + " (version " + mine.node.version + ')',
                  range_text(other) + " (version " + theirs.node.version + ')');
  if (me == them && mine.node.incarnation != theirs.node.incarnation)
    return "two nodes are called " + me + ": at " + text_of(mine.node.control) + " and at " +
           text_of(theirs.node.control);
  if (!mine.node.model.empty() && !theirs.node.model.empty() && mine.node.model != theirs.node.model)
    return differ("another model", mine.node.model, theirs.node.model);
  const milliseconds apart = clocks_apart(theirs.wall, heard, way);
  if (apart > kClockTolerance || apart < -kClockTolerance)
    return std::string(kClocksApart) + ": that of " + them + " is at least " +
           base::format_duration(base::Duration(std::abs(apart.count()))) +
           (apart.count() > 0 ? " ahead of" : " behind") + " that of " + me;
  return std::nullopt;
}

}  // namespace vigil::cluster
