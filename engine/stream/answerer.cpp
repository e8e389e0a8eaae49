#include "engine/stream/answerer.h"

#include <chrono>
#include <stdexcept>
#include <string>
#include <utility>

namespace vigil::stream {
namespace {

/// Adds the seconds of its own life to a counter.
class Timer {
 public:
  explicit Timer(double& seconds) : seconds_(seconds) {}
  ~Timer() { seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

 private:
  double& seconds_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace

std::vector<std::vector<Answer>> WindowAnswerer::answer(std::span<const WindowRequest> requests) {
  std::vector<std::int64_t> needs;
  for (const WindowRequest& request : requests) {
    needs.push_back(prefiller_.room_for(request));
    if (needs.back() > prefiller_.room())
      throw std::invalid_argument("a window and its " + std::to_string(request.questions.size()) +
                                  " questions need " + std::to_string(needs.back()) +
                                  " tokens of KV cache, there are " + std::to_string(prefiller_.room()));
  }

  std::vector<std::vector<Answer>> answers;
  for (std::size_t begin = 0; begin < requests.size();) {
    std::size_t end = begin;
    for (std::int64_t room = prefiller_.room(); end < requests.size() && needs[end] <= room; ++end)
      room -= needs[end];
    std::vector<AskedWindowPtr> windows;
    {
      const Timer timer(times_.prefill);
      windows = prefiller_.ask(requests.subspan(begin, end - begin));
    }
    std::vector<Continuation> continuations;
    for (std::size_t i = begin; i < end; ++i)
      for (std::size_t j = 0; j < requests[i].questions.size(); ++j)
        continuations.push_back({windows[i - begin].get(), j});
    const Timer timer(times_.decode);
    std::vector<Completion> generated = generator_.generate(continuations);
    auto completion = generated.begin();
    for (std::size_t i = begin; i < end; ++i) {
      auto& of_window = answers.emplace_back();
      for (std::size_t j = 0; j < requests[i].questions.size(); ++j)
        of_window.push_back(std::move(*completion++).take());
    }
    begin = end;
  }
  return answers;
}

}  // namespace vigil::stream
