#pragma once

#include <stdexcept>

namespace vigil::model {

/// A model folder that cannot be used, as one line that names the file and, where there is one, the key or
/// tensor.
class ModelError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace vigil::model
