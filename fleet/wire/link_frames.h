// What nodes send by their bulk ways, in the order in which it happens: cameras join, their settings change,
// patches or what was made of them, and cameras end.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "actors/messages/watch.h"
#include "cluster/bulk/bulk.h"
#include "fleet/wire/patch_packing.h"
#include "fleet/wire/text_packing.h"
#include "fleet/wire/token_packing.h"

namespace vigil::fleet {

/// A camera joins, in its n-th incarnation; the node that has its stream, which may be another one than that
/// which takes its patches.
struct JoinFrame {
  actors::WatchSettings watch;
  std::uint32_t generation = 0;
  std::string stream;
};

struct SettingsFrame {
  actors::WatchSettings watch;
};

/// The camera ends there where its stream is this node's; not if it has joined with another one since.
struct EndFrame {
  std::string camera;
  std::string stream;
};

/// The camera's end, which follows, is only that of this way: its stream goes on with another tower. Builds
/// that do not know this end the stream.
struct MovedFrame {
  std::string camera;
  std::string stream;
};

/// From the node that encodes a camera to the one that has its stream. It joins, in the n-th session there,
/// for its owner.
struct TokensJoinFrame {
  actors::WatchSettings watch;
  std::uint32_t session = 0;
  std::string owner;
};

/// Of builds that do not join anew with other settings.
struct TokensSettingsFrame {
  actors::WatchSettings watch;
};

struct TokensEndFrame {
  std::string camera;
  std::uint32_t session = 0;
};

/// As `MovedFrame`.
struct TokensMovedFrame {
  std::string camera;
  std::uint32_t session = 0;
};

/// From the node that has a stream to the one that goes on with a text of it: its pages follow.
struct TextFrame {
  TextForm form;
};

using LinkFrame =
    std::variant<JoinFrame, SettingsFrame, PackedPatch, MovedFrame, EndFrame, TokensJoinFrame,
                 TokensSettingsFrame, PackedTokens, TokensMovedFrame, TokensEndFrame, TextFrame, PackedPages>;

/// The header is a byte that says which of them, the first part its form; the frames of a patch, or its
/// embeddings, or pages, follow as they are.
cluster::BulkMessage write(const LinkFrame& frame);

/// Nothing for what is none of them.
std::optional<LinkFrame> read(const cluster::BulkMessage& message);

}  // namespace vigil::fleet
