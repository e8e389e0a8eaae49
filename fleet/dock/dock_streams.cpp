// The part of the dock's shell by which visual tokens that other nodes make come to this node's streams.
#include <utility>

#include "fleet/dock/dock_actor.h"

namespace vigil::fleet {

bool dock_state::attach_sender(const std::string& from, dock_actor sender) {
  // One that is started again would know nothing of what came meanwhile.
  if (!has_language || languages.empty() || languages.size() + lost_devices < devices.size()) return false;
  for (auto& [camera, stream] : streams) {
    if (stream.next && stream.next->from == from) stream.next.reset();
    if (stream.from != from) continue;
    book.lose(camera, deps->clock.now());
    // Its sessions are counted anew.
    stream.session = 0;
  }
  watch(sender.address());
  senders[from] = std::move(sender);
  return true;
}

void dock_state::detach_senders(const std::string& reason) {
  for (const auto& [from, sender] : senders)
    self->send(sender, actors::tokens_atom_v, detach_atom_v, deps->node, reason);
  senders.clear();
  // What was on its way out never comes, and all others join anew.
  std::erase_if(streams, [](const auto& stream) { return stream.second.ends; });
}

template <class Message>
void dock_state::tell_sender(const std::string& camera, const Message& message) {
  const auto stream = streams.find(camera);
  if (stream == streams.end()) return;
  if (const auto sender = senders.find(stream->second.from); sender != senders.end())
    self->send(sender->second, actors::tokens_atom_v, message);
}
template void dock_state::tell_sender(const std::string&, const actors::TokensRoom&);
template void dock_state::tell_sender(const std::string&, const actors::TokensAck&);

void dock_state::take(const std::string& from, TokensJoinFrame& frame) {
  const auto sender = senders.find(from);
  if (sender == senders.end()) return;
  const std::string camera = frame.watch.name;
  const DockBook::Joined joined =
      book.join(from, {frame.owner, from, deps->node}, frame.watch, frame.session);
  if (!joined.admitted) {
    self->send(sender->second, actors::tokens_atom_v,
               GuestRefused{camera, joined.fence,
                            "its owner is another node by now (fence " + std::to_string(joined.fence) + ')'});
    return;
  }
  if (joined.before)
    refuse(*joined.before, camera, joined.fence, "its owner is node " + frame.owner + " now");
  const auto watch = std::make_shared<const actors::WatchSettings>(std::move(frame.watch));
  deps->metrics.camera_added(*watch);
  // What was encoded here is not wanted any more; its stream stays.
  if (encoded_for.erase(camera) > 0) {
    held.erase(camera);
    self->send(router, actors::end_atom_v, camera);
    if (const auto here = guests.extract(camera); here && here.mapped())
      self->send(here.mapped(), actors::stop_atom_v);
  }
  const auto here = streams.find(camera);
  if (here != streams.end() && here->second.ends) {
    here->second.next = TokensJoin{from, frame.session, watch};
    return;
  }
  if (here != streams.end() && here->second.from == from && here->second.session == frame.session) {
    self->send(here->second.device, actors::tokens_atom_v, watch);
    return;
  }
  begin_stream({from, frame.session, watch});
}

void dock_state::begin_stream(const TokensJoin& join) {
  const std::string& camera = join.watch->name;
  const auto decision = routes->start(camera);
  const auto language = decision ? languages.find(decision->device) : languages.end();
  // Its senders were detached when that device went down.
  if (language == languages.end()) return;
  streams[camera] = {join.from, join.session, language->second};
  self->send(language->second, actors::tokens_atom_v, actors::join_atom_v, join.watch, join.session);
}

void dock_state::take(const std::string& from, TokensSettingsFrame& frame) {
  const DockBook::Guest* const guest = book.renew(from, frame.watch.ref());
  const auto stream = streams.find(frame.watch.name);
  if (guest == nullptr || stream == streams.end()) return;
  std::optional<TokensJoin>& next = stream->second.next;
  if ((next ? next->from : stream->second.from) != from) return;
  const auto watch = std::make_shared<const actors::WatchSettings>(std::move(frame.watch));
  deps->metrics.camera_added(*watch);
  if (next) {
    next->watch = watch;
    return;
  }
  self->send(stream->second.device, actors::tokens_atom_v, watch);
}

void dock_state::take(const std::string& from, PackedTokens& tokens) {
  const VisualForm& form = tokens.form;
  const std::string& camera = form.watch.camera;
  const auto stream = streams.find(camera);
  const bool is_its = book.brought(from, form.watch) != nullptr && stream != streams.end() &&
                      stream->second.from == from && stream->second.session == form.session;
  const auto sender = senders.find(from);
  if (sender == senders.end()) return;
  const actors::TokensAck lost{camera, form.generation, form.sequence, actors::TokensOutcome::lost};
  if (!is_its) return self->send(sender->second, actors::tokens_atom_v, lost);
  if (const actors::VisualPatchPtr patch = unpack(tokens, deps->token_width, deps->clock)) {
    self->send(stream->second.device, patch);
    return;
  }
  deps->logger.error("dock: ignored visual tokens of camera {} of node {} that do not fit", camera, from);
  self->send(sender->second, actors::tokens_atom_v, actors::TokensRoom{camera, form.session, 1});
  self->send(sender->second, actors::tokens_atom_v, lost);
}

void dock_state::take(const std::string& from, TokensEndFrame& frame) {
  const auto found = streams.find(frame.camera);
  if (found == streams.end()) return;
  Stream& stream = found->second;
  const auto is_its = [&](const auto& each) { return each.from == from && each.session == frame.session; };
  if (stream.next && is_its(*stream.next)) return stream.next.reset();
  if (stream.ends || !is_its(stream)) return;
  stream.ends = true;
  self->send(stream.device, actors::tokens_atom_v, actors::end_atom_v, frame.camera);
}

}  // namespace vigil::fleet
