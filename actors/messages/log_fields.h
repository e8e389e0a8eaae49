// What a line of the log is about, for programs that read it: fields beside the message.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "actors/messages/watch.h"

namespace vigil::actors {

/// While it lives, lines that its thread logs are about this: whoever formats them may ask for the fields.
/// The message itself stays as it is. The latest that lives counts.
class LogFields {
 public:
  using Fields = std::vector<std::pair<std::string, std::string>>;

  explicit LogFields(Fields fields) : fields_(std::move(fields)), before_(latest()) { latest() = this; }
  /// The camera and its tenant.
  explicit LogFields(const WatchSettings& watch)
      : LogFields(Fields{{"camera", watch.name}, {"tenant", watch.tenant}}) {}
  ~LogFields() { latest() = before_; }
  LogFields(const LogFields&) = delete;
  LogFields& operator=(const LogFields&) = delete;

  /// Of the calling thread.
  static const Fields& current() {
    static const Fields none;
    return latest() == nullptr ? none : latest()->fields_;
  }

 private:
  static const LogFields*& latest() {
    thread_local const LogFields* fields = nullptr;
    return fields;
  }

  Fields fields_;
  const LogFields* before_;
};

}  // namespace vigil::actors
