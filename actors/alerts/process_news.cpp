#include "actors/alerts/process_news.h"

namespace vigil::actors {
namespace {

constexpr const char* kNote = "process";

}  // namespace

WaitingEvent process_news(const ProcessNews& news, base::Clock::WallTime time, const Outbox& outbox) {
  WaitingEvent event;
  event.topics = {process_topic(news.process)};
  event.time = time;
  event.body = [news, time, &outbox](const EventDraft& draft) {
    return process_event(news, {outbox.identity(), draft.sequence}, time);
  };
  return event;
}

WaitingEvent noted_news(const ProcessNews& news, base::Clock::WallTime time, const Outbox& outbox) {
  WaitingEvent event = process_news(news, time, outbox);
  OutboxNote note{kNote, std::nullopt};
  if (news.state == ProcessState::online) note.value = news.process;
  event.note = [note](const std::string&) { return note; };
  return event;
}

std::optional<WaitingEvent> unsaid_news(const std::map<std::string, std::string>& notes,
                                        base::Clock::WallTime time, const Outbox& outbox) {
  const auto online = notes.find(kNote);
  if (online == notes.end()) return std::nullopt;
  return noted_news({online->second, ProcessState::offline, "restart", ""}, time, outbox);
}

}  // namespace vigil::actors
