#include "bench/demotion.h"

#include <limits>
#include <map>
#include <stdexcept>

#include "bench/statistics.h"
#include "engine/kv/forms.h"
#include "engine/memory/memory.h"

namespace vigil::bench {
namespace {

constexpr double kLate = 0.95;

}  // namespace

double DemotionFigures::p95_with() const {
  return percentile(with, kLate);
}

double DemotionFigures::p95_without() const {
  return percentile(without, kLate);
}

DemotionFigures measure_demotion(const DemotionPlan& plan, const MeasureTurn& measure) {
  DemotionFigures figures;
  const auto take_turn = [&](bool remembers) {
    const PipelineFigures turn = measure(remembers, plan.settle, plan.seconds);
    std::vector<double> latencies;
    latencies.reserve(turn.windows.size());
    for (const AnsweredWindow& window : turn.windows) latencies.push_back(window.latency);
    if (latencies.empty()) throw std::runtime_error("no window was answered in a turn");
    (remembers ? figures.with_p95 : figures.without_p95).push_back(percentile(latencies, kLate));
    std::vector<double>& all = remembers ? figures.with : figures.without;
    all.insert(all.end(), latencies.begin(), latencies.end());
    figures.windows_lost += turn.lost.windows_lost();
  };
  for (int pair = plan.pairs; pair > 0; --pair) {
    take_turn(pair % 2 == 0);
    take_turn(pair % 2 != 0);
  }
  return figures;
}

Remembered remembered_in(const history::HistoryStore& store) {
  constexpr history::WallRange kEver{std::numeric_limits<std::int64_t>::min(),
                                     std::numeric_limits<std::int64_t>::max()};
  struct Both {
    const history::PageInfo* keys = nullptr;
    const history::PageInfo* sketch = nullptr;
  };
  Remembered all;
  for (const history::CameraSummary& camera : store.list()) {
    const std::vector<history::KeptPage> pages = store.pages(camera.camera, kEver);
    std::map<std::uint64_t, Both> by_page;
    for (const history::KeptPage& page : pages) {
      Both& both = by_page[memory::Memory::page_of(page.info.number)];
      if (static_cast<kv::Form>(page.info.form) == kv::Form::int4) both.keys = &page.info;
      if (static_cast<kv::Form>(page.info.form) == kv::Form::sketch) both.sketch = &page.info;
    }
    for (const auto& [number, both] : by_page) {
      if (both.keys == nullptr || both.sketch == nullptr) continue;
      ++all.pages;
      all.int4_bytes += both.keys->bytes;
      all.sketch_bytes += both.sketch->bytes;
      all.tokens += both.keys->tokens;
      all.standing_out += both.sketch->tokens;
      for (const history::PatchInfo& patch : both.keys->patches)
        all.cells += static_cast<std::uint64_t>(patch.kept.cells());
    }
  }
  return all;
}

}  // namespace vigil::bench
