#include "bench/city_status.h"

#include <algorithm>
#include <utility>

namespace vigil::bench {
namespace {

// As `FleetStatusDeps` has them.
constexpr std::chrono::milliseconds kPatience{2000};
constexpr std::chrono::milliseconds kFresh{1000};

}  // namespace

void CityStatusMeters::reset() {
  pages.reset();
  processor.reset();
  longest = Nanoseconds(0);
  incomplete = 0;
}

struct CityStatus::Page {
  Nanoseconds begun{0};
  bool asks_nodes = false;
  /// Whoever shall answer, and has not.
  std::size_t left = 0;
  bool incomplete = false;
  bool is_over = false;
};

CityStatus::CityStatus(CitySurroundings& around, CityNode& gateway, CityStatusMeters& meters,
                       Nanoseconds pause)
    : around_(around),
      gateway_(gateway),
      meters_(meters),
      pause_(pause),
      keys_("city"),
      thread_(around.time) {
  // Not all gateways at once.
  after(std::chrono::milliseconds(around.random() % 1000), [this] { ask(); });
}

void CityStatus::after(Nanoseconds time, std::function<void()> piece) {
  around_.time.at(time, [this, alive = std::weak_ptr(alive_), piece = std::move(piece)] {
    if (!alive.expired()) thread_.post(piece);
  });
}

void CityStatus::spend(Nanoseconds cost) {
  thread_.spend(cost);
  // Meters are of one gateway.
  meters_.processor.add(std::chrono::duration<double>(cost).count() /
                        static_cast<double>(std::max<std::size_t>(1, around_.gateways())));
}

void CityStatus::ask() {
  after(pause_, [this] { ask(); });
  const auto page = std::make_shared<Page>();
  page->begun = around_.time.elapsed();
  meters_.pages.add(1);
  if (!gateway_.registry_answers()) return ask_nodes(page, false);
  if (read_at_ && around_.time.elapsed() - *read_at_ < kFresh) return ask_nodes(page, true);
  waiting_.push_back(page);
  after(kPatience, [this, page] {
    if (!page->asks_nodes) ask_nodes(page, false);
  });
  if (std::exchange(is_reading_, true)) return;
  gateway_.registry().range_unread(
      keys_.plans(),
      [this, alive = std::weak_ptr(alive_)](const cluster::RegistryResult<cluster::RegistryRange>& result) {
        if (!alive.expired()) plans_came(result);
      });
}

void CityStatus::plans_came(const cluster::RegistryResult<cluster::RegistryRange>& result) {
  is_reading_ = false;
  const auto* const range = std::get_if<cluster::RegistryRange>(&result);
  if (range != nullptr) read(*range);
  for (const PagePtr& page : std::exchange(waiting_, {}))
    thread_.post([this, page, has_plans = range != nullptr] {
      if (!page->asks_nodes) ask_nodes(page, has_plans);
    });
}

void CityStatus::read(const cluster::RegistryRange& range) {
  read_at_ = around_.time.elapsed();
  plan_bytes_ = 0;
  std::size_t unread = 0;
  std::map<std::string, cluster::Revision> now;
  for (const cluster::RegistryEntry& entry : range.entries) {
    plan_bytes_ += entry.value.size();
    const auto before = read_.find(entry.key);
    if (before == read_.end() || before->second != entry.modified) unread += entry.value.size();
    now[entry.key] = entry.modified;
  }
  const bool is_same = now == read_;
  read_ = std::move(now);
  // The index is made anew of all cameras.
  spend(of_bytes(around_.costs.etcd_byte, plan_bytes_) + of_bytes(around_.costs.parse_byte, unread) +
        (is_same ? Nanoseconds(0)
                 : static_cast<std::int64_t>(around_.cameras.size()) * around_.costs.status_camera));
}

void CityStatus::ask_nodes(const PagePtr& page, bool has_plans) {
  page->asks_nodes = true;
  page->incomplete = !has_plans;
  // Otherwise each says what it was given.
  if (!has_plans)
    spend(of_bytes(around_.costs.parse_byte, plan_bytes_) +
          static_cast<std::int64_t>(around_.cameras.size()) * around_.costs.status_camera);
  const auto open = std::make_shared<std::set<std::string>>();
  for (const auto& [name, node] : gateway_.nodes()) {
    if (gateway_.has_way(name))
      open->insert(name);
    else
      page->incomplete = true;
  }
  // One more, so that nothing ends before all were asked.
  page->left = open->size() + 1;
  for (const std::string& name : *open) {
    const auto take = [this, page, open, name] {
      if (open->erase(name) == 0) return;
      spend(around_.costs.status_node);
      answered(page);
    };
    around_.time.at(around_.costs.way, [this, alive = std::weak_ptr(alive_), name, take] {
      if (alive.expired()) return;
      CityNode* const there = around_.find(name);
      if (there == nullptr) return;
      // Behind whatever the node is doing.
      there->answer([this, alive, take] {
        if (!alive.expired()) after(around_.costs.way, take);
      });
    });
  }
  after(kPatience, [this, page, open] {
    page->incomplete = page->incomplete || !open->empty();
    for (std::size_t i = std::exchange(*open, {}).size(); i > 0; --i) answered(page);
  });
  answered(page);
}

void CityStatus::answered(const PagePtr& page) {
  if (--page->left > 0 || std::exchange(page->is_over, true)) return;
  spend(around_.costs.status_page);
  thread_.post([this, page] {
    meters_.longest = std::max(meters_.longest, around_.time.elapsed() - page->begun);
    if (page->incomplete) ++meters_.incomplete;
  });
}

}  // namespace vigil::bench
