#include "bench/memory_bench.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "bench/engine_bench.h"
#include "bench/figures.h"
#include "cluster/process/process.h"

namespace vigil::bench {
namespace {

constexpr double kGiga = 1e9;
constexpr std::size_t kMebibyte = std::size_t{1} << 20U;
constexpr std::array<int, 2> kReaders{1, 4};

double median_of(const Figures& figures, const std::string& name) {
  const auto found = std::find_if(figures.all().begin(), figures.all().end(),
                                  [&](const Figure& figure) { return figure.name == name; });
  return found->median();
}

double median_of(const std::vector<double>& values) {
  return Figure{"", "", values}.median();
}

std::int64_t nanoseconds_of(base::Duration span) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(span).count();
}

}  // namespace

/// What a process has that has just begun.
struct MemoryBench::Opened {
  std::unique_ptr<history::HistoryStore> store;
  std::unique_ptr<memory::Memory> memory;
};

MemoryBench::MemoryBench(const MemoryBenchOptions& options, const base::Clock& clock, MemoryReport& report)
    : options_(options), clock_(clock), report_(report) {}

void MemoryBench::store() {
  if (!options_.has_fio) report_.missing("store", "fio is not in PATH: plain files stand in its place");
  for (const std::size_t mebibytes : std::array<std::size_t, 3>{1, 2, 4}) {
    StoreRatesOptions rates;
    rates.folder = options_.folder / "store";
    rates.value_bytes = mebibytes * kMebibyte;
    rates.files = options_.files;
    rates.rounds = options_.rounds;
    rates.threads.assign(kReaders.begin(), kReaders.end());
    rates.has_fio = options_.has_fio;
    std::filesystem::create_directories(rates.folder);
    report_rates(store_rates(rates, clock_), rates.value_bytes);
    std::filesystem::remove_all(rates.folder);
  }
}

void MemoryBench::report_rates(const Figures& rates, std::size_t value_bytes) {
  const std::string size = " " + std::to_string(value_bytes / kMebibyte) + " MiB";
  const auto report = [&](const std::string& work, const std::string& direction, const std::string& by) {
    const auto rate = [&](const char* what) { return median_of(rates, direction + what + by) / kGiga; };
    MemoryFigure figure{.part = "store", .work = work, .value = rate("_store"), .unit = "GB/s"};
    figure.beside = {{"plain", rate("_plain")}, {"sealed", rate("_sealed")}};
    if (options_.has_fio) figure.beside.emplace_back("fio", rate("_fio"));
    figure.floor = options_.has_fio ? "fio" : "plain";
    figure.least = 0.8;
    figure.about = {{"value_bytes", value_bytes}, {"files", options_.files}, {"rounds", options_.rounds}};
    report_.add(figure);
  };
  report("write" + size, "write", "");
  for (const int readers : kReaders)
    report("read" + size + ", " + std::to_string(readers) + (readers == 1 ? " reader" : " readers"), "read",
           "_" + std::to_string(readers));
}

MemoryDayOptions MemoryBench::day_options() const {
  MemoryDayOptions day = MemoryDayOptions::of_share(options_.scale);
  day.folder = options_.folder / "day";
  day.shape = MadeShape::of(options_.model->config, options_.width, options_.height);
  day.layers = static_cast<std::uint16_t>(options_.model->config.text.num_hidden_layers);
  day.seed = options_.seed;
  return day;
}

const MemoryDayFigures& MemoryBench::the_day() {
  if (!day_) day_ = simulate_day(day_options(), clock_);
  return *day_;
}

void MemoryBench::day() {
  const MemoryDayOptions options = day_options();
  const MemoryDayFigures& day = the_day();
  const double kept = static_cast<double>(day.kept_bytes());
  nlohmann::json about = {{"hours", options.hours},
                          {"more_hours", options.more_hours},
                          {"cameras", options.cameras},
                          {"kept_share", options.shape.kept},
                          {"standing_out", options.shape.standing_out},
                          {"tokens_a_picture", options.shape.rows * options.shape.columns},
                          {"kept_bytes", day.kept_bytes()},
                          {"write_call_bytes", day.written.calls},
                          {"written_bytes", day.written.storage},
                          {"retired_pages", day.retired.pages},
                          {"erasures", day.erasures},
                          {"erased_pages", day.erased_pages},
                          {"seconds", day.seconds}};
  for (const auto& [form, each] : day.kept)
    about["forms"][std::string(kv::name_of(form))] = {{"pages", each.pages}, {"bytes", each.bytes}};
  const auto add = [&](const std::string& work, double value, const std::string& unit,
                       const std::string& remark) {
    MemoryFigure figure{.part = "day", .work = work, .value = value, .unit = unit};
    figure.about = about;
    figure.remark = remark;
    return figure;
  };
  const std::string length = std::to_string(options.hours) + " h and " + std::to_string(options.more_hours) +
                             " h in which pages go, " + std::to_string(day.erasures) + " erasures";
  // Of a disk that is memory the system counts nothing.
  if (day.written.storage < day.kept_bytes())
    return report_.missing("day", "the system did not count what was written: --dir is no disk");
  MemoryFigure written = add("written for a byte of pages kept", day.written_per_kept(), "1", length);
  written.most = 1.1;
  report_.add(written);
  report_.add(add("kept in all", kept / kGiga, "GB",
                  std::to_string(day.retired.pages) + " pages went as too old, " +
                      std::to_string(day.erased_pages) + " were erased"));
  const auto page_bytes = [&](kv::Form form) {
    const MemoryDayFigures::OfForm& of = day.kept.at(form);
    return static_cast<double>(of.bytes) / static_cast<double>(of.pages);
  };
  MemoryFigure sketch = add("a page's sketch", page_bytes(kv::Form::sketch), "B", "");
  sketch.beside = {{"int4", page_bytes(kv::Form::int4)}, {"embeddings", page_bytes(kv::Form::embeddings)}};
  sketch.floor = "int4";
  report_.add(sketch);
  report_.add(add("index for a page in all its forms",
                  static_cast<double>(day.index_bytes) / static_cast<double>(day.pages_there), "B",
                  std::to_string(day.pages_there) + " pages there"));
}

engine::Engine& MemoryBench::the_engine() {
  if (!engine_) engine_ = engine::make_engine(options_.model, options_.engine);
  return *engine_;
}

std::unique_ptr<MemoryBench::Opened> MemoryBench::open() {
  const MemoryDayOptions options = day_options();
  auto opened = std::make_unique<Opened>();
  opened->store = history::open_history_store(options.folder, {.master = options.master});
  opened->memory = std::make_unique<memory::Memory>(opened->store.get(), day_memory(options));
  for (int i = 0; i < options.cameras; ++i)
    opened->memory->watch(day_camera(i), std::chrono::hours(options.hours));
  return opened;
}

memory::PastAsking MemoryBench::asking(const std::optional<int>& camera, base::Duration span) {
  memory::PastAsking asking;
  asking.camera = day_camera(camera.value_or(0));
  const std::int64_t end = the_day().end;
  asking.wall = {end - nanoseconds_of(span), end};
  asking.question = options_.question;
  return asking;
}

void MemoryBench::restart() {
  const MemoryDayFigures& day = the_day();
  // Before the clock runs: a service loads its model meanwhile.
  engine::Engine& engine = the_engine();
  std::vector<double> opens, answers, finds, open_cpu, answer_cpu;
  nlohmann::json about = {{"folder_bytes", day.folder_bytes},
                          {"bytes_there", day.bytes_there},
                          {"pages_there", day.pages_there},
                          {"rounds", options_.rounds},
                          {"about_s", base::seconds(options_.restart_span)}};
  for (int round = 0; round < options_.rounds; ++round) {
    drop_cache(day_options().folder);
    const auto begin = clock_.now();
    const double cpu = cluster::process_cpu_seconds();
    const std::unique_ptr<Opened> opened = open();
    opens.push_back(std::chrono::duration<double>(clock_.now() - begin).count());
    open_cpu.push_back(cluster::process_cpu_seconds() - cpu);
    PastAsker asker(engine, *opened->memory, *opened->store, clock_, {});
    const PastAsker::Asked asked = asker.ask(asking(round % day_options().cameras, options_.restart_span));
    if (asked.windows.empty()) throw std::runtime_error("restart: nothing was there to be asked about");
    answers.push_back(std::chrono::duration<double>(clock_.now() - begin).count());
    answer_cpu.push_back(cluster::process_cpu_seconds() - cpu);
    finds.push_back(std::chrono::duration<double>(asked.answer.finding).count());
    about["windows"] = asked.windows.size();
    about["disk_bytes"] = asked.answer.disk_bytes;
  }
  // On a busy machine these tell what it would take on another.
  about["open_processor_s"] = median_of(open_cpu);
  about["answer_processor_s"] = median_of(answer_cpu);
  const auto figure = [&](const char* work, const std::vector<double>& seconds) {
    MemoryFigure made{.part = "restart", .work = work, .value = median_of(seconds), .unit = "s"};
    made.about = about;
    return made;
  };
  MemoryFigure opened = figure("until it is open", opens);
  opened.remark = std::to_string(day.pages_there) + " pages, " +
                  std::to_string(static_cast<double>(day.folder_bytes) / kGiga) + " GB; " +
                  std::to_string(median_of(open_cpu)) + " s of a processor";
  report_.add(opened);
  report_.add(figure("of a question: what there is", finds));
  MemoryFigure answered = figure("until its first answer", answers);
  answered.most = 2;
  answered.remark = "a question about the last " +
                    std::to_string(options_.restart_span / std::chrono::minutes(1)) + " min, " +
                    about["windows"].dump() + " windows; " + std::to_string(median_of(answer_cpu)) +
                    " s of a processor";
  report_.add(answered);
}

/// Bytes a second of values as large as a page, by as many readers as a question has.
double MemoryBench::page_rate() const {
  const DiskLayout layout{options_.folder / "pages", std::size_t{128} << 10U, std::size_t{16} << 20U, 8};
  std::filesystem::create_directories(layout.folder);
  if (options_.has_fio) {
    write_fio(layout);
  } else {
    write_plain(layout, random_bytes(layout.value_bytes), clock_);
  }
  constexpr int kThreads = 4;
  const double rate = options_.has_fio ? read_fio(layout, kThreads) : read_plain(layout, kThreads, clock_);
  std::filesystem::remove_all(layout.folder);
  return rate;
}

void MemoryBench::ask() {
  const MemoryDayFigures& day = the_day();
  // By an engine of its own, which is gone again.
  std::vector<double> again;
  {
    EngineBenchOptions window;
    window.width = options_.width;
    window.height = options_.height;
    window.tokens = 1;
    window.sequences = 1;
    window.runs = options_.rounds;
    window.warmups = 1;
    engine_.reset();
    EngineBench bench([&] { return options_.model; }, options_.engine, window, clock_);
    bench.run();
    again.push_back(median_of(bench.figures(), "first_token"));
  }
  engine::Engine& engine = the_engine();
  const std::unique_ptr<Opened> opened = open();
  PastAsker asker(engine, *opened->memory, *opened->store, clock_, {});
  std::vector<double> asks, reads, floors, ratios, cpu_ratios;
  std::uint64_t disk_bytes = 0;
  std::size_t windows = 0, lost = 0;
  double share = 0;
  // The first one finds nothing warm, and gives the windows that the others are beside.
  PastAsker::Asked asked = asker.ask(asking(0, options_.ask_span));
  for (int round = 0; round < options_.rounds; ++round) {
    drop_cache(day_options().folder);
    const double rate = page_rate();
    double compute = 0, cpu_ask = 0, cpu_compute = 0;
    const auto take_turn = [&](bool asks_now) {
      const double cpu = cluster::process_cpu_seconds();
      if (asks_now) asked = asker.ask(asking(0, options_.ask_span));
      if (!asks_now) compute = asker.compute(asked.windows);
      (asks_now ? cpu_ask : cpu_compute) = cluster::process_cpu_seconds() - cpu;
    };
    // In another order each time: what else the machine does comes and goes.
    take_turn(round % 2 == 0);
    take_turn(round % 2 != 0);
    disk_bytes = asked.answer.disk_bytes;
    windows = asked.windows.size();
    lost += asked.answer.found.failed;
    share = asked.answer.coverage.share;
    asks.push_back(asked.seconds);
    reads.push_back(static_cast<double>(disk_bytes) / rate);
    floors.push_back(compute + reads.back());
    ratios.push_back(asks.back() / floors.back());
    cpu_ratios.push_back(cpu_ask / cpu_compute);
  }
  MemoryFigure figure{
      .part = "ask", .work = "first token of a question", .value = median_of(asks), .unit = "s"};
  figure.beside = {{"floor", median_of(floors)},
                   {"of which reading", median_of(reads)},
                   {"a window computed again", median_of(again)}};
  figure.floor = "floor";
  figure.paired = median_of(ratios);
  // What was lost was not computed.
  if (lost == 0) figure.most = 1.3;
  figure.about = {{"about_s", base::seconds(options_.ask_span)},
                  {"windows", windows},
                  {"windows_lost", lost},
                  {"disk_bytes", disk_bytes},
                  {"coverage", share},
                  {"index_bytes", day.index_bytes},
                  {"ratios", ratios},
                  {"processor_time_ratio", median_of(cpu_ratios)},
                  {"rounds", options_.rounds}};
  figure.remark =
      std::to_string(windows) + " windows, " + std::to_string(disk_bytes / kMebibyte) + " MiB read";
  report_.add(figure);
}

}  // namespace vigil::bench
