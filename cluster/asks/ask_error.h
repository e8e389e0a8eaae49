// What goes wrong with the sockets by which questions and answers travel.
#pragma once

#include <stdexcept>

namespace vigil::cluster {

/// A socket that cannot be opened: one line with its endpoint and the reason.
class AskError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace vigil::cluster
