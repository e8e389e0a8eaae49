#include "fleet/wire/link_frames.h"

#include <memory>
#include <utility>
#include <vector>

#include <caf/binary_deserializer.hpp>
#include <caf/binary_serializer.hpp>

#include "actors/messages/inspect.h"

namespace vigil::fleet {
namespace {

enum class Kind : char { join = 'J', settings = 'S', patch = 'P', end = 'E' };

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
    return message(Kind::join, frame.watch, frame.generation);
  }
  cluster::BulkMessage operator()(const SettingsFrame& frame) const {
    return message(Kind::settings, frame.watch);
  }
  cluster::BulkMessage operator()(const EndFrame& frame) const { return message(Kind::end, frame.camera); }
  cluster::BulkMessage operator()(const PackedPatch& patch) const {
    cluster::BulkMessage made = message(Kind::patch, patch.form);
    made.parts.insert(made.parts.end(), patch.frames.begin(), patch.frames.end());
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
      return read_alone(message, JoinFrame{}, &JoinFrame::watch, &JoinFrame::generation);
    case Kind::settings:
      return read_alone(message, SettingsFrame{}, &SettingsFrame::watch);
    case Kind::end:
      return read_alone(message, EndFrame{}, &EndFrame::camera);
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
