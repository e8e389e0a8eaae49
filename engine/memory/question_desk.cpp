#include "engine/memory/question_desk.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace vigil::memory {
namespace {

/// The finest first.
constexpr std::array kKeys{kv::Form::bf16, kv::Form::fp8, kv::Form::int4};
/// Of two patches that follow one another, the one begins so much before the other ends, at most.
constexpr std::int64_t kOverlap = 1'000'000'000;

double log_odds_of(float probability) {
  const double p = std::clamp(static_cast<double>(probability), 1e-9, 1 - 1e-9);
  return std::log(p / (1 - p));
}

bool has(const Memory::Found& page, kv::Form form) {
  return page.host.contains(form) || page.disk.contains(form);
}

std::int64_t time_of(const Memory::Found& page) {
  return page.info.patches.front().wall.from;
}

/// In the order of time. Where a clock was set back, what was seen first stays.
std::vector<Memory::Found> in_order(std::vector<Memory::Found> pages) {
  std::stable_sort(pages.begin(), pages.end(),
                   [](const auto& a, const auto& b) { return time_of(a) < time_of(b); });
  std::vector<Memory::Found> ordered;
  for (Memory::Found& page : pages)
    if (ordered.empty() || time_of(page) >= ordered.back().info.patches.back().wall.to - kOverlap)
      ordered.push_back(std::move(page));
  return ordered;
}

std::vector<SearchedPage> searched(const std::vector<Memory::Found>& pages) {
  std::vector<SearchedPage> searched;
  for (const Memory::Found& page : pages) {
    SearchedPage& to = searched.emplace_back();
    const history::PageInfo& brief = has(page, kv::Form::sketch) ? *page.sketch : page.info;
    for (std::size_t i = page.first_kept; i < page.info.patches.size(); ++i) {
      const history::PatchInfo& patch = page.info.patches[i];
      to.patches.push_back({patch.wall, patch.kept.count(), brief.patches[i].kept.count()});
    }
  }
  return searched;
}

/// Of pages, as they are: a search knows of none what is not kept.
std::vector<Slice> in_pages(std::vector<Slice> slices, const std::vector<Memory::Found>& pages) {
  for (Slice& slice : slices) {
    slice.first += pages[slice.page].first_kept;
    slice.last += pages[slice.page].first_kept;
  }
  return slices;
}

/// What a form of the page has: a sketch has few of its tokens.
const history::PageInfo& info_of(const Memory::Found& page, kv::Form form) {
  return form == kv::Form::sketch && page.sketch ? *page.sketch : page.info;
}

}  // namespace

void QuestionDesk::begin_time(std::optional<base::Clock::TimePoint>& since) const {
  if (!since) since = clock_.now();
}

void QuestionDesk::end_time(std::optional<base::Clock::TimePoint>& since,
                            std::chrono::nanoseconds& sum) const {
  if (since) sum += clock_.now() - *since;
  since.reset();
}

void QuestionDesk::ask(std::uint64_t ticket, const PastAsking& asking) {
  Session session;
  session.asked = asking.since.value_or(clock_.now());
  const auto waited = clock_.now() - session.asked;
  session.asked_wall =
      std::chrono::duration_cast<std::chrono::nanoseconds>(clock_.wall().time_since_epoch() - waited).count();
  session.asking = asking;
  const QuestionForm form = form_of(asking.question);
  session.answer.wanted = form.wanted;
  session.answer.about = asking.about.empty() ? form.about : asking.about;
  session.pages = in_order(memory_.find(asking.camera, asking.wall, session.asked_wall));
  Search::Options search = options_.search;
  search.method = asking.method;
  search.finds_moment = form.wanted == Wanted::when;
  session.search.emplace(searched(session.pages), search);
  session.answer.finding = clock_.now() - session.asked;
  go_on(sessions_.emplace(ticket, std::move(session)).first);
}

void QuestionDesk::give_up(std::uint64_t ticket) {
  const auto session = sessions_.find(ticket);
  if (session == sessions_.end()) return;
  for (const auto& [id, job] : session->second.jobs)
    if (job.state == Job::State::asked) news_.forgotten.push_back(id);
  sessions_.erase(session);
}

void QuestionDesk::erased(const history::CameraId& camera, const history::WallRange& wall) {
  std::vector<std::uint64_t> meant;
  for (const auto& [ticket, session] : sessions_)
    if (session.asking.camera == camera && session.asking.wall.meets(wall)) meant.push_back(ticket);
  for (const std::uint64_t ticket : meant) {
    give_up(ticket);
    news_.erased.push_back(ticket);
  }
}

std::optional<kv::Form> QuestionDesk::form_for(const Memory::Found& page, const Job& job) {
  if (job.look.is_brief && has(page, kv::Form::sketch)) return kv::Form::sketch;
  // Windows computed by themselves tell moments right (docs/experiments/2026-11-29-finding-the-window.md).
  if (job.max_tokens > 1 && !job.look.by_clusters && has(page, kv::Form::embeddings))
    return kv::Form::embeddings;
  // What lies in memory is there at once.
  for (const kv::Form form : kKeys)
    if (page.host.contains(form)) return form;
  for (const kv::Form form : kKeys)
    if (page.disk.contains(form)) return form;
  // Better than nothing.
  const auto coarse = job.look.by_clusters ? std::array{kv::Form::sketch, kv::Form::embeddings}
                                           : std::array{kv::Form::embeddings, kv::Form::sketch};
  for (const kv::Form form : coarse)
    if (has(page, form)) return form;
  return std::nullopt;
}

bool QuestionDesk::plan(Session& session, Job& job) {
  job.forms.clear();
  // By clusters, what has no keys is left out.
  if (job.look.by_clusters)
    std::erase_if(job.look.slices, [&](const Slice& slice) {
      const auto form = form_for(session.pages[slice.page], job);
      if (form && *form != kv::Form::embeddings) return false;
      session.keyless.push_back(session.pages[slice.page].info.number);
      return true;
    });
  if (job.look.slices.empty()) return false;
  for (const Slice& slice : job.look.slices) {
    const auto form = form_for(session.pages[slice.page], job);
    if (!form) return false;
    job.forms.push_back(*form);
  }
  return true;
}

void QuestionDesk::go_on(Sessions::iterator entry) {
  Session& session = entry->second;
  for (;;) {
    if (session.pending.empty() && session.jobs.empty()) {
      if (session.is_told) return finish(entry);
      session.done = 0;
      for (Look& look : session.search->next()) {
        look.slices = in_pages(std::move(look.slices), session.pages);
        session.pending.push_back(std::move(look));
      }
      session.round = session.pending.size();
      if (session.pending.empty()) {
        session.is_told = true;
        auto words = words_of(session);
        if (!words) continue;
        start(session, std::move(*words), session.asking.question, session.asking.max_tokens);
        continue;
      }
    }
    if (session.pending.empty()) return;
    const Look& next = session.pending.front();
    const std::size_t most = next.is_brief      ? options_.brief_at_once
                             : next.by_clusters ? 1
                                                : options_.whole_at_once;
    if (session.jobs.size() >= most) return;
    Look look = std::move(session.pending.front());
    session.pending.pop_front();
    start(session, std::move(look), session.answer.about, 1);
  }
}

void QuestionDesk::start(Session& session, Look look, std::string text, int max_tokens) {
  const std::uint64_t id = ++ids_;
  Job job;
  job.look = std::move(look);
  job.text = std::move(text);
  job.max_tokens = max_tokens;
  Job& there = session.jobs.emplace(id, std::move(job)).first->second;
  resume(session, id, there);
}

/// What it was to be made of may be gone meanwhile.
void QuestionDesk::resume(Session& session, std::uint64_t id, Job& job) {
  if (plan(session, job)) {
    ask_if_ready(session, id, job);
  } else {
    end(session, id, std::nullopt);
  }
}

bool QuestionDesk::ask_if_ready(Session& session, std::uint64_t id, Job& job) {
  Reading reading;
  Read read;
  bool is_ready = true;
  for (std::size_t i = 0; i < job.forms.size(); ++i) {
    const std::size_t page = job.look.slices[i].page;
    const Memory::Found& found = session.pages[page];
    const HeldKey key{page, job.forms[i]};
    const auto [held, is_new] = session.held.try_emplace(key);
    held->second.used = ++session.uses;
    if (is_new) {
      if (const auto host = found.host.find(job.forms[i]); host != found.host.end()) {
        const run::MovedTokens& tokens = host->second;
        held->second.values.push_back({{tokens.bytes.get(), tokens.size}, 0, 0, tokens.bytes});
        held->second.is_there = true;
        session.answer.host_bytes += tokens.size;
      } else {
        const Memory::OnDisk& on_disk = found.disk.at(job.forms[i]);
        for (const history::Layers& layers : on_disk.layers)
          reading.names.push_back({on_disk.number, layers});
        read.of.emplace_back(key, on_disk.layers);
      }
    }
    is_ready = is_ready && held->second.is_there;
  }
  if (!reading.names.empty()) {
    reading.id = ++ids_;
    reading.camera = session.asking.camera;
    const auto entry = std::find_if(sessions_.begin(), sessions_.end(),
                                    [&](const auto& each) { return &each.second == &session; });
    read.ticket = entry->first;
    readings_.emplace(reading.id, std::move(read));
    news_.readings.push_back(std::move(reading));
    if (session.readings++ == 0) begin_time(session.reads_since);
  }
  if (!is_ready) return false;
  Window window;
  window.id = id;
  window.text = job.text;
  window.max_tokens = job.max_tokens;
  window.what.moves_together = moves_together(session, job.look);
  window.what.by_clusters = job.look.by_clusters;
  window.what.rekv_share = job.look.rekv_share;
  for (std::size_t i = 0; i < job.forms.size(); ++i) {
    const Slice& slice = job.look.slices[i];
    const Memory::Found& found = session.pages[slice.page];
    const Held& held = session.held.at({slice.page, job.forms[i]});
    RecalledPage page;
    page.info = info_of(found, job.forms[i]);
    page.form = job.forms[i];
    // A page without tokens has a byte in their place on the disk.
    if (page.info.tokens > 0) page.values = held.values;
    page.first = slice.first;
    page.last = slice.last;
    window.what.pages.push_back(std::move(page));
  }
  job.state = Job::State::asked;
  if (session.windows++ == 0) begin_time(session.looks_since);
  news_.windows.push_back(std::move(window));
  return true;
}

void QuestionDesk::read(std::uint64_t id, std::vector<history::Value> values) {
  const auto reading = readings_.extract(id);
  if (!reading) return;
  const auto entry = sessions_.find(reading.mapped().ticket);
  if (entry == sessions_.end()) return;
  Session& session = entry->second;
  if (--session.readings == 0) end_time(session.reads_since, session.answer.reading);
  std::size_t at = 0;
  for (const auto& [key, layers] : reading.mapped().of) {
    Held& held = session.held.at(key);
    bool is_whole = true;
    for (const history::Layers& each : layers) {
      history::Value& value = values.at(at++);
      is_whole = is_whole && static_cast<bool>(value);
      if (!value) continue;
      const auto owner = std::make_shared<history::Value>(std::move(value));
      const bool is_keys = key.second != kv::Form::embeddings;
      held.values.push_back({owner->bytes(), is_keys ? each.first : 0, is_keys ? each.count : 0, owner});
      held.bytes += owner->bytes().size();
    }
    session.answer.disk_bytes += held.bytes;
    held.is_there = true;
    if (is_whole) continue;
    // It may be there in another form.
    Memory::Found& page = session.pages[key.first];
    page.disk.erase(key.second);
    session.held.erase(key);
    if (page.host.empty() && page.disk.empty()) session.damaged.push_back(page.info.number);
  }
  std::vector<std::uint64_t> waiting;
  for (const auto& [job, state] : session.jobs)
    if (state.state == Job::State::reads) waiting.push_back(job);
  for (const std::uint64_t job : waiting) {
    resume(session, job, session.jobs.at(job));
  }
  go_on(entry);
}

std::optional<std::uint64_t> QuestionDesk::ticket_of(std::uint64_t job) const {
  for (const auto& [ticket, session] : sessions_)
    if (session.jobs.contains(job)) return ticket;
  return std::nullopt;
}

std::optional<QuestionDesk::WindowOf> QuestionDesk::asker_of(std::uint64_t id) const {
  const auto ticket = ticket_of(id);
  if (!ticket) return std::nullopt;
  return WindowOf{*ticket, sessions_.at(*ticket).asking.camera};
}

void QuestionDesk::end(Session& session, std::uint64_t id, std::optional<double> log_odds) {
  const auto job = session.jobs.extract(id);
  if (job.mapped().state == Job::State::asked && --session.windows == 0)
    end_time(session.looks_since, session.answer.looking);
  release(session);
  if (session.is_told) return;
  ++session.done;
  session.search->hear(job.mapped().look.id, log_odds);
}

void QuestionDesk::recalled(std::uint64_t id, const stream::Answer& answer) {
  const auto ticket = ticket_of(id);
  if (!ticket) return;
  const auto entry = sessions_.find(*ticket);
  Session& session = entry->second;
  const Job& job = session.jobs.at(id);
  if (session.is_told) session.answer.text = in_wall_time(answer.text, shown(session, job.look));
  const bool is_brief = job.look.is_brief;
  end(session, id, log_odds_of(answer.probability_yes));
  if (!session.is_told) news_.progress.push_back({entry->first, session.done, session.round, is_brief});
  go_on(entry);
}

void QuestionDesk::failed(std::uint64_t id, bool is_busy) {
  const auto ticket = ticket_of(id);
  if (!ticket) return;
  const auto entry = sessions_.find(*ticket);
  Session& session = entry->second;
  Job& job = session.jobs.at(id);
  if (is_busy) {
    if (job.state != Job::State::asked) return;
    job.state = Job::State::waits;
    job.again = clock_.now() + options_.again;
    if (--session.windows == 0) end_time(session.looks_since, session.answer.looking);
    return;
  }
  end(session, id, std::nullopt);
  go_on(entry);
}

void QuestionDesk::tick() {
  const auto now = clock_.now();
  for (auto entry = sessions_.begin(); entry != sessions_.end();) {
    // It may be over by then.
    const auto session = entry++;
    std::vector<std::uint64_t> due;
    for (const auto& [id, job] : session->second.jobs)
      if (job.state == Job::State::waits && job.again <= now) due.push_back(id);
    for (const std::uint64_t id : due) {
      Job& job = session->second.jobs.at(id);
      job.state = Job::State::reads;
      resume(session->second, id, job);
    }
    if (!due.empty()) go_on(session);
  }
}

/// What no job under way uses goes, the one that was used longest ago first, until the bound holds.
void QuestionDesk::release(Session& session) {
  std::set<HeldKey> used;
  for (const auto& [id, job] : session.jobs)
    for (std::size_t i = 0; i < job.forms.size(); ++i) used.emplace(job.look.slices[i].page, job.forms[i]);
  std::uint64_t bytes = 0;
  std::vector<std::pair<std::uint64_t, HeldKey>> free;
  for (const auto& [key, held] : session.held) {
    bytes += held.bytes;
    if (!used.contains(key) && held.is_there) free.emplace_back(held.used, key);
  }
  std::sort(free.begin(), free.end());
  for (const auto& [last, key] : free) {
    if (bytes <= options_.most_held) return;
    bytes -= session.held.at(key).bytes;
    session.held.erase(key);
  }
}

/// The best window, if the question wants words about it.
std::optional<Look> QuestionDesk::words_of(const Session& session) const {
  const Search::Result found = session.search->result();
  const Method method = session.asking.method;
  const bool by_clusters = method == Method::clusters || method == Method::rekv;
  // Nothing is cut off behind a moment where a stretch is seen by clusters: it is told in words.
  const bool wants =
      session.answer.wanted == Wanted::words || (session.answer.wanted == Wanted::when && by_clusters);
  if (!wants || found.windows.empty() || found.verdict == Search::Verdict::no) return std::nullopt;
  const Search::Window& best = found.windows.front();
  return Look{0,           in_pages(best.slices, session.pages),
              best.wall,   false,
              by_clusters, method == Method::rekv ? session.search->rekv_share() : 0};
}

bool QuestionDesk::moves_together(const Session& session, const Look& look) const {
  if (session.asking.method == Method::compose && !look.is_brief) return true;
  const history::PageInfo* last = nullptr;
  for (const Slice& slice : look.slices) {
    const history::PageInfo& info = session.pages[slice.page].info;
    // Of one stream, what is later has a higher number, unless a clock was set back.
    const bool goes_on = last == nullptr || (last->stream == info.stream &&
                                             last->patches.back().number < info.patches.front().number);
    if (!goes_on && last != &info) return true;
    last = &info;
  }
  return false;
}

std::vector<ShownPatch> QuestionDesk::shown(const Session& session, const Look& look) const {
  std::vector<ShownPatch> patches;
  const bool is_together = moves_together(session, look);
  const history::PatchInfo* last = nullptr;
  std::uint64_t last_stream = 0;
  double second = 0;
  for (const Slice& slice : look.slices) {
    const history::PageInfo& info = session.pages[slice.page].info;
    for (std::size_t i = slice.first; i < slice.last; ++i) {
      const history::PatchInfo& patch = info.patches[i];
      const bool follows =
          last != nullptr && last_stream == info.stream && (!is_together || last->number + 1 == patch.number);
      if (follows) {
        second += patch.seconds - last->seconds;
      } else if (last != nullptr) {
        second += static_cast<double>(patch.wall.to - patch.wall.from) * 1e-9;
      }
      patches.push_back({second, patch.wall});
      last = &patch;
      last_stream = info.stream;
    }
  }
  return patches;
}

void QuestionDesk::finish(Sessions::iterator entry) {
  Session& session = entry->second;
  PastAnswer answer = std::move(session.answer);
  answer.found = session.search->result();
  answer.coverage = memory_.coverage(session.asking.camera, session.asking.wall, session.asked_wall,
                                     session.damaged, session.keyless);
  answer.total = clock_.now() - session.asked;
  news_.answered.emplace_back(entry->first, std::move(answer));
  sessions_.erase(entry);
}

}  // namespace vigil::memory
