#include "fleet/events/gateway_joining.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace vigil::fleet {
namespace {

constexpr std::size_t kJoiningPlaces = 256;

}  // namespace

GatewayJoining::GatewayJoining(Options options, GatewayDesk& desk, const base::Clock& clock,
                               FirstPromise promise)
    : options_(std::move(options)), desk_(desk), clock_(clock), promise_(std::move(promise)) {}

void GatewayJoining::see(const GatewayView& view) {
  const std::string born = desk_.born();
  // What was heard before is of a time before.
  if (!(view == desk_.view())) states_.clear();
  desk_.see(view);
  promise_.see(view);
  std::erase_if(passed_, [&](const auto& other) {
    const auto there = view.find(other.first);
    return there == view.end() || there->second.born != other.second;
  });
  std::erase_if(lanes_, [&](const auto& lane) { return !view.contains(lane.first); });
  std::erase_if(refuse_since_, [&](const auto& other) { return !view.contains(other.first); });
  std::erase_if(others_have_, [&](const auto& other) { return !view.contains(other.first); });
  if (const auto nominee = view.find(nominee_);
      nominee == view.end() || nominee->second.born != nominee_born_)
    nominee_.clear();
  if (step_ == Step::parted) return;
  if (desk_.born() != born) {
    nominee_.clear();
    return look_again("its record is another one");
  }
  if (step_ == Step::looking || step_ == Step::serving) return;
  const auto source = view.find(source_);
  if (source == view.end() || source->second.born != source_born_) return look_again(source_ + " is gone");
  std::erase_if(admissions_, [&](const auto& entry) { return !view.contains(entry.first); });
}

void GatewayJoining::look_again(const std::string& why) {
  desk_.leave();
  attempt_ = next_token();
  step_ = Step::looking;
  trouble_ = why;
  states_.clear();
  passed_.clear();
  admissions_.clear();
  absent_since_.reset();
  for (auto& [name, lane] : lanes_) {
    lane.asked.reset();
    lane.again = clock_.now() + options_.pause;
  }
}

std::string GatewayJoining::trouble() const {
  switch (step_) {
    case Step::serving:
      return {};
    case Step::looking:
      return trouble_;
    case Step::parted:
      if (desk_.has_lost())
        return "some of what it had could not be read: it begins anew, with all that " + source_ + " has";
      return "what it has is not what " + source_ + " has: it begins anew";
    case Step::admission:
      if (!missing_.empty()) return missing_ + " has not admitted it yet";
      [[fallthrough]];
    default:
      return "it reads what it lacks from " + source_;
  }
}

std::string GatewayJoining::what_is_left() const {
  return "it has not read all that " + source_ + " committed meanwhile: it is at position " +
         std::to_string(cursor_) + " of " + std::to_string(until_);
}

std::uint64_t GatewayJoining::behind() const {
  if (step_ == Step::serving) return 0;
  std::uint64_t most = desk_.has();
  for (const auto& [name, has] : others_have_) most = std::max(most, has);
  return most - desk_.has();
}

std::vector<GatewayJoining::Ask> GatewayJoining::take_asks() {
  std::vector<Ask> asks;
  if (step_ == Step::serving || step_ == Step::parted || desk_.born().empty()) return asks;
  if (step_ == Step::looking) decide();
  if (step_ == Step::admission) check_admissions();
  if ((step_ == Step::admission || step_ == Step::finishing) && clock_.now() - joined_ > options_.patience)
    look_again(step_ == Step::finishing ? what_is_left() : missing_ + " does not admit it");
  // What one that serves read of another one would be history, and told to nobody: makers bring it what is
  // new.
  if (step_ == Step::serving || step_ == Step::parted) return asks;
  for (const auto& [name, seen] : desk_.view()) {
    if (name == options_.name) continue;
    Lane& lane = lanes_[name];
    if (lane.asked || clock_.now() < lane.again) continue;
    auto question = next_for(name);
    if (!question) continue;
    question->number = ++numbers_;
    question->from = options_.name;
    question->born = desk_.born();
    question->token = desk_.token().empty() ? attempt_ : desk_.token();
    question->to_born = seen.born;
    lane.asked = question;
    asks.push_back({name, std::move(*question)});
  }
  return asks;
}

std::optional<PeerQuestion> GatewayJoining::next_for(const std::string& peer) {
  PeerQuestion question;
  if (step_ == Step::looking) {
    const auto state = states_.find(peer);
    if (state != states_.end() && peer != nominee_) return std::nullopt;
    question.kind = state == states_.end() ? PeerQuestionKind::state : PeerQuestionKind::nominate;
    question.after = oldest();
    return question;
  }
  if (step_ == Step::admission) {
    if (!wanted_admissions().contains(peer)) return std::nullopt;
    const auto admission = admissions_.find(peer);
    if (admission == admissions_.end() || admission->second.copied) {
      // Asked again and again for whom it names, until all have admitted it.
      question.kind = PeerQuestionKind::admit;
      return question;
    }
    question.kind = PeerQuestionKind::series;
    question.text = admission->second.text;
    return question;
  }
  if (peer != source_) return std::nullopt;
  switch (step_) {
    case Step::comparing:
      question.kind = PeerQuestionKind::where;
      question.places = places_;
      return question;
    case Step::listing:
      question.kind = PeerQuestionKind::topics;
      question.text = topic_;
      return question;
    default:
      question.kind = PeerQuestionKind::page;
      question.after = cursor_;
      return question;
  }
}

void GatewayJoining::failed(const std::string& from, std::uint64_t number) {
  const auto lane = lanes_.find(from);
  if (lane == lanes_.end() || !lane->second.asked || lane->second.asked->number != number) return;
  lane->second.asked.reset();
  lane->second.again = clock_.now() + options_.pause;
  if (step_ == Step::looking) trouble_ = from + " holds a lease and does not answer";
}

void GatewayJoining::heard(const std::string& from, const PeerAnswer& answer) {
  const auto entry = lanes_.find(from);
  if (entry == lanes_.end()) return;
  Lane& lane = entry->second;
  if (!lane.asked || lane.asked->number != answer.number) return;
  const PeerQuestion asked = *std::exchange(lane.asked, std::nullopt);
  others_have_[from] = answer.has;
  if (!answer.refused) refuse_since_.erase(from);
  if (answer.refused) {
    lane.again = clock_.now() + options_.pause;
    if (step_ == Step::looking && answer.lacks_outbox) lacks_outbox(from, asked);
    if (step_ != Step::looking && from == source_ && answer.mode != GatewayMode::serving)
      look_again(source_ + " does not serve any more");
    return;
  }
  if (step_ != Step::looking && from == source_ && answer.token != source_token_)
    return look_again(source_ + " began anew");
  switch (asked.kind) {
    case PeerQuestionKind::state:
      if (answer.mode == GatewayMode::away) desk_.forget(from);
      // It was asked before this one was the oldest, and may still do what that one says.
      if (asked.after == oldest()) states_[from] = answer;
      return decide();
    case PeerQuestionKind::nominate:
      // Whoever was told so serves, and says so.
      states_.erase(from);
      lane.again = clock_.now() + options_.pause;
      return;
    case PeerQuestionKind::where:
      return compared(answer);
    case PeerQuestionKind::topics:
      return listed(answer);
    case PeerQuestionKind::page:
      desk_.take(answer.events);
      cursor_ = std::max(cursor_, answer.after);
      if (step_ == Step::reading && !answer.more) {
        step_ = Step::admission;
        joined_ = clock_.now();
        desk_.join(next_token());
      } else if (step_ == Step::finishing && cursor_ >= until_) {
        step_ = Step::admission;
        check_admissions();
      }
      return;
    case PeerQuestionKind::admit:
      lane.again = clock_.now() + (admissions_.contains(from) ? options_.pause : base::Duration(0));
      return admitted(from, answer);
    case PeerQuestionKind::series:
      return copied(from, answer);
  }
}

/// Its outbox may be read yet; but it does not serve, so that nothing is told while others wait for it.
void GatewayJoining::lacks_outbox(const std::string& peer, const PeerQuestion& asked) {
  const auto since = refuse_since_.emplace(peer, clock_.now()).first->second;
  trouble_ = peer + " cannot say what it has";
  if (clock_.now() - since < options_.unreadable) return;
  const std::uint64_t before = oldest();
  // It may have decided while it had one, and have been lost before it could say that it does no more.
  promise_.end(peer);
  passed_[peer] = desk_.view().at(peer).born;
  if (oldest() != before) {
    // Whoever decides now has nobody's word yet.
    states_.clear();
  } else if (asked.kind == PeerQuestionKind::state && asked.after == before) {
    states_[peer] = PeerAnswer{};
  }
}

bool GatewayJoining::decides() const {
  const auto own = desk_.view().find(options_.name);
  return step_ == Step::looking && own != desk_.view().end() && own->second.created == oldest();
}

/// Once all were heard.
void GatewayJoining::decide() {
  if (step_ != Step::looking || desk_.born().empty()) return;
  const GatewayView& view = desk_.view();
  for (const auto& [name, state] : states_)
    if (state.mode == GatewayMode::serving) return follow(name, state.newest);
  for (const auto& [name, seen] : view)
    if (name != options_.name && !states_.contains(name)) return;
  const bool may_decide = decides() && promise_.is_free();
  if (!may_decide) nominee_.clear();
  const bool is_anybody_joining = std::any_of(states_.begin(), states_.end(), [](const auto& each) {
    return each.second.mode == GatewayMode::joining;
  });
  if (may_decide && !is_anybody_joining && desk_.peers().empty()) {
    if (!nominee_.empty()) return;
    const std::string first = best();
    if (waits_for_one_beside(first)) return;
    if (first == options_.name) return serve_first();
    nominee_ = first;
    nominee_born_ = view.at(first).born;
    return;
  }
  // Another one says who is the first; asked again after a while.
  trouble_ = "no gateway serves yet, and another one says which is the first";
  states_.clear();
  for (auto& [name, lane] : lanes_) lane.again = std::max(lane.again, clock_.now() + options_.pause);
}

std::uint64_t GatewayJoining::oldest() const {
  std::uint64_t oldest = std::numeric_limits<std::uint64_t>::max();
  for (const auto& [name, seen] : desk_.view())
    if (!passed_.contains(name)) oldest = std::min(oldest, seen.created);
  return oldest;
}

std::string GatewayJoining::best() const {
  const ServingTime& own = desk_.books().served();
  std::map<std::string, std::string> served = {{options_.name, own.token}};
  std::map<std::string, std::string> without = own.without;
  for (const auto& [name, state] : states_) {
    served[name] = state.served;
    for (const auto& [other, token] : state.without) without[other] = std::max(without[other], token);
  }
  // Counts come last: what a former owner left, and nobody has to have, is counted as well.
  std::pair<bool, std::uint64_t> most;
  std::string best;
  const auto consider = [&](const std::string& name, std::uint64_t has) {
    const std::pair here{!served[name].empty() && served[name] > without[name], has};
    if (best.empty() || most < here) {
      best = name;
      most = here;
    }
  };
  consider(options_.name, desk_.has());
  for (const auto& [name, state] : states_) consider(name, state.has);
  return best;
}

std::string GatewayJoining::next_token() const {
  std::string after = std::max(desk_.books().served().token, desk_.token());
  for (const auto& [name, state] : states_)
    if (const auto own = state.without.find(options_.name); own != state.without.end())
      after = std::max(after, own->second);
  return options_.token(after);
}

bool GatewayJoining::waits_for_one_beside(const std::string& first) {
  const auto& with = first == options_.name ? desk_.books().served().with : states_.at(first).with;
  const auto absent = std::find_if(with.begin(), with.end(),
                                   [&](const auto& each) { return !desk_.view().contains(each.first); });
  // What it has it knows of nobody: damage has taken that, and more, or it had not read all of another one's.
  const bool has_forgotten =
      first == options_.name && desk_.newest() > 0 && desk_.books().served().token.empty();
  if (absent == with.end() && !has_forgotten) {
    absent_since_.reset();
    return false;
  }
  if (!absent_since_) absent_since_ = clock_.now();
  if (clock_.now() - *absent_since_ >= options_.absence) return false;
  trouble_ = has_forgotten ? "waits for another gateway, which may have what is missing here"
                           : "waits for " + absent->first + ", which served beside " + first + " last";
  return true;
}

void GatewayJoining::serve_first() {
  desk_.join(next_token());
  desk_.serve(/*as_first=*/true);
  step_ = Step::serving;
}

void GatewayJoining::follow(const std::string& source, std::uint64_t newest) {
  const auto seen = desk_.view().find(source);
  const std::string token = states_.at(source).token;
  states_.clear();
  if (seen == desk_.view().end()) return;
  source_ = source;
  source_born_ = seen->second.born;
  source_token_ = token;
  admissions_.clear();
  topic_.clear();
  cursor_ = newest;
  for (auto& [name, lane] : lanes_) lane.asked.reset();
  // What is missing in the middle no comparison of ends would show.
  if (desk_.has_lost()) {
    step_ = Step::parted;
    return;
  }
  step_ = Step::comparing;
  next_places();
}

/// What this one has is compared, topic by topic; then the source lists those that this one has not.
void GatewayJoining::next_places() {
  places_ = desk_.books().topics_after(topic_, kJoiningPlaces);
  if (!places_.empty()) return;
  step_ = Step::listing;
  topic_.clear();
}

void GatewayJoining::compared(const PeerAnswer& answer) {
  if (step_ != Step::comparing) return;
  for (const PointAnswer& place : answer.places) {
    if (place.differs) {
      step_ = Step::parted;
      return;
    }
    if (place.next > 0) cursor_ = std::min(cursor_, place.next - 1);
  }
  topic_ = places_.back().topic;
  next_places();
}

void GatewayJoining::listed(const PeerAnswer& answer) {
  if (step_ != Step::listing) return;
  for (const PointAnswer& place : answer.places)
    if (desk_.books().last(place.topic) == 0 && place.next > 0) cursor_ = std::min(cursor_, place.next - 1);
  topic_ = answer.text;
  if (!answer.more) step_ = Step::reading;
}

void GatewayJoining::admitted(const std::string& from, const PeerAnswer& answer) {
  if (step_ != Step::admission && step_ != Step::finishing) return;
  Admission& admission = admissions_[from];
  if (admission.token != answer.token) admission = {answer.token, {}, false, {}, {}};
  admission.mode = answer.mode;
  admission.peers = answer.peers;
  inherit(answer);
  // Whoever has no token has nothing that others have not, and comes to be admitted here.
  if (answer.token.empty()) {
    admission.copied = true;
  } else if (const auto seen = desk_.view().find(from); seen != desk_.view().end()) {
    desk_.learn({from, seen->second.born, answer.token});
  }
}

void GatewayJoining::copied(const std::string& from, const PeerAnswer& answer) {
  const auto entry = admissions_.find(from);
  if (entry == admissions_.end()) return;
  Admission& admission = entry->second;
  // It began anew: whatever it said before, it does not know any more.
  if (admission.token != answer.token) {
    admissions_.erase(entry);
    return;
  }
  admission.peers = answer.peers;
  inherit(answer);
  desk_.take(answer.series, from == source_);
  admission.text = answer.text;
  admission.copied = !answer.more;
  if (from == source_ && admission.copied) until_ = answer.newest;
}

/// Whom the one that admits it went on without does not have what it gets from that one.
void GatewayJoining::inherit(const PeerAnswer& answer) {
  for (const auto& [name, token] : answer.without) desk_.go_without(name, token);
}

std::map<std::string, std::string> GatewayJoining::wanted_admissions() const {
  std::map<std::string, std::string> wanted = {{source_, source_token_}};
  for (const auto& [name, seen] : desk_.view())
    if (name != options_.name) wanted.try_emplace(name);
  for (const auto& [name, admission] : admissions_)
    for (const GatewayTenure& peer : admission.peers)
      if (peer.gateway != options_.name) wanted[peer.gateway] = peer.token;
  return wanted;
}

/// It serves once all that have to have admitted it, and it has read all.
void GatewayJoining::check_admissions() {
  if (step_ != Step::admission) return;
  for (const auto& [name, token] : wanted_admissions()) {
    missing_ = name;
    const auto admission = admissions_.find(name);
    if (admission == admissions_.end() || !admission->second.copied) return;
    if (!token.empty() && token != admission->second.token) return;
  }
  missing_.clear();
  // All that serve have each other's word. Where they have not, one of them does not know yet that it is
  // gone.
  const std::vector<GatewayTenure>& known = admissions_.at(source_).peers;
  for (const auto& [name, admission] : admissions_) {
    if (name == source_ || admission.mode != GatewayMode::serving) continue;
    if (std::ranges::find(known, name, &GatewayTenure::gateway) == known.end())
      return look_again(source_ + " does not know that " + name + " serves");
  }
  if (cursor_ < until_) {
    step_ = Step::finishing;
    return;
  }
  for (const auto& [name, admission] : admissions_)
    for (const GatewayTenure& peer : admission.peers) desk_.learn(peer);
  desk_.serve(/*as_first=*/false);
  step_ = Step::serving;
}

PeerAnswer GatewayJoining::answer(const PeerQuestion& question) {
  if (question.kind == PeerQuestionKind::nominate && question.to_born == desk_.born() &&
      !desk_.born().empty() && step_ == Step::looking && desk_.peers().empty() && promise_.is_of(question))
    serve_first();
  PeerAnswer answer = desk_.answer(question);
  if (question.kind == PeerQuestionKind::state && !answer.refused && answer.mode != GatewayMode::serving) {
    // One that was passed over does not take it back.
    const bool is_mine =
        decides() && question.after < oldest() && desk_.view().at(question.from).created == question.after;
    answer.refused = is_mine || !promise_.hear(question, desk_.view());
  }
  // It may come to serve by and by, and is nobody to begin without.
  if (step_ != Step::looking && step_ != Step::parted && answer.mode == GatewayMode::away)
    answer.mode = GatewayMode::joining;
  return answer;
}

}  // namespace vigil::fleet
