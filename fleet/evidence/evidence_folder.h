// Stills and clips on this node's disk, as others may read them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace vigil::fleet {

/// Whether this is a name as events have it (`data.evidence.clip`): CAMERA/DATE/TIME-RULE-EPISODE.mp4, three
/// plain names, the last one with an extension that evidence has. Nothing else is looked for on any disk.
bool is_evidence_name(std::string_view name);
/// Of such a name.
std::string_view content_type_of(std::string_view name);

/// Reads files that `actors::EvidenceStore` has written, beside it. A name leads to nothing outside of the
/// folder: no part of it may be a link. Thread-safe.
class EvidenceFolder {
 public:
  /// Without a folder there is nothing.
  explicit EvidenceFolder(std::filesystem::path dir = {}) : dir_(std::move(dir)) {}

  /// Bytes of a file; nothing: there is none, or it cannot be read.
  std::optional<std::uint64_t> size(const std::string& name) const;
  /// So many bytes from there on, fewer at the file's end; nothing as above.
  std::optional<std::string> read(const std::string& name, std::uint64_t offset, std::size_t bytes) const;

 private:
  const std::filesystem::path dir_;
};

}  // namespace vigil::fleet
