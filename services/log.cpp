#include "services/log.h"

#include <string_view>

#include <nlohmann/json.hpp>
#include <spdlog/pattern_formatter.h>

#include "actors/messages/log_fields.h"
#include "base/one_line.h"
#include "base/timestamp.h"
#include "cluster/process/unblocked_sink.h"
#include "config/schema/fields.h"

namespace vigil::services {
namespace {

// The name of the logger whose messages are for whoever started the program.
constexpr std::string_view kAnnouncer = "announcer";

}  // namespace

void JsonLines::format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& out) {
  const std::string_view level(spdlog::level::to_string_view(message.level).data());
  nlohmann::ordered_json line{{"time", base::format_rfc3339(message.time)},
                              {"level", level},
                              {"message", std::string(message.payload.data(), message.payload.size())}};
  for (const auto& [name, text] : actors::LogFields::current()) line[name] = text;
  const std::string text = line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n';
  out.append(text.data(), text.data() + text.size());
}

void PlainLines::format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& out) {
  const std::string text = base::one_line({message.payload.data(), message.payload.size()});
  if (std::string_view(message.logger_name.data(), message.logger_name.size()) == kAnnouncer) {
    const std::string line = "vigil: " + text + '\n';
    out.append(line.data(), line.data() + line.size());
    return;
  }
  spdlog::details::log_msg clean = message;
  clean.payload = text;
  spdlog::pattern_formatter("%Y-%m-%d %H:%M:%S.%e %l %v", spdlog::pattern_time_type::utc).format(clean, out);
}

std::shared_ptr<spdlog::logger> make_logger(const config::LogSettings& settings, int descriptor) {
  auto logger =
      std::make_shared<spdlog::logger>("vigil", std::make_shared<cluster::UnblockedSink>(descriptor));
  logger->set_level(log_level(settings));
  if (settings.format == config::LogFormat::json) {
    logger->set_formatter(std::make_unique<JsonLines>());
  } else {
    logger->set_formatter(std::make_unique<PlainLines>());
  }
  return logger;
}

spdlog::level::level_enum log_level(const config::LogSettings& settings) {
  return spdlog::level::from_str(std::string(config::name_of(settings.level)));
}

Announcer::Announcer(const spdlog::logger& logger)
    : logger_(std::string(kAnnouncer), logger.sinks().begin(), logger.sinks().end()) {}

}  // namespace vigil::services
