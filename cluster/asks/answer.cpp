#include "cluster/asks/answer.h"

#include <algorithm>
#include <array>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/json_line.h"
#include "base/one_line.h"

namespace vigil::cluster {
namespace {

using nlohmann::json;

constexpr int kReplyVersion = 1;
constexpr std::size_t kReplyHeaderBytes = 4 << 10;
constexpr std::uint64_t kLongestRetry = 86'400'000;

constexpr std::array kRefusalTypes = {AskRefusalType::bad_request, AskRefusalType::forbidden,
                                      AskRefusalType::unavailable, AskRefusalType::busy,
                                      AskRefusalType::too_late};

std::string header_of(json header) {
  header["version"] = kReplyVersion;
  return base::json_line(header);
}

std::vector<std::string> parts_of(const AskAnswer& answer) {
  return {header_of({{"kind", "answer"}}), answer.body};
}

std::vector<std::string> parts_of(const AskProgress& progress) {
  return {header_of({{"kind", "progress"}}), progress.body};
}

std::vector<std::string> parts_of(const AskRefusal& refusal) {
  json header = {{"kind", "refused"}, {"type", name_of(refusal.type)}, {"message", refusal.message}};
  if (refusal.retry_after) header["retry_after_ms"] = refusal.retry_after->count();
  return {header_of(std::move(header))};
}

std::optional<AskRefusal> read_refusal(const json& header) {
  const auto type = header.find("type");
  const auto message = header.find("message");
  if (type == header.end() || message == header.end() || !message->is_string()) return std::nullopt;
  const auto known = std::find_if(kRefusalTypes.begin(), kRefusalTypes.end(),
                                  [&](AskRefusalType each) { return *type == name_of(each); });
  if (known == kRefusalTypes.end()) return std::nullopt;
  // It is shown to people, whoever wrote it.
  AskRefusal refusal{*known, base::one_line(message->get_ref<const std::string&>())};
  if (const auto retry = header.find("retry_after_ms"); retry != header.end()) {
    if (!retry->is_number_unsigned() || retry->get<std::uint64_t>() > kLongestRetry) return std::nullopt;
    refusal.retry_after = std::chrono::milliseconds(retry->get<std::int64_t>());
  }
  return refusal;
}

}  // namespace

std::string_view name_of(AskRefusalType type) {
  switch (type) {
    case AskRefusalType::bad_request:
      return "bad_request";
    case AskRefusalType::forbidden:
      return "forbidden";
    case AskRefusalType::unavailable:
      return "unavailable";
    case AskRefusalType::busy:
      return "busy";
    case AskRefusalType::too_late:
      return "too_late";
  }
  return "";
}

std::vector<std::string> to_parts(const AskReply& reply) {
  return std::visit([](const auto& each) { return parts_of(each); }, reply);
}

std::optional<AskReply> parse_reply(std::span<const zmq::message_t> parts) {
  if (parts.empty() || parts.size() > 2 || parts[0].size() > kReplyHeaderBytes) return std::nullopt;
  const json header = json::parse(parts[0].to_string_view(), nullptr, /*allow_exceptions=*/false);
  if (!header.is_object() || header.value("version", json()) != kReplyVersion) return std::nullopt;
  const json kind = header.value("kind", json());
  if (kind == "refused") {
    if (parts.size() != 1) return std::nullopt;
    return read_refusal(header);
  }
  if (parts.size() != 2 || parts[1].size() > kAskAnswerBytes) return std::nullopt;
  if (!json::accept(parts[1].to_string_view())) return std::nullopt;
  if (kind == "answer") return AskAnswer{parts[1].to_string()};
  if (kind == "progress") return AskProgress{parts[1].to_string()};
  return std::nullopt;
}

}  // namespace vigil::cluster
