// A patch on its way to another node: what was chosen of its pictures, and no pixel more.
#pragma once

#include <memory>
#include <optional>

#include "actors/messages/data.h"
#include "actors/messages/wire.h"
#include "base/clock.h"
#include "cluster/bulk/bulk.h"

namespace vigil::fleet {

/// A patch that was taken apart: its form, and a part of bytes for each of its frames. Of one of which all
/// goes along, a part is its image's own bytes (RGB, 8 bits, in rows), kept by whoever holds it; of another,
/// those of its groups one behind the other, ascending, each in rows: [groups, side, side, 3].
struct PackedPatch {
  actors::PatchForm form;
  std::vector<cluster::Bytes> frames;
};

/// `side`: of a group, in pixels. Of a patch that is audited all goes along, otherwise what is encoded.
PackedPatch pack(const actors::FramePatch& patch, int side, const base::Clock& clock);

/// Null if the bytes are not those of the form.
actors::FramePatchPtr unpack(const PackedPatch& packed, int side, const base::Clock& clock);

}  // namespace vigil::fleet
