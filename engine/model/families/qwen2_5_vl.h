// Qwen2.5-VL.
#pragma once

#include "engine/model/families/family.h"

namespace vigil::model {

/// Its configuration lies in `text_config`, as transformers 5 writes it, or at the top level, as transformers
/// 4 did.
extern const Family kQwen25Vl;

}  // namespace vigil::model
