// A small file beside the database that says how far it had come.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "actors/alerts/outbox_records.h"
#include "base/descriptor.h"

namespace vigil::actors {

/// A file of two slots that are written in turn, so that a write that a power cut tears leaves the other one.
/// While it is open, no other process can open it. One owner at a time; not thread-safe.
class WatermarkFile {
 public:
  /// In this folder, which has to exist; the file is made if it is missing. Throws OutboxLocked if another
  /// process has it open, and OutboxError for other reasons.
  explicit WatermarkFile(const std::filesystem::path& folder);

  /// The one that was written last. Nothing if none ever was, or none can be read.
  const std::optional<Watermark>& last() const { return last_; }
  /// Something was written here, and none of it can be read.
  bool damaged() const { return damaged_; }

  /// Whether it is the file that its name finds: not if the folder was removed, moved, or is on another disk
  /// now.
  bool in_place() const;

  /// When it returns, the watermark lies on the disk; its counter is given by this. Throws OutboxError.
  void write(Watermark watermark);
  /// The same in both slots: for what must not be forgotten with one of them.
  void write_twice(const Watermark& watermark);

 private:
  [[noreturn]] void fail(const std::string& what, int error) const;
  void read();

  std::filesystem::path file_;
  base::Descriptor descriptor_;
  std::optional<Watermark> last_;
  bool damaged_ = false;
};

}  // namespace vigil::actors
