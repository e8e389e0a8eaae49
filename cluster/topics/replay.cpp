#include "cluster/topics/replay.h"

#include <algorithm>
#include <exception>
#include <iterator>
#include <limits>
#include <system_error>
#include <utility>

#include <nlohmann/json.hpp>
#include <zmq_addon.hpp>

#include "base/json_line.h"
#include "cluster/process/clock.h"

namespace vigil::cluster {
namespace {

using nlohmann::json;

// A call of `serve` answers no more: the rest waits for the next one.
constexpr int kAnswersAtOnce = 8;
// Answers that wait for a client at most, beside the one that is being sent.
constexpr int kAnswersWaiting = 2;
// Queries of one client that wait to be answered.
constexpr int kQueriesWaiting = 16;
constexpr std::int64_t kQueryBytes = 16 << 10;
// Frames of a request: an identity of a proxy or two, REQ's empty one, a tag, a query.
constexpr int kParts = 8;
// In the year 2255; clocks of nanoseconds end in 2262.
constexpr std::int64_t kLatestTime = 9'000'000'000'000;
constexpr std::size_t kLimit = 256;

const SystemClock kMachine;

ReplayRefusal refused(std::string reason) {
  return {std::move(reason)};
}

template <class T>
bool is_number(const json& value) {
  return value.is_number_integer() && (value.is_number_unsigned() || value.get<std::int64_t>() >= 0) &&
         value.get<std::uint64_t>() <= static_cast<std::uint64_t>(std::numeric_limits<T>::max());
}

std::optional<ReplayRefusal> read_topics(const json& value, ReplayQuery& query) {
  const bool texts =
      value.is_array() && !value.empty() && value.size() <= kQueryTopics &&
      std::all_of(value.begin(), value.end(), [](const json& each) { return each.is_string(); });
  if (!texts) return refused("topics: expected 1 to " + std::to_string(kQueryTopics) + " texts");
  query.topics = value.get<std::vector<std::string>>();
  return std::nullopt;
}

std::optional<ReplayRefusal> read_key(const std::string& key, const json& value, ReplayQuery& query) {
  if (key == "topics") return read_topics(value, query);
  if (key == "after") {
    if (value == "latest") {
      query.after = std::nullopt;
    } else if (is_number<std::uint64_t>(value)) {
      query.after = value.get<std::uint64_t>();
    } else {
      return refused("after: expected a position or \"latest\"");
    }
  } else if (key == "since_ms") {
    if (!is_number<std::int64_t>(value) || value > kLatestTime) {
      return refused("since_ms: expected milliseconds since 1970");
    }
    query.since_ms = value.get<std::int64_t>();
  } else if (key == "from") {
    if (!is_number<std::uint64_t>(value)) return refused("from: expected a sequence number");
    query.from = value.get<std::uint64_t>();
  } else if (key == "limit") {
    if (!is_number<int>(value) || value < 1) return refused("limit: expected a whole number from 1");
    query.limit = std::min(value.get<std::size_t>(), kLimit);
  } else {
    return refused("unknown key; legal keys: topics, after, since_ms, from, limit");
  }
  return std::nullopt;
}

zmq::message_t part(const std::string& bytes) {
  return zmq::message_t(bytes.data(), bytes.size());
}

}  // namespace

std::string query_text(const ReplayQuery& query) {
  json text = {{"topics", query.topics}};
  text["after"] = query.after ? json(*query.after) : json("latest");
  if (query.since_ms) text["since_ms"] = *query.since_ms;
  if (query.from) text["from"] = *query.from;
  text["limit"] = query.limit;
  return base::json_line(text);
}

std::variant<ReplayQuery, ReplayRefusal> parse_query(std::string_view text) {
  const json request = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!request.is_object()) return refused("expected a JSON object, such as {\"topics\": [\"alert/\"]}");
  ReplayQuery query;
  for (const auto& [key, value] : request.items()) {
    if (auto refusal = read_key(key, value, query)) return *refusal;
  }
  if (query.topics.empty()) return refused("topics: is missing");
  if (query.from && query.topics.size() != 1) return refused("from: expected a single topic");
  return query;
}

std::optional<std::variant<ReplayPage, ReplayRefusal>> parse_answer(std::span<const zmq::message_t> parts) {
  if (parts.size() % kMessageParts != 1) return std::nullopt;
  const json header = json::parse(view_of(parts[0]), nullptr, /*allow_exceptions=*/false);
  if (!header.is_object()) return std::nullopt;
  if (const auto error = header.find("error"); error != header.end()) {
    const bool told = error->is_object() && error->contains("message") && error->at("message").is_string();
    return ReplayRefusal{told ? error->at("message").get<std::string>() : "no reason was given"};
  }
  const auto has = [&](const char* key, auto is) { return header.contains(key) && is(header.at(key)); };
  if (!has("outbox", [](const json& value) { return value.is_string(); }) ||
      !has("cursor", is_number<std::uint64_t>) || !has("newest", is_number<std::uint64_t>) ||
      !has("more", [](const json& value) { return value.is_boolean(); })) {
    return std::nullopt;
  }
  ReplayPage page{header.at("outbox"), {}, header.at("cursor"), header.at("more"), header.at("newest")};
  for (std::size_t i = 1; i < parts.size(); i += kMessageParts) {
    auto message = parse_message(parts.subspan(i, kMessageParts));
    if (!message) return std::nullopt;
    page.events.push_back(std::move(*message));
  }
  return page;
}

ReplayServer::ReplayServer(const Options& options, ReplaySource& source)
    : source_(source),
      clock_(options.clock == nullptr ? static_cast<const base::Clock&>(kMachine) : *options.clock),
      at_once_(options.at_once),
      socket_(context_, zmq::socket_type::router) {
  try {
    socket_.set(zmq::sockopt::linger, 0);
    socket_.set(zmq::sockopt::sndhwm, kAnswersWaiting);
    socket_.set(zmq::sockopt::rcvhwm, kQueriesWaiting);
    socket_.set(zmq::sockopt::maxmsgsize, kQueryBytes);
    // No heartbeat: ZeroMQ 4.3.4 ends the process when one is due of a client that went while as many queries
    // waited as may (src/stream_engine_base.cpp, out_event).
    if (options.curve) {
      allowed_.emplace(context_, options.curve->allow);
      use_curve(socket_, *options.curve);
    }
    entrance_.open(socket_, options.endpoint, options.gate,
                   limits_of_requests(kQueryBytes, kParts, options.curve.has_value(), options.silence),
                   std::chrono::milliseconds(0));
  } catch (const zmq::error_t& error) {
    throw TopicError("cannot replay on " + options.endpoint + ": " + error.what());
  } catch (const std::system_error& error) {
    throw TopicError("cannot replay on " + options.endpoint + ": " + error.code().message());
  }
}

void ReplayServer::serve() {
  const base::Clock::TimePoint until = clock_.now() + at_once_;
  for (int i = 0; i < kAnswersAtOnce && (i == 0 || clock_.now() < until); ++i) {
    std::vector<zmq::message_t> request;
    if (!zmq::recv_multipart(socket_, std::back_inserter(request), zmq::recv_flags::dontwait)) return;
    answer(std::move(request));
  }
}

// A request is the client's identity, which the socket put first, an empty part if the client is a REQ
// socket, a tag that is given back, and the query.
void ReplayServer::answer(std::vector<zmq::message_t> request) {
  const bool delimited = request.size() > 1 && request[1].empty();
  const std::size_t head = delimited ? 2 : 1;
  std::vector<zmq::message_t> reply;
  for (std::size_t i = 0; i < std::min(head, request.size()); ++i) reply.push_back(std::move(request[i]));
  const bool formed = request.size() == head + 2;
  reply.push_back(formed ? std::move(request[head]) : zmq::message_t());

  std::variant<ReplayQuery, ReplayRefusal> query =
      formed ? parse_query(view_of(request[head + 1])) : refused("expected two parts: a tag and a query");
  if (const auto* asked = std::get_if<ReplayQuery>(&query)) {
    if (auto refusal = source_.refuse(*asked)) query = std::move(*refusal);
  }
  json header;
  ReplayPage page;
  if (const auto* refusal = std::get_if<ReplayRefusal>(&query)) {
    header = {{"error", {{"type", "bad_request"}, {"message", refusal->reason}}}};
  } else {
    try {
      page = source_.replay(std::get<ReplayQuery>(query));
      header = {{"outbox", page.outbox},
                {"cursor", page.cursor},
                {"more", page.more},
                {"newest", page.newest},
                {"events", page.events.size()}};
    } catch (const std::exception&) {
      // The reason is the server's own business; it is in its log.
      page.events.clear();
      header = {{"error", {{"type", "unavailable"}, {"message", "the outbox cannot be read now"}}}};
    }
  }
  reply.push_back(part(header.dump()));
  for (const TopicMessage& event : page.events) {
    reply.push_back(part(event.topic));
    reply.push_back(part(std::to_string(event.sequence)));
    reply.push_back(part(std::to_string(event.position)));
    reply.push_back(part(event.body));
  }
  zmq::send_multipart(socket_, reply, zmq::send_flags::dontwait);
}

ReplayClient::ReplayClient(const Options& options)
    : socket_(context_, zmq::socket_type::dealer), connection_(context_, socket_) {
  try {
    socket_.set(zmq::sockopt::linger, 0);
    socket_.set(zmq::sockopt::maxmsgsize, kReceivedBytes);
    // A query belongs to a connection that stands.
    socket_.set(zmq::sockopt::immediate, true);
    socket_.set(zmq::sockopt::reconnect_ivl, 100);
    socket_.set(zmq::sockopt::reconnect_ivl_max, 2000);
    socket_.set(zmq::sockopt::heartbeat_ivl, 5000);
    socket_.set(zmq::sockopt::heartbeat_timeout, 15000);
    if (options.curve) use_curve(socket_, *options.curve);
    socket_.connect(options.endpoint);
  } catch (const zmq::error_t& error) {
    throw TopicError("cannot ask " + options.endpoint + " for replay: " + error.what());
  }
}

bool ReplayClient::ask(const ReplayQuery& query) {
  ++asked_;
  const std::string tag = std::to_string(asked_);
  if (!socket_.send(zmq::buffer(tag), zmq::send_flags::sndmore | zmq::send_flags::dontwait)) return false;
  socket_.send(zmq::buffer(query_text(query)), zmq::send_flags::none);
  return true;
}

std::optional<std::variant<ReplayPage, ReplayRefusal>> ReplayClient::take_answer() {
  for (;;) {
    std::vector<zmq::message_t> parts;
    if (!zmq::recv_multipart(socket_, std::back_inserter(parts), zmq::recv_flags::dontwait))
      return std::nullopt;
    if (parts.size() < 2 || parse_number(view_of(parts[0])) != asked_) continue;
    if (auto answer = parse_answer(std::span(parts).subspan(1))) return answer;
  }
}

}  // namespace vigil::cluster
