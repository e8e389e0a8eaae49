// A machine whose memory is out, for tests. Replaces the program's operator new.
#pragma once

namespace vigil::media {

/// While it lives, `new` throws std::bad_alloc in this thread.
class NoMemory {
 public:
  NoMemory();
  ~NoMemory();
  NoMemory(const NoMemory&) = delete;
  NoMemory& operator=(const NoMemory&) = delete;
};

}  // namespace vigil::media
