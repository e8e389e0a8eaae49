#include "actors/alerts/handover.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <utility>

#include "actors/alerts/open_episodes.h"
#include "actors/messages/topic.h"

namespace vigil::actors {
namespace {

constexpr std::string_view kTenure = "tenure/";

bool is_of(const std::string& topic, const std::string& camera) {
  const auto series = series_of(topic);
  return series && *series == camera;
}

/// By episode.
using Open = std::map<std::string, OpenEpisode>;

/// What notes say is open, of this camera.
Open noted(const std::map<std::string, std::string>& notes, const std::string& camera) {
  Open open;
  for (const auto& [key, value] : notes) {
    auto episode = noted_episode(key, value);
    if (!episode || episode->topics.empty() || !is_of(episode->topics.front(), camera)) continue;
    std::erase_if(episode->topics, [&](const std::string& topic) { return !is_of(topic, camera); });
    auto record = read_alert(episode->body);
    if (!record) continue;
    OpenEpisode each{std::move(episode->topics), std::move(*record), std::move(episode->body)};
    const std::string name = each.record.name.episode;
    open.insert_or_assign(name, std::move(each));
  }
  return open;
}

/// The last events of topics may be newer than the notes, and open what none tells of.
void bring_up_to_date(Open& open, const std::vector<OutboxEvent>& last) {
  for (const OutboxEvent& event : last) {
    auto record = read_alert(event.body);
    if (!record) continue;
    const auto known = open.find(record->name.episode);
    const bool own = kind_of(event.topic) == TopicKind::rule;
    if (known == open.end()) {
      OpenEpisode each{{event.topic}, std::move(*record), event.body};
      const std::string name = each.record.name.episode;
      open.emplace(name, std::move(each));
      continue;
    }
    std::vector<std::string>& topics = known->second.topics;
    if (std::find(topics.begin(), topics.end(), event.topic) == topics.end())
      topics.insert(own ? topics.begin() : topics.end(), event.topic);
    if (record->name.number <= known->second.record.name.number) continue;
    known->second.record = std::move(*record);
    known->second.body = event.body;
  }
}

class Reconciled {
 public:
  Reconciled(const SeriesBooks& books, const OwnPart& own) : books_(books), own_(own) {
    result_.goes_on = own.tenure != 0 && own.tenure >= books.since;
    for (const OutboxEvent& event : books.last)
      if (is_of(event.topic, books.camera)) ends_[event.topic] = event.sequence;
    for (const OutboxEvent& event : own.unacknowledged)
      if (is_of(event.topic, books.camera)) waiting_[event.topic].push_back(&event);
  }

  Handover make() && {
    std::set<std::string> topics;
    for (const auto& [topic, sequence] : ends_) topics.insert(topic);
    for (const auto& [topic, events] : waiting_) topics.insert(topic);
    for (const OutboxEvent& event : own_.last)
      if (is_of(event.topic, books_.camera)) topics.insert(event.topic);
    for (const std::string& topic : topics) {
      auto& events = waiting_[topic];
      std::sort(events.begin(), events.end(),
                [](const OutboxEvent* a, const OutboxEvent* b) { return a->sequence < b->sequence; });
      if (result_.goes_on) {
        go_on(topic, events);
      } else {
        begin(topic, events);
      }
    }
    result_.goes_on = result_.goes_on && intact_;
    tell_open();
    result_.notes.push_back({tenure_key(books_.camera), std::to_string(books_.fence)});
    return std::move(result_);
  }

 private:
  using Events = std::vector<const OutboxEvent*>;

  /// Somebody else may have given these numbers.
  void begin(const std::string& topic, const Events& events) {
    result_.dropped += events.size();
    const auto end = ends_.find(topic);
    const std::uint64_t stays = events.empty() ? ~std::uint64_t{0} : events.front()->sequence - 1;
    if (end != ends_.end()) {
      result_.topics.push_back({topic, end->second, stays});
    } else if (books_.previous > 0) {
      // The books know the series: what was told as done here, and is not in them, reached nobody.
      result_.topics.push_back({topic, 0});
    } else if (!events.empty()) {
      result_.topics.push_back({topic, stays});
    }
  }

  void go_on(const std::string& topic, const Events& events) {
    const std::uint64_t here = own_.last_sequence(topic);
    const auto end = ends_.find(topic);
    const auto behind = std::find_if(events.begin(), events.end(), [&](const OutboxEvent* event) {
      return end == ends_.end() || event->sequence > end->second;
    });
    for (auto each = events.begin(); each != behind; ++each)
      if ((*each)->position <= own_.left_behind) result_.committed.push_back((*each)->position);
    const Events rest(behind, events.end());
    const bool follows = !rest.empty() && (end == ends_.end() || rest.front()->sequence == end->second + 1) &&
                         rest.back()->sequence == here && here - rest.front()->sequence + 1 == rest.size();
    if (!follows) {
      // What was told as done here may never have reached anybody; what others have and this one has not, it
      // may have forgotten.
      const bool behind_books = end != ends_.end() && here < end->second;
      intact_ = intact_ && rest.empty() &&
                (end == ends_.end() || end->second == here || (behind_books && own_.lived));
      result_.dropped += rest.size();
      if (end != ends_.end() && end->second != here) result_.topics.push_back({topic, end->second});
      if (end == ends_.end() && !rest.empty()) result_.topics.push_back({topic, rest.front()->sequence - 1});
      return;
    }
    newer_.push_back(*rest.back());
    const bool left = std::any_of(rest.begin(), rest.end(), [&](const OutboxEvent* event) {
      return event->position <= own_.left_behind;
    });
    if (!left) return;
    // In a place where they are published.
    result_.topics.push_back({topic, rest.front()->sequence - 1});
    for (const OutboxEvent* event : rest) result_.events.push_back(*event);
  }

  void tell_open() {
    std::map<std::string, std::string> notes;
    for (const OutboxNote& note : books_.notes)
      if (note.value) notes[note.key] = *note.value;
    Open open = noted(notes, books_.camera);
    std::vector<OutboxEvent> last;
    for (const OutboxEvent& event : books_.last)
      if (ends_.contains(event.topic)) last.push_back(event);
    Open own = noted(own_.notes, books_.camera);
    if (result_.goes_on) {
      for (OutboxEvent& event : newer_) last.push_back(std::move(event));
      // All that this process has told is in its own notes, and what it was handed over.
      for (auto& [episode, each] : own) {
        const auto known = open.find(episode);
        if (known == open.end() || known->second.record.name.number < each.record.name.number)
          open.insert_or_assign(episode, each);
      }
      std::erase_if(open, [&](const auto& each) { return !own.contains(each.first); });
    }
    // Own notes are as new as what this process has told.
    if (!result_.goes_on) bring_up_to_date(open, last);
    for (const OutboxEvent& event : last) result_.last[event.topic] = event.body;
    std::erase_if(open, [](const auto& each) {
      const AlertRecord& record = each.second.record;
      return record.told.phase == Phase::end && record.evidence.state != EvidenceState::pending;
    });
    for (const auto& [episode, each] : own)
      if (!open.contains(episode)) result_.notes.push_back({episode_key(episode), std::nullopt});
    for (auto& [episode, each] : open) {
      result_.notes.push_back(episode_note(each.topics, each.body));
      result_.open.push_back(std::move(each));
    }
  }

  const SeriesBooks& books_;
  const OwnPart& own_;
  Handover result_;
  /// Nothing of this process's last tenure is missing.
  bool intact_ = true;
  /// Where the books end.
  std::map<std::string, std::uint64_t> ends_;
  std::map<std::string, Events> waiting_;
  /// Last events that are not in the books yet.
  std::vector<OutboxEvent> newer_;
};

}  // namespace

Handover hand_over(const SeriesBooks& books, const OwnPart& own) {
  return Reconciled(books, own).make();
}

std::string tenure_key(const std::string& camera) {
  return std::string(kTenure) + camera;
}

std::map<std::string, std::uint64_t> tenures_in(const std::map<std::string, std::string>& notes) {
  std::map<std::string, std::uint64_t> tenures;
  for (auto note = notes.lower_bound(std::string(kTenure));
       note != notes.end() && note->first.starts_with(kTenure); ++note) {
    std::uint64_t fence = 0;
    const char* const end = note->second.data() + note->second.size();
    const auto [at, error] = std::from_chars(note->second.data(), end, fence);
    if (error == std::errc() && at == end) tenures[note->first.substr(kTenure.size())] = fence;
  }
  return tenures;
}

}  // namespace vigil::actors
