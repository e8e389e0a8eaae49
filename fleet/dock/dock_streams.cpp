// The part of the dock's shell by which visual tokens that other nodes make come to this node's streams.
#include <utility>

#include "fleet/dock/dock_actor.h"

namespace vigil::fleet {

bool dock_state::attach_sender(const std::string& from, dock_actor sender) {
  // One that is started again would know nothing of what came meanwhile.
  if (!has_language || languages.empty() || languages.size() + lost_devices < devices.size()) return false;
  for (const std::string& camera : streams.come_anew(from)) book.lose(camera, deps->clock.now());
  watch(sender.address());
  senders[from] = std::move(sender);
  return true;
}

void dock_state::detach_senders(const std::string& reason) {
  for (const auto& [from, sender] : senders)
    self->send(sender, actors::tokens_atom_v, detach_atom_v, deps->node, reason);
  senders.clear();
}

template <class... Message>
void dock_state::tell_device(const std::string& device, const Message&... message) {
  if (const auto language = languages.find(device); language != languages.end())
    self->send(language->second, actors::tokens_atom_v, message...);
}
template void dock_state::tell_device(const std::string&, const actors::end_atom&, const std::string&);

template <class Message>
void dock_state::tell_sender(const std::string& camera, const Message& message) {
  const TokenStreams::Stream* const stream = streams.find(camera);
  if (stream == nullptr) return;
  if (const auto sender = senders.find(stream->from); sender != senders.end())
    self->send(sender->second, actors::tokens_atom_v, message);
}
template void dock_state::tell_sender(const std::string&, const actors::TokensRoom&);
template void dock_state::tell_sender(const std::string&, const actors::TokensAck&);

void dock_state::take(const std::string& from, TokensJoinFrame& frame) {
  const auto sender = senders.find(from);
  if (sender == senders.end()) return;
  const auto watch = std::make_shared<const actors::WatchSettings>(std::move(frame.watch));
  const std::string& camera = watch->name;
  const DockBook::Joined joined =
      book.join(from, {frame.owner, from, deps->node}, watch, frame.session, false);
  if (!joined.admitted) {
    self->send(sender->second, actors::tokens_atom_v,
               GuestRefused{camera, joined.fence,
                            "its owner is another node by now (fence " + std::to_string(joined.fence) + ')'});
    return;
  }
  if (joined.before)
    refuse(*joined.before, camera, joined.fence, "its owner is node " + frame.owner + " now");
  deps->metrics.camera_added(*watch);
  // What was encoded here is not wanted any more; its stream stays.
  if (encodings->give_up(camera)) {
    self->send(router, actors::end_atom_v, camera);
    if (const auto here = guests.extract(camera); here && here.mapped())
      self->send(here.mapped(), actors::stop_atom_v);
  }
  const TokenStreams::Join join{from, frame.session, watch};
  switch (streams.join(join)) {
    case TokenStreams::Joined::waits:
      return;
    case TokenStreams::Joined::renewed:
      return tell_device(streams.find(camera)->device, watch);
    case TokenStreams::Joined::begins:
      begin_stream(join);
  }
}

void dock_state::begin_stream(const TokenStreams::Join& join) {
  const std::string& camera = join.watch->name;
  const auto decision = routes->start(camera);
  const auto language = decision ? languages.find(decision->device) : languages.end();
  // Its senders were detached when that device went down.
  if (language == languages.end()) return;
  streams.begin(join, language->first);
  self->send(language->second, actors::tokens_atom_v, actors::join_atom_v, join.watch, join.session);
}

void dock_state::take(const std::string& from, TokensSettingsFrame& frame) {
  const auto watch = std::make_shared<const actors::WatchSettings>(std::move(frame.watch));
  if (book.renew(from, watch) == nullptr) return;
  const auto renewed = streams.renew(from, watch);
  if (!renewed) return;
  deps->metrics.camera_added(*watch);
  if (*renewed == TokenStreams::Joined::renewed) tell_device(streams.find(watch->name)->device, watch);
}

void dock_state::take(const std::string& from, PackedTokens& tokens) {
  const VisualForm& form = tokens.form;
  const std::string& camera = form.watch.camera;
  const TokenStreams::Stream* const stream = streams.find(camera);
  const bool is_its = book.brought(from, form.watch) != nullptr && stream != nullptr &&
                      stream->from == from && stream->session == form.session;
  const auto sender = senders.find(from);
  if (sender == senders.end()) return;
  const actors::TokensAck lost{camera, form.generation, form.sequence, actors::TokensOutcome::lost};
  if (!is_its) return self->send(sender->second, actors::tokens_atom_v, lost);
  if (const actors::VisualPatchPtr patch = unpack(tokens, deps->token_width, deps->clock)) {
    if (const auto language = languages.find(stream->device); language != languages.end())
      self->send(language->second, patch);
    return;
  }
  deps->logger.error("dock: ignored visual tokens of camera {} of node {} that do not fit", camera, from);
  self->send(sender->second, actors::tokens_atom_v, actors::TokensRoom{camera, form.session, 1});
  self->send(sender->second, actors::tokens_atom_v, lost);
}

void dock_state::take(const std::string& from, TokensMovedFrame& frame) {
  if (streams.leave(from, frame.session, frame.camera)) book.lose(frame.camera, deps->clock.now());
}

void dock_state::take(const std::string& from, TokensEndFrame& frame) {
  if (const auto device = streams.end(from, frame.session, frame.camera))
    tell_device(*device, actors::end_atom_v, frame.camera);
}

}  // namespace vigil::fleet
