#include "services/reload_loop.h"

#include <sstream>
#include <string>
#include <utility>

namespace vigil::services {

ReloadLoop::ReloadLoop(config::Reloader reloader, cluster::FileWatch& watch, actors::Metrics& metrics,
                       spdlog::logger& logger, std::function<void(const config::Settings&)> apply)
    : watch_(watch),
      thread_(
          [reloader = std::move(reloader), &watch, &metrics, &logger, apply = std::move(apply)]() mutable {
            bool refused = false;
            while (watch.wait() != cluster::FileWatch::Event::closed) {
              const config::Reloader::Outcome outcome = reloader.reload();
              metrics.config_reloaded(outcome.applied);
              if (outcome.applied) {
                // Who was told that a file is refused is told that one is not any more.
                logger.log(std::exchange(refused, false) ? spdlog::level::err : spdlog::level::info,
                           "configuration: applied: {}", outcome.message);
                if (!outcome.changes.empty()) apply(reloader.running());
                continue;
              }
              refused = true;
              logger.error("configuration: not applied, what ran goes on unchanged");
              std::istringstream lines(outcome.message);
              for (std::string line; std::getline(lines, line);) logger.error("configuration: {}", line);
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
