// A text on its way from the device that has asked its window to the one that goes on with it.
#pragma once

#include <cstdint>
#include <memory>

#include "engine/stream/stream_desk.h"

namespace vigil::actors {

/// Moved out of by whoever takes it. Never leaves the process: it refers to pages of the lender.
struct LentText {
  /// Keeps the pages that `loan` refers to, whoever else is gone.
  std::shared_ptr<const void> lender;
  stream::StreamDesk::Loan loan;
  /// The asker's name for it.
  std::uint64_t ticket = 0;
};

}  // namespace vigil::actors
