#include "engine/stream/clips.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <map>
#include <utility>

namespace vigil::stream {
namespace {

/// Adds the seconds of its own life to a counter.
class Timer {
 public:
  Timer(const base::Clock& clock, double& seconds) : clock_(clock), seconds_(seconds), start_(clock.now()) {}
  ~Timer() { seconds_ += std::chrono::duration<double>(clock_.now() - start_).count(); }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

 private:
  const base::Clock& clock_;
  double& seconds_;
  base::Clock::TimePoint start_;
};

/// Gives up what was asked, unless it came to its end.
class Guard {
 public:
  explicit Guard(StreamDesk& desk) : desk_(desk) {}
  ~Guard() {
    for (const WindowId& id : windows) {
      if (desk_.is_open(id.camera)) desk_.close(id.camera);
      desk_.done(id);
    }
    desk_.take_news();
  }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

  std::vector<WindowId> windows;

 private:
  StreamDesk& desk_;
};

}  // namespace

WindowId Clips::ask_one(const ClipRequest& clip) {
  const std::string name = "clip " + std::to_string(clips_++);
  desk_.open(name, make_refresh("all"));
  try {
    for (const model::VisualTokensPtr& patch : clip.patches) desk_.append(name, patch);
    Asking asking;
    asking.patches = desk_.stream(name).patches();
    for (const Question& question : clip.questions)
      asking.questions.push_back({questions_.compile(question), question.on_text});
    return desk_.ask(name, std::move(asking));
  } catch (...) {
    desk_.close(name);
    throw;
  }
}

std::vector<Clips::Asked> Clips::ask(std::span<const ClipRequest> clips) {
  const Timer timer(clock_, times_.prefill);
  Guard guard(desk_);
  for (const ClipRequest& clip : clips) guard.windows.push_back(ask_one(clip));
  std::map<WindowId, std::vector<Answer>> answers;
  while (answers.size() < clips.size() && desk_.due()) {
    desk_.work({clock_.now()});
    DeskNews news = desk_.take_news();
    if (!news.failed.empty()) throw NoAnswer(news.failed.front().reason);
    for (DeskNews::Answered& each : news.answered) answers[each.window] = std::move(each.answers);
  }
  if (answers.size() < clips.size()) throw NoAnswer("there is no room for all clips at once");
  std::vector<Asked> asked;
  for (const WindowId& id : guard.windows) {
    desk_.close(id.camera);
    asked.push_back({id, std::move(answers.at(id))});
  }
  guard.windows.clear();
  return asked;
}

bool Clips::go_on(const WindowId& window, std::size_t question) {
  if (decoder_ == nullptr) return desk_.explain(window, question);
  auto loan = desk_.lend(window, question);
  if (!loan) return desk_.explain(window, question);
  decoder_->adopt(std::move(*loan));
  return true;
}

std::vector<std::vector<Answer>> Clips::complete(std::vector<Asked> asked) {
  const Timer timer(clock_, times_.decode);
  StreamDesk& desk = decoder_ == nullptr ? desk_ : *decoder_;
  // What is lent is given back when the one who borrowed it has let go.
  Guard lent(desk_), guard(desk);
  std::map<WindowId, std::vector<Answer>*> places;
  std::vector<std::vector<Answer>> answers(asked.size());
  for (const Asked& each : asked) {
    lent.windows.push_back(each.window);
    guard.windows.push_back(each.window);
  }
  for (std::size_t i = 0; i < asked.size(); ++i) {
    answers[i] = std::move(asked[i].answers);
    places[asked[i].window] = &answers[i];
    for (std::size_t question = 0; question < answers[i].size(); ++question)
      if (!go_on(asked[i].window, question)) throw NoAnswer("the answer was continued before");
  }
  while (true) {
    for (DeskNews::Told& told : desk.take_news().told) {
      if (told.failure) std::rethrow_exception(told.failure);
      (*places.at(told.window))[told.question] = std::move(told.answer);
    }
    if (!desk.due()) return answers;
    desk.work({clock_.now()});
  }
}

std::vector<std::vector<Answer>> Clips::answer(std::span<const ClipRequest> clips) {
  std::vector<std::vector<Answer>> answers;
  for (std::size_t begin = 0; begin < clips.size();) {
    std::size_t end = begin;
    for (std::int64_t room = desk_.pages(); end < clips.size(); ++end) {
      std::int64_t tokens = 0;
      for (const model::VisualTokensPtr& patch : clips[end].patches) tokens += patch->count();
      std::vector<CompiledQuestionPtr> questions;
      for (const Question& question : clips[end].questions) questions.push_back(questions_.compile(question));
      room -= desk_.pages_for(tokens, questions);
      if (room < 0 && end > begin) break;
    }
    for (auto& of_clip : complete(ask(clips.subspan(begin, end - begin))))
      answers.push_back(std::move(of_clip));
    begin = end;
  }
  return answers;
}

}  // namespace vigil::stream
