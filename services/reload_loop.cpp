#include "services/reload_loop.h"

#include <sstream>
#include <string>
#include <utility>

#include <spdlog/sinks/sink.h>

namespace vigil::services {
namespace {

/// Good news for whoever was told an error: in the log at every level at which that was there.
void tell_too(spdlog::logger& logger, const std::string& line) {
  if (!logger.should_log(spdlog::level::err)) return;
  const spdlog::details::log_msg message(logger.name(), spdlog::level::info, line);
  for (const spdlog::sink_ptr& sink : logger.sinks()) sink->log(message);
}

}  // namespace

void ReloadNews::applied(const std::string& line) {
  metrics_.config_reloaded(true);
  const std::string said = "configuration: " + line;
  // Who was told that a file is refused is told that one is not any more.
  was_refused_.exchange(false) ? tell_too(logger_, said) : logger_.info("{}", said);
}

void ReloadNews::refused(const std::string& problems) {
  metrics_.config_reloaded(false);
  was_refused_ = true;
  logger_.error("configuration: not applied, what ran goes on unchanged");
  std::istringstream lines(problems);
  for (std::string line; std::getline(lines, line);) logger_.error("configuration: {}", line);
}

ReloadLoop::ReloadLoop(config::Reloader reloader, cluster::FileWatch& watch, actors::Metrics& metrics,
                       spdlog::logger& logger, std::function<void(const config::Settings&)> apply)
    : watch_(watch),
      thread_(
          [reloader = std::move(reloader), &watch, &metrics, &logger, apply = std::move(apply)]() mutable {
            ReloadNews news(metrics, logger);
            while (watch.wait() != cluster::FileWatch::Event::closed) {
              const config::Reloader::Outcome outcome = reloader.reload();
              if (!outcome.applied) {
                news.refused(outcome.message);
                continue;
              }
              news.applied("applied: " + outcome.message);
              if (!outcome.changes.empty()) apply(reloader.running());
            }
          }) {}

ReloadLoop::~ReloadLoop() {
  watch_.close();
  thread_.join();
}

FollowToo::FollowToo(const std::filesystem::path& file, cluster::FileWatch& watch)
    : file_(file), thread_([this, &watch] {
        while (file_.wait() != cluster::FileWatch::Event::closed) watch.poke();
      }) {}

FollowToo::~FollowToo() {
  file_.close();
  thread_.join();
}

}  // namespace vigil::services
