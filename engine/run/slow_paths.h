// What computes slower than it might: for whoever runs an engine, and knows no kernels.
#pragma once

#include "kernels/device/slow_path.h"

namespace vigil::run {

using kernels::set_slow_path_listener;
using kernels::SlowPathListener;

}  // namespace vigil::run
