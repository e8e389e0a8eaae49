// What a store of history says when it cannot do what was asked.
#pragma once

#include <stdexcept>

namespace vigil::history {

/// The disk, the folder or the keys: one line that names what and why. What was asked has not happened.
class HistoryError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace vigil::history
