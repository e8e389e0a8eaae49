// Questions about what lies on a disk, from the question to its answer, as a service asks them: by the
// question desk, readers and a device of this process, without actors and beside nothing else.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "actors/messages/remembered.h"
#include "actors/stream/memory_desk.h"
#include "base/clock.h"
#include "engine/engine.h"
#include "engine/kv/history/history_store.h"
#include "engine/memory/memory.h"
#include "engine/memory/question_desk.h"

namespace vigil::bench {

/// In one thread, but for its readers.
class PastAsker {
 public:
  struct Options {
    memory::QuestionDesk::Options questions = {};
    /// As many as a service has.
    std::size_t readers = 4;
  };
  /// They have to outlive it; nobody else uses the engine's desk meanwhile.
  PastAsker(engine::Engine& engine, memory::Memory& memory, const history::HistoryStore& store,
            const base::Clock& clock, const Options& options);
  ~PastAsker();
  PastAsker(const PastAsker&) = delete;
  PastAsker& operator=(const PastAsker&) = delete;

  struct Asked {
    memory::PastAnswer answer;
    /// From the question until its answer.
    double seconds = 0;
    /// All windows that were computed for it, with what was read of them.
    std::vector<actors::Recall> windows;
  };
  /// Throws std::runtime_error where it has no answer.
  Asked ask(const memory::PastAsking& asking);

  /// The same windows again, of which all lies in memory: seconds, as many at once as a question has.
  double compute(std::span<const actors::Recall> windows);

 private:
  using Read = std::pair<std::uint64_t, std::vector<history::Value>>;

  void run_reader();
  void read(memory::QuestionDesk::Reading reading);
  /// What was read; waits a little for something if there is nothing.
  std::vector<Read> take_read(bool waits);
  /// What came of windows since, after a piece of work, if there is one.
  std::vector<actors::Recalled> work();
  bool has_work() { return engine_.language.desk->due() || device_.recalls().due(); }

  engine::Engine& engine_;
  const history::HistoryStore& store_;
  const base::Clock& clock_;
  Options options_;
  memory::QuestionDesk questions_;
  actors::MemoryDesk device_;
  std::uint64_t tickets_ = 0;

  std::mutex mutex_;
  std::condition_variable wanted_, done_;
  std::deque<memory::QuestionDesk::Reading> to_read_;
  std::vector<Read> read_;
  bool is_over_ = false;
  /// Last: they use what is above.
  std::vector<std::jthread> readers_;
};

}  // namespace vigil::bench
