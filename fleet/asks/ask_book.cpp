#include "fleet/asks/ask_book.h"

#include <cstdint>
#include <cstdio>
#include <limits>
#include <memory>
#include <set>
#include <string_view>

#include <nlohmann/json.hpp>

#include "base/duration.h"
#include "base/one_line.h"
#include "base/timestamp.h"

namespace vigil::fleet {
namespace {

using cluster::AskRefusal;
using cluster::AskRefusalType;

// Of a key, as much as tells it from others.
constexpr std::size_t kShownOfAsker = 8;
constexpr std::int64_t kNanosecondsOfOne = 1'000'000;

actors::PastRights past_rights(const cluster::KeyRights& rights) {
  actors::PastRights past{.tenants = std::nullopt, .erase = rights.erase};
  if (!rights.all_tenants) past.tenants = rights.tenants;
  return past;
}

/// All of the last millisecond, too. Without a first one, all that is before.
history::WallRange between_ms(std::optional<std::int64_t> from, std::int64_t to) {
  return {from ? *from * kNanosecondsOfOne : std::numeric_limits<std::int64_t>::min(),
          to * kNanosecondsOfOne + (kNanosecondsOfOne - 1)};
}

std::string time_text(std::int64_t ms) {
  return base::format_rfc3339(base::Clock::WallTime(std::chrono::milliseconds(ms)));
}

std::int64_t ms_of(base::Clock::WallTime time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
}

memory::Method method_of(cluster::AskMethod method) {
  switch (method) {
    case cluster::AskMethod::windows:
      return memory::Method::windows;
    case cluster::AskMethod::compose:
      return memory::Method::compose;
    case cluster::AskMethod::exhaustive:
      return memory::Method::exhaustive;
    case cluster::AskMethod::clusters:
      return memory::Method::clusters;
    case cluster::AskMethod::rekv:
      return memory::Method::rekv;
  }
  return memory::Method::windows;
}

actors::PastQuestion past_of(const cluster::AskQuestion& asked) {
  actors::PastQuestion past;
  past.camera = {asked.camera, asked.tenant};
  past.question = asked.question;
  past.about = asked.about.value_or("");
  past.wall = between_ms(asked.from_ms, asked.to_ms);
  if (asked.method) past.method = method_of(*asked.method);
  if (asked.max_tokens) past.max_tokens = *asked.max_tokens;
  return past;
}

std::optional<actors::PastCamera> past_camera(const std::optional<std::string>& camera,
                                              const std::optional<std::string>& tenant) {
  return camera ? std::optional<actors::PastCamera>({*camera, tenant}) : std::nullopt;
}

actors::PastList past_of(const cluster::MemoryList& asked) {
  return {past_camera(asked.camera, asked.tenant)};
}

actors::PastVerify past_of(const cluster::MemoryVerify& asked) {
  return {past_camera(asked.camera, asked.tenant)};
}

actors::PastErasure past_of(const cluster::MemoryErase& asked) {
  return {{asked.camera, asked.tenant}, between_ms(asked.from_ms, asked.to_ms.value_or(0))};
}

/// Of those whose cameras are there for somebody, this one alone.
void narrow(actors::PastRights& rights, const std::string& tenant) {
  const bool is_there = !rights.tenants || rights.tenants->contains(tenant);
  rights.tenants = is_there ? std::set<std::string>{tenant} : std::set<std::string>{};
}

/// Whose camera an answer is about; empty if it does not say.
std::string tenant_of_answer(const std::string& body) {
  const auto answer = nlohmann::json::parse(body, nullptr, /*allow_exceptions=*/false);
  const auto tenant = answer.find("tenant");
  return tenant != answer.end() && tenant->is_string() ? base::one_line(tenant->get_ref<const std::string&>())
                                                       : "";
}

/// Of a list or a check without any camera: what is told instead; nothing if it has one.
std::optional<AskRefusal> refusal_of_nobody(const std::string& body, const std::string& of_nobody) {
  const auto list = nlohmann::json::parse(body, nullptr, /*allow_exceptions=*/false);
  const auto cameras = list.find("cameras");
  if (cameras == list.end() || !cameras->empty()) return std::nullopt;
  std::string silent;
  if (const auto nodes = list.find("silent"); nodes != list.end())
    for (const auto& node : *nodes)
      if (node.is_string())
        silent.append(silent.empty() ? "" : ", ").append(node.get_ref<const std::string&>());
  if (silent.empty()) return AskRefusal{AskRefusalType::bad_request, of_nobody};
  return AskRefusal{AskRefusalType::unavailable,
                    of_nobody + " at nodes that answer, and of these nobody knows: " + silent};
}

AskLine line_of(const cluster::AskedRequest& asked, std::string tenant) {
  const auto* question = std::get_if<cluster::AskQuestion>(&asked.request);
  const auto* erasure = std::get_if<cluster::MemoryErase>(&asked.request);
  const std::string camera(cluster::camera_of(asked.request).value_or(""));
  const std::string asker = asked.who.key ? asked.who.key->substr(0, kShownOfAsker) : "local";
  const auto from = question ? std::optional(question->from_ms) : erasure->from_ms;
  const std::string to = time_text(question ? question->to_ms : erasure->to_ms.value_or(0));
  AskLine line;
  line.is_erasure = erasure != nullptr;
  if (const auto named = cluster::tenant_of(asked.request)) tenant = *named;
  line.text = (erasure ? "erasure of camera " : "question about camera ") + camera;
  if (!tenant.empty()) line.text += " of tenant " + tenant;
  line.text += from ? " from " + time_text(*from) + " to " + to : " until " + to;
  line.fields = {{"camera", camera}, {"asker", asker}, {"to", to}};
  if (from) line.fields.emplace_back("from", time_text(*from));
  if (!tenant.empty()) line.fields.emplace_back("tenant", tenant);
  if (question != nullptr) {
    const std::string method(cluster::name_of(question->method.value_or(cluster::AskMethod::windows)));
    line.text += " by " + method;
    line.fields.emplace_back("method", method);
  }
  line.text += ", asked by " + asker;
  return line;
}

/// The refusal of an erasure that begins after now. A question may: what a file has shown that is read ahead
/// of its time is there.
std::optional<AskRefusal> not_come_yet(const cluster::AskRequest& request, std::int64_t now) {
  const auto* erasure = std::get_if<cluster::MemoryErase>(&request);
  if (erasure != nullptr && erasure->from_ms.value_or(0) > now)
    return AskRefusal{AskRefusalType::bad_request, "erase.from_ms: has not come yet"};
  return std::nullopt;
}

AskRefusalType refusal_type(actors::PastOutcome outcome) {
  switch (outcome) {
    case actors::PastOutcome::bad_request:
      return AskRefusalType::bad_request;
    case actors::PastOutcome::forbidden:
      return AskRefusalType::forbidden;
    case actors::PastOutcome::busy:
      return AskRefusalType::busy;
    case actors::PastOutcome::too_late:
      return AskRefusalType::too_late;
    case actors::PastOutcome::unavailable:
    case actors::PastOutcome::answer:
    case actors::PastOutcome::progress:
      break;
  }
  return AskRefusalType::unavailable;
}

cluster::AskReply reply_of(const actors::PastReply& word) {
  if (word.outcome == actors::PastOutcome::answer) return cluster::AskAnswer{word.text};
  if (word.outcome == actors::PastOutcome::progress) return cluster::AskProgress{word.text};
  AskRefusal refusal{refusal_type(word.outcome), word.text};
  if (word.retry_after.count() > 0) refusal.retry_after = word.retry_after;
  return refusal;
}

std::string_view name_of_end(cluster::AskEnd end) {
  switch (end) {
    case cluster::AskEnd::too_late:
      return cluster::name_of(AskRefusalType::too_late);
    case cluster::AskEnd::cancelled:
      return "cancelled";
    case cluster::AskEnd::gone:
      return "gone";
  }
  return "";
}

}  // namespace

std::variant<actors::PastRequestPtr, AskRefusal> AskBook::take(const cluster::AskedRequest& asked) {
  cluster::AskedRequest whole = asked;
  // Without an end it means what was seen until it was asked for, which the log says, too.
  if (auto* erasure = std::get_if<cluster::MemoryErase>(&whole.request); erasure && !erasure->to_ms)
    erasure->to_ms = ms_of(clock_.wall());
  Asked entry;
  entry.is_question = std::holds_alternative<cluster::AskQuestion>(whole.request);
  entry.since = clock_.now();
  if (entry.is_question || std::holds_alternative<cluster::MemoryErase>(whole.request)) entry.logged = whole;
  std::optional<AskRefusal> refusal;
  if (is_closed_) {
    refusal = nobody_answers();
  } else if (entry.is_question && questions_ >= options_.at_once) {
    refusal =
        AskRefusal{AskRefusalType::busy, "as many questions as may be are under way", options_.retry_after};
  } else {
    refusal = not_come_yet(whole.request, ms_of(clock_.wall()));
  }
  if (refusal) {
    if (entry.is_question && refusal->type == AskRefusalType::busy) ++counts_.busy;
    log(entry, cluster::name_of(refusal->type));
    return *std::move(refusal);
  }
  auto request = std::make_shared<actors::PastRequest>();
  request->ticket = whole.ticket;
  request->rights = past_rights(cluster::rights_of(options_.permissions, whole.who));
  // Of a list that names no camera, nothing else says whose are meant.
  if (const auto tenant = cluster::tenant_of(whole.request); tenant && !cluster::camera_of(whole.request)) {
    entry.of_nobody = "nothing is remembered of a tenant " + std::string(*tenant);
    narrow(request->rights, std::string(*tenant));
    // The key alone says so, whether there is such a tenant or not.
    if (request->rights.tenants->empty()) entry.of_nobody += " that this key may know of";
  }
  std::visit([&](const auto& what) { request->what = past_of(what); }, whole.request);
  request->deadline = whole.deadline;
  if (entry.is_question) ++questions_;
  under_way_.insert_or_assign(whole.ticket, std::move(entry));
  return actors::PastRequestPtr(std::move(request));
}

std::optional<cluster::AskReply> AskBook::hear(const actors::PastReply& word) {
  const auto asked = under_way_.find(word.ticket);
  if (asked == under_way_.end()) return std::nullopt;
  cluster::AskReply reply = reply_of(word);
  if (word.outcome == actors::PastOutcome::answer && !asked->second.of_nobody.empty()) {
    if (auto nobody = refusal_of_nobody(word.text, asked->second.of_nobody)) reply = *std::move(nobody);
  }
  if (cluster::is_final(reply)) {
    const auto* refusal = std::get_if<AskRefusal>(&reply);
    const bool is_logged = asked->second.logged.has_value();
    finish(asked, refusal == nullptr ? "answer" : cluster::name_of(refusal->type),
           refusal == nullptr && is_logged ? tenant_of_answer(word.text) : "");
  }
  return reply;
}

bool AskBook::give_up(const cluster::GivenUpAsk& given_up) {
  const auto asked = under_way_.find(given_up.ticket);
  if (asked == under_way_.end()) return false;
  finish(asked, name_of_end(given_up.end));
  return true;
}

std::vector<cluster::AskTicket> AskBook::close() {
  is_closed_ = true;
  std::vector<cluster::AskTicket> tickets;
  while (!under_way_.empty()) {
    tickets.push_back(under_way_.begin()->first);
    finish(under_way_.begin(), cluster::name_of(AskRefusalType::unavailable));
  }
  return tickets;
}

AskRefusal AskBook::nobody_answers() {
  return {AskRefusalType::unavailable, "what keeps what cameras saw has come to an end"};
}

std::vector<AskLine> AskBook::take_lines() {
  if (const std::size_t missed = unanswered_.take_missed(clock_.now()); missed > 0) {
    lines_.push_back({.text = std::to_string(missed) +
                              " more requests that were not answered in the last minute are left out"});
  }
  return std::exchange(lines_, {});
}

void AskBook::finish(std::map<cluster::AskTicket, Asked>::iterator asked, std::string_view outcome,
                     const std::string& tenant) {
  if (asked->second.is_question) {
    --questions_;
    if (outcome == cluster::name_of(AskRefusalType::too_late)) ++counts_.too_late;
  }
  log(asked->second, outcome, tenant);
  under_way_.erase(asked);
}

void AskBook::log(const Asked& asked, std::string_view outcome, const std::string& tenant) {
  if (!asked.logged) return;
  // Answers take what computes them; of what is refused at once, there is no end.
  if (outcome != "answer" && !unanswered_.take(clock_.now())) return;
  AskLine line = line_of(*asked.logged, tenant);
  const auto took = std::chrono::duration_cast<base::Duration>(clock_.now() - asked.since);
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, "%.1f", base::seconds(took));
  line.text.append(": ").append(outcome).append(" after ").append(seconds).append(" s");
  line.fields.emplace_back("outcome", outcome);
  line.fields.emplace_back("seconds", seconds);
  lines_.push_back(std::move(line));
}

}  // namespace vigil::fleet
