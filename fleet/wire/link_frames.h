// What a link sends by its bulk way, in the order in which it happens: cameras join, their settings change,
// patches, and cameras end.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "actors/messages/watch.h"
#include "cluster/bulk/bulk.h"
#include "fleet/wire/patch_packing.h"

namespace vigil::fleet {

/// A camera joins, in its n-th incarnation.
struct JoinFrame {
  actors::WatchSettings watch;
  std::uint32_t generation = 0;
};

struct SettingsFrame {
  actors::WatchSettings watch;
};

struct EndFrame {
  std::string camera;
};

using LinkFrame = std::variant<JoinFrame, SettingsFrame, PackedPatch, EndFrame>;

/// The header is a byte that says which of them, the first part its form; the frames of a patch follow as
/// they are.
cluster::BulkMessage write(const LinkFrame& frame);

/// Nothing for what is none of them.
std::optional<LinkFrame> read(const cluster::BulkMessage& message);

}  // namespace vigil::fleet
