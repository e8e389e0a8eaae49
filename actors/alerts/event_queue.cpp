#include "actors/alerts/event_queue.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace vigil::actors {
namespace {

/// A topic that is named twice gets one copy.
void name_once(std::vector<std::string>& topics) {
  std::set<std::string> seen;
  std::erase_if(topics, [&](const std::string& topic) { return !seen.insert(topic).second; });
}

}  // namespace

std::size_t EventQueue::push(WaitingEvent event) {
  name_once(event.topics);
  std::size_t lost = 0;
  while (!empty() && copies_ + event.topics.size() > options_.most) {
    if (others_.empty() && !event.urgent) return lost + event.topics.size();
    Parts& parts = others_.empty() ? urgent_ : others_;
    lost += parts.front().event.topics.size();
    copies_ -= parts.front().event.topics.size();
    parts.pop_front();
  }
  copies_ += event.topics.size();
  Parts& parts = event.urgent ? urgent_ : others_;
  parts.push_back({numbers_++, std::move(event)});
  return lost;
}

void EventQueue::push_front(std::vector<WaitingEvent> events) {
  Parts first;
  for (WaitingEvent& event : events) {
    name_once(event.topics);
    copies_ += event.topics.size();
    first.push_back({numbers_++, std::move(event)});
  }
  urgent_.splice(urgent_.begin(), first);
}

void EventQueue::explained(std::uint64_t ticket, const std::optional<std::string>& text) {
  for (auto& [number, event] : urgent_) {
    if (event.ticket != ticket) continue;
    event.ticket.reset();
    event.text = text;
  }
}

void EventQueue::let_go() {
  for (auto& [number, event] : urgent_) event.ticket.reset();
}

std::size_t EventQueue::drop(const std::string& camera) {
  const std::size_t before = copies_;
  for (Parts* parts : {&urgent_, &others_}) {
    parts->remove_if([&](const Part& part) {
      const bool goes = part.event.camera == camera;
      if (goes) copies_ -= part.event.topics.size();
      return goes;
    });
  }
  return before - copies_;
}

bool EventQueue::explains(const std::string& camera) const {
  return std::any_of(urgent_.begin(), urgent_.end(),
                     [&](const Part& part) { return part.event.ticket && part.event.camera == camera; });
}

EventQueue::Batch EventQueue::next(
    base::Clock::TimePoint now,
    const std::function<std::uint64_t(const std::string& topic)>& last_sequence) const {
  Batch batch;
  std::map<std::string, std::uint64_t> sequences;
  batch.more = !add(batch, urgent_, now, last_sequence, sequences) ||
               !add(batch, others_, now, last_sequence, sequences);
  return batch;
}

bool EventQueue::add(Batch& batch, const Parts& parts, base::Clock::TimePoint now,
                     const std::function<std::uint64_t(const std::string& topic)>& last_sequence,
                     std::map<std::string, std::uint64_t>& sequences) const {
  std::size_t bytes = 0;
  for (const OutboxEvent& event : batch.events) bytes += event.topic.size() + event.body.size();
  std::set<std::string> held;
  for (const auto& [number, event] : parts) {
    const bool waits =
        (event.ticket && now < event.until) || (options_.may_write && !options_.may_write(event.camera));
    if (waits || std::any_of(event.topics.begin(), event.topics.end(),
                             [&](const std::string& topic) { return held.contains(topic); })) {
      held.insert(event.topics.begin(), event.topics.end());
      continue;
    }
    if (!batch.empty() && batch.events.size() + event.topics.size() > options_.batch_events) return false;
    std::vector<OutboxEvent> copies;
    std::size_t size = 0;
    for (const std::string& topic : event.topics) {
      auto known = sequences.find(topic);
      if (known == sequences.end()) known = sequences.emplace(topic, last_sequence(topic)).first;
      const std::uint64_t sequence = known->second + 1;
      copies.push_back({0, topic, sequence, event.time, event.body({sequence, now, event.text})});
      size += topic.size() + copies.back().body.size();
    }
    if (!batch.empty() && bytes + size > options_.batch_bytes) return false;
    bytes += size;
    for (const OutboxEvent& copy : copies) sequences[copy.topic] = copy.sequence;
    if (event.note) batch.notes.push_back(event.note(copies.empty() ? std::string() : copies.front().body));
    std::move(copies.begin(), copies.end(), std::back_inserter(batch.events));
    batch.parts.insert(number);
  }
  return true;
}

void EventQueue::written(const Batch& batch) {
  for (Parts* parts : {&urgent_, &others_}) {
    parts->remove_if([&](const Part& part) {
      const bool gone = batch.parts.contains(part.number);
      if (gone) copies_ -= part.event.topics.size();
      return gone;
    });
  }
}

}  // namespace vigil::actors
