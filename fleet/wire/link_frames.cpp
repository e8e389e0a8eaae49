#include "fleet/wire/link_frames.h"

#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include <caf/binary_deserializer.hpp>
#include <caf/binary_serializer.hpp>

#include "actors/messages/inspect.h"

// CAF looks for these beside the types.
namespace vigil::kv {

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, CarriedView::Part& x) {
  return f(caf::meta::type_name("Part"), x.page, x.begin, x.end, x.fills);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, CarriedView& x) {
  return f(caf::meta::type_name("View"), x.pages, x.parts);
}

}  // namespace vigil::kv

namespace vigil::fleet {

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, TokensForm& x) {
  return f(caf::meta::type_name("Tokens"), x.is_half, x.width, x.kept, x.has_standing_out, x.standing_out,
           x.seconds, x.duration, x.is_intra, x.encoded, actors::is_so([&x] {
             return std::isfinite(x.seconds) && std::isfinite(x.duration) && x.duration >= 0;
           }));
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, VisualForm& x) {
  return f(caf::meta::type_name("VisualPatch"), x.watch, x.generation, x.sequence, x.session, x.frames,
           x.captured, x.encoded, x.is_audited, x.audit, x.tokens, x.has_whole,
           actors::at_most(x.has_whole, WholeTokens::own), x.whole, x.sum,
           actors::is_so([&x] { return std::isfinite(x.audit); }));
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, TextForm& x) {
  stream::CarriedText& text = x.text;
  model::Sampling& how = text.sampling;
  return f(caf::meta::type_name("Text"), x.ticket, x.watch, x.is_far, x.pages_form, x.page_bytes, x.due,
           x.left, x.view, text.seen, text.max_tokens, how.temperature, how.top_k, how.top_p,
           how.repetition_penalty, how.seed, how.stop, text.tokens, text.position.t, text.position.h,
           text.position.w, text.probability_yes, text.prompt_tokens, text.shared_tokens,
           actors::is_so([&text] {
             const model::Sampling& read = text.sampling;
             return std::isfinite(read.temperature) && std::isfinite(read.top_p) &&
                    std::isfinite(read.repetition_penalty) && std::isfinite(text.probability_yes);
           }));
}

namespace {

enum class Kind : char {
  join = 'J',
  settings = 'S',
  patch = 'P',
  moved = 'M',
  end = 'E',
  tokens_join = 'j',
  tokens_settings = 's',
  tokens = 't',
  tokens_moved = 'm',
  tokens_end = 'e',
  text = 'T',
  pages = 'p',
};

template <class... Fields>
cluster::BulkMessage message(Kind kind, const Fields&... fields) {
  auto form = std::make_shared<std::vector<char>>();
  caf::binary_serializer sink(nullptr, *form);
  // Writing to memory does not fail.
  static_cast<void>(sink(const_cast<Fields&>(fields)...));
  const auto* bytes = reinterpret_cast<const std::byte*>(form->data());
  return {std::string(1, static_cast<char>(kind)), {cluster::Bytes({form, bytes}, form->size())}};
}

/// Whether the form holds just these.
template <class... Fields>
bool read_form(const cluster::Bytes& form, Fields&... fields) {
  caf::binary_deserializer source(nullptr, reinterpret_cast<const char*>(form.data()), form.size());
  return !source(fields...) && source.remaining() == 0;
}

template <class Frame, class... Fields>
std::optional<LinkFrame> read_alone(const cluster::BulkMessage& message, Frame frame,
                                    Fields Frame::*... fields) {
  if (message.parts.size() != 1 || !read_form(message.parts[0], frame.*fields...)) return std::nullopt;
  return LinkFrame(std::move(frame));
}

struct Writer {
  cluster::BulkMessage operator()(const JoinFrame& frame) const {
    return message(Kind::join, frame.watch, frame.generation, frame.stream);
  }
  cluster::BulkMessage operator()(const SettingsFrame& frame) const {
    return message(Kind::settings, frame.watch);
  }
  cluster::BulkMessage operator()(const MovedFrame& frame) const {
    return message(Kind::moved, frame.camera, frame.stream);
  }
  cluster::BulkMessage operator()(const EndFrame& frame) const {
    return message(Kind::end, frame.camera, frame.stream);
  }
  cluster::BulkMessage operator()(const PackedPatch& patch) const {
    cluster::BulkMessage made = message(Kind::patch, patch.form);
    made.parts.insert(made.parts.end(), patch.frames.begin(), patch.frames.end());
    return made;
  }
  cluster::BulkMessage operator()(const TokensJoinFrame& frame) const {
    return message(Kind::tokens_join, frame.watch, frame.session, frame.owner);
  }
  cluster::BulkMessage operator()(const TokensSettingsFrame& frame) const {
    return message(Kind::tokens_settings, frame.watch);
  }
  cluster::BulkMessage operator()(const PackedTokens& tokens) const {
    cluster::BulkMessage made = message(Kind::tokens, tokens.form);
    made.parts.insert(made.parts.end(), tokens.embeddings.begin(), tokens.embeddings.end());
    return made;
  }
  cluster::BulkMessage operator()(const TokensMovedFrame& frame) const {
    return message(Kind::tokens_moved, frame.camera, frame.session);
  }
  cluster::BulkMessage operator()(const TokensEndFrame& frame) const {
    return message(Kind::tokens_end, frame.camera, frame.session);
  }
  cluster::BulkMessage operator()(const TextFrame& frame) const { return message(Kind::text, frame.form); }
  cluster::BulkMessage operator()(const PackedPages& packed) const {
    cluster::BulkMessage made = message(Kind::pages, packed.ticket, packed.first);
    made.parts.insert(made.parts.end(), packed.pages.begin(), packed.pages.end());
    return made;
  }
};

}  // namespace

cluster::BulkMessage write(const LinkFrame& frame) {
  return std::visit(Writer{}, frame);
}

std::optional<LinkFrame> read(const cluster::BulkMessage& message) {
  if (message.header.size() != 1 || message.parts.empty()) return std::nullopt;
  switch (static_cast<Kind>(message.header[0])) {
    case Kind::join:
      return read_alone(message, JoinFrame{}, &JoinFrame::watch, &JoinFrame::generation, &JoinFrame::stream);
    case Kind::settings:
      return read_alone(message, SettingsFrame{}, &SettingsFrame::watch);
    case Kind::moved:
      return read_alone(message, MovedFrame{}, &MovedFrame::camera, &MovedFrame::stream);
    case Kind::end:
      return read_alone(message, EndFrame{}, &EndFrame::camera, &EndFrame::stream);
    case Kind::tokens_join:
      return read_alone(message, TokensJoinFrame{}, &TokensJoinFrame::watch, &TokensJoinFrame::session,
                        &TokensJoinFrame::owner);
    case Kind::tokens_settings:
      return read_alone(message, TokensSettingsFrame{}, &TokensSettingsFrame::watch);
    case Kind::tokens_moved:
      return read_alone(message, TokensMovedFrame{}, &TokensMovedFrame::camera, &TokensMovedFrame::session);
    case Kind::tokens_end:
      return read_alone(message, TokensEndFrame{}, &TokensEndFrame::camera, &TokensEndFrame::session);
    case Kind::text:
      return read_alone(message, TextFrame{}, &TextFrame::form);
    case Kind::pages: {
      PackedPages packed;
      if (!read_form(message.parts[0], packed.ticket, packed.first)) return std::nullopt;
      packed.pages.assign(message.parts.begin() + 1, message.parts.end());
      return LinkFrame(std::move(packed));
    }
    case Kind::tokens: {
      PackedTokens tokens;
      if (!read_form(message.parts[0], tokens.form)) return std::nullopt;
      tokens.embeddings.assign(message.parts.begin() + 1, message.parts.end());
      return LinkFrame(std::move(tokens));
    }
    case Kind::patch: {
      PackedPatch patch;
      if (!read_form(message.parts[0], patch.form)) return std::nullopt;
      patch.frames.assign(message.parts.begin() + 1, message.parts.end());
      return LinkFrame(std::move(patch));
    }
  }
  return std::nullopt;
}

}  // namespace vigil::fleet
