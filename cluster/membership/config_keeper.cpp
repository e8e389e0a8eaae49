#include "cluster/membership/config_keeper.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

namespace vigil::cluster {
namespace {

constexpr std::chrono::milliseconds kAgain{1000};
constexpr std::chrono::milliseconds kPatience{2000};

}  // namespace

ConfigKeeper::ConfigKeeper(Registry& registry, base::Loop& loop, FleetMember& member, Options options)
    : registry_(registry),
      loop_(loop),
      member_(member),
      options_(std::move(options)),
      agreement_(member.record().name),
      self_(std::make_shared<ConfigKeeper*>(this)),
      mirror_(registry, loop, {.prefix = member.keys().config(), .changed = [this] { read_registry(); }}) {}

ConfigKeeper::~ConfigKeeper() {
  *self_ = nullptr;
}

void ConfigKeeper::read(const std::string& hash, const std::string& fault) {
  agreement_.read(hash, fault);
  tell();
  step();
}

void ConfigKeeper::read_registry() {
  registered_.reset();
  if (const RegistryEntry* const entry = mirror_.find(member_.keys().config())) {
    try {
      registered_ = parse_config(entry->value);
    } catch (const std::exception& error) {
      // It is written anew when all agree.
      if (options_.warn) options_.warn(entry->key + ": " + error.what());
    }
  }
  step();
}

void ConfigKeeper::step() {
  // With the registry gone, or before this one is a member, nothing changes. What is told calls back.
  if (is_stepping_ || !mirror_.is_current() || member_.state() != Membership::member) return;
  is_stepping_ = true;
  agreement_.see(member_.nodes(), registered_);
  if (const auto next = agreement_.take(); next && options_.apply) options_.apply(*next);
  tell();
  member_.stand_for_planner(agreement_.may_plan());
  propose();
  look();
  is_stepping_ = false;
}

void ConfigKeeper::tell() {
  NodeRecord told = member_.record();
  agreement_.tell(told);
  if (told != member_.record()) member_.alter([this](NodeRecord& record) { agreement_.tell(record); });
}

void ConfigKeeper::propose() {
  const auto planner = member_.planner_condition();
  const auto next = agreement_.proposal();
  if (is_writing_ || !planner || !next) return;
  const std::string key = member_.keys().config();
  const RegistryEntry* const there = mirror_.find(key);
  is_writing_ = true;
  const auto again = [self = self_] {
    if (*self == nullptr) return;
    (*self)->is_writing_ = false;
    (*self)->step();
  };
  registry_.commit({.conditions = {*planner, {key, there == nullptr ? 0 : there->modified}},
                    .changes = {RegistryPut{key, print(*next)}}},
                   [&loop = loop_, again](const RegistryResult<RegistryCommit>&) {
                     // Whatever came of it, the mirror tells; what was not made is tried again.
                     loop.after(kAgain, again);
                   });
}

/// What holds for a while is said; that nodes read a change one after another is not.
void ConfigKeeper::look() {
  pending_ = cluster::pending(member_.nodes(), registered_);
  std::vector<std::string> lines = pending_;
  if (const std::string why = agreement_.waits(); !why.empty())
    lines.push_back("configuration: this node waits: " + why);
  if (lines == seen_) return;
  seen_ = std::move(lines);
  loop_.after(kPatience, [self = self_, then = seen_] {
    if (*self != nullptr && (*self)->seen_ == then) (*self)->say(then);
  });
}

void ConfigKeeper::say(const std::vector<std::string>& lines) {
  for (const std::string& line : lines)
    if (std::ranges::find(said_, line) == said_.end() && options_.warn) options_.warn(line);
  said_ = lines;
}

}  // namespace vigil::cluster
