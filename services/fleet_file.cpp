#include "services/fleet_file.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <memory>
#include <utility>
#include <vector>

#include "cluster/membership/config_agreement.h"
#include "config/checks/idle_rules.h"
#include "config/file/fleet.h"
#include "config/file/load.h"
#include "config/running/changes.h"

namespace vigil::services {
namespace {

/// The first of some lines, and how many more there are.
std::string in_one_line(const std::string& lines) {
  constexpr std::size_t kLongest = 500;
  const std::size_t end = std::min({lines.find('\n'), lines.size(), kLongest});
  const auto more = std::count(lines.begin(), lines.end(), '\n');
  return lines.substr(0, end) + (more > 0 ? " (and " + std::to_string(more) + " more)" : "");
}

/// Two nodes whose texts are as wrong as each other have the same.
std::string hash_of(const std::string& text) {
  try {
    return cluster::content_hash(config::fleet_part(text));
  } catch (const std::exception&) {
    return cluster::content_hash(text);
  }
}

}  // namespace

FleetText fleet_text(const std::string& text, const std::filesystem::path& file) {
  auto read = std::make_shared<fleet::ReadConfiguration>();
  read->hash = hash_of(text);
  std::string problems;
  try {
    read->settings = std::make_shared<const config::Settings>(config::parse(
        text, file, config::process_environment(), {}, config::Unset::problem, config::Secrets::kept));
  } catch (const std::exception& error) {
    problems = error.what();
    read->fault = in_one_line(problems);
  }
  return {std::move(read), std::move(problems)};
}

std::string FleetSource::text() const {
  std::string own = config::read_text(file_);
  const std::lock_guard lock(mutex_);
  return fleet_ ? config::together(own, *fleet_, file_) : own;
}

void FleetSource::offer(std::string fleet) {
  const std::lock_guard lock(mutex_);
  fleet_ = std::move(fleet);
}

void wait_for_configuration(cluster::FleetStore& store, FleetSource& source,
                            const std::function<void(const std::string&)>& say) {
  constexpr std::chrono::seconds kBetween{1};
  std::string said;
  while (true) {
    std::string why = "waits for a configuration in the registry (vigil config put)";
    try {
      cluster::FleetStore::Beginning found = store.beginning();
      if (found.text) return source.offer(std::move(*found.text));
      if (!found.content.empty())
        why = "the registry has no text of the fleet's configuration, " + cluster::shown_hash(found.content) +
              ": put one (vigil config put)";
    } catch (const std::exception& error) {
      why = error.what();
    }
    if (why != said) say(why);
    said = std::move(why);
    std::this_thread::sleep_for(kBetween);
  }
}

FleetFile::FleetFile(const FleetSource& source, cluster::FileWatch& watch, config::Settings started,
                     ReloadNews& news, std::function<void(fleet::ReadConfigurationPtr)> told)
    : watch_(watch), thread_([&source, &watch, started = std::move(started), &news, told = std::move(told)] {
        std::vector<std::string> fixed;
        while (watch.wait() != cluster::FileWatch::Event::closed) {
          FleetText text;
          try {
            text = fleet_text(source.text(), source.file());
          } catch (const std::exception& error) {
            // Whatever is there in its place has no content.
            auto unread = std::make_shared<fleet::ReadConfiguration>();
            unread->hash = cluster::content_hash("");
            unread->fault = text.problems = error.what();
            text.read = std::move(unread);
          }
          if (!text.problems.empty()) {
            news.refused(text.problems);
          } else {
            for (const std::string& line : config::idle_rules(*text.read->settings)) news.warn(line);
            std::vector<std::string> now = config::compare(started, *text.read->settings).fixed;
            if (now != fixed)
              for (const std::string& key : now)
                news.warn(key + ": cannot change while running; it takes effect when this node starts again");
            fixed = std::move(now);
          }
          told(std::move(text.read));
        }
      }) {}

FleetFile::~FleetFile() {
  watch_.close();
  thread_.join();
}

}  // namespace vigil::services
