#include "bench/past_asker.h"

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <string>

namespace vigil::bench {
namespace {

/// Beside the bytes that questions read nothing is kept in the host's memory.
constexpr std::uint64_t kMostKept = std::uint64_t{1} << 20U;

bool is_brief(const actors::Recall& window) {
  return !window.what.pages.empty() && window.what.pages.front().form == kv::Form::sketch;
}

}  // namespace

PastAsker::PastAsker(engine::Engine& engine, memory::Memory& memory, const history::HistoryStore& store,
                     const base::Clock& clock, const Options& options)
    : engine_(engine),
      store_(store),
      clock_(clock),
      options_(options),
      questions_(memory, clock, options.questions),
      device_({.desk = *engine.language.desk,
               .questions = *engine.language.questions,
               .mover = *engine.language.mover,
               .transfer = *engine.transfer,
               .folder = *engine.language.model->folder},
              kMostKept, /*seed=*/1) {
  for (std::size_t i = 0; i < options_.readers; ++i) readers_.emplace_back([this] { run_reader(); });
}

PastAsker::~PastAsker() {
  {
    const std::scoped_lock lock(mutex_);
    is_over_ = true;
  }
  wanted_.notify_all();
}

void PastAsker::run_reader() {
  for (;;) {
    memory::QuestionDesk::Reading reading;
    {
      std::unique_lock lock(mutex_);
      wanted_.wait(lock, [this] { return is_over_ || !to_read_.empty(); });
      if (is_over_) return;
      reading = std::move(to_read_.front());
      to_read_.pop_front();
    }
    Read read{reading.id, {}};
    try {
      read.second = store_.read(reading.camera, reading.names);
    } catch (const std::exception&) {
      for (std::size_t i = 0; i < reading.names.size(); ++i)
        read.second.emplace_back(history::Missing::damaged);
    }
    {
      const std::scoped_lock lock(mutex_);
      read_.push_back(std::move(read));
    }
    done_.notify_one();
  }
}

void PastAsker::read(memory::QuestionDesk::Reading reading) {
  {
    const std::scoped_lock lock(mutex_);
    to_read_.push_back(std::move(reading));
  }
  wanted_.notify_one();
}

std::vector<PastAsker::Read> PastAsker::take_read(bool waits) {
  // A window that found no room is asked again after a while, whatever is read.
  constexpr std::chrono::milliseconds kWait{10};
  std::unique_lock lock(mutex_);
  if (waits) done_.wait_for(lock, kWait, [this] { return !read_.empty(); });
  return std::exchange(read_, {});
}

std::vector<actors::Recalled> PastAsker::work() {
  stream::StreamDesk& desk = *engine_.language.desk;
  if (device_.recalls().due()) device_.recalls().work({clock_.now()});
  if (desk.due()) desk.work({clock_.now()});
  // Answers that are whole with their first token end with what is made of them.
  for (stream::DeskNews news = desk.take_news(); !news.empty(); news = desk.take_news()) {
    for (const auto& each : news.answered) device_.recalls().answered(each);
    for (const auto& each : news.failed) device_.recalls().failed(each);
    for (const auto& each : news.told) device_.recalls().told(each);
    for (const auto& each : news.forgotten) device_.recalls().forgotten(each);
  }
  return device_.take_news().recalled;
}

PastAsker::Asked PastAsker::ask(const memory::PastAsking& asking) {
  Asked asked;
  const auto begin = clock_.now();
  questions_.ask(++tickets_, asking);
  for (;;) {
    memory::QuestionDesk::News news = questions_.take_news();
    if (!news.answered.empty()) {
      asked.answer = std::move(news.answered.front().second);
      asked.seconds = std::chrono::duration<double>(clock_.now() - begin).count();
      return asked;
    }
    if (!news.erased.empty()) throw std::runtime_error("what the question was about was erased");
    for (memory::QuestionDesk::Reading& reading : news.readings) read(std::move(reading));
    for (memory::QuestionDesk::Window& window : news.windows) {
      // One that found no room comes again.
      const auto known = std::ranges::find(asked.windows, window.id, &actors::Recall::ticket);
      if (known != asked.windows.end()) {
        device_.recall(*known);
        continue;
      }
      asked.windows.push_back({window.id, std::move(window.what), std::move(window.text), window.max_tokens});
      device_.recall(asked.windows.back());
    }
    for (const actors::Recalled& recalled : work()) {
      if (recalled.failure.empty()) {
        questions_.recalled(recalled.ticket, recalled.answer);
      } else if (recalled.is_busy) {
        questions_.failed(recalled.ticket, true);
      } else {
        throw std::runtime_error("a window of the past was not answered: " + recalled.failure);
      }
    }
    for (Read& read : take_read(!has_work())) questions_.read(read.first, std::move(read.second));
    questions_.tick();
  }
}

double PastAsker::compute(std::span<const actors::Recall> windows) {
  const auto begin = clock_.now();
  std::size_t next = 0, open = 0;
  while (next < windows.size() || open > 0) {
    for (; next < windows.size(); ++open, ++next) {
      const std::size_t most =
          is_brief(windows[next]) ? options_.questions.brief_at_once : options_.questions.whole_at_once;
      if (open >= most) break;
      device_.recall(windows[next]);
    }
    for (const actors::Recalled& recalled : work()) {
      --open;
      if (!recalled.failure.empty())
        throw std::runtime_error("a window was not computed: " + recalled.failure);
    }
  }
  return std::chrono::duration<double>(clock_.now() - begin).count();
}

}  // namespace vigil::bench
