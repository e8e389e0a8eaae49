#include "engine/kv/history/erasure_file.h"

#include <cerrno>
#include <fstream>
#include <sstream>

#include "base/durable.h"
#include "engine/kv/history/byte_codec.h"
#include "engine/kv/history/record.h"

namespace vigil::history {
namespace {

constexpr std::uint8_t kErasureVersion = 1;

std::string_view sum_text(const Tag& tag) {
  return {reinterpret_cast<const char*>(tag.data()), tag.size()};
}

}  // namespace

std::string encode_erasure(const Erasure& erasure) {
  std::string bytes;
  ByteWriter writer(bytes);
  writer.fixed(kErasureVersion);
  writer.fixed(static_cast<std::uint8_t>(erasure.finished ? 1 : 0));
  writer.fixed(erasure.id);
  writer.fixed(static_cast<std::uint64_t>(erasure.wall.from));
  writer.fixed(static_cast<std::uint64_t>(erasure.wall.to));
  writer.text(encode(erasure.camera));
  return bytes;
}

std::optional<Erasure> decode_erasure(std::string_view bytes) {
  ByteReader reader(bytes);
  const auto version = reader.fixed<std::uint8_t>();
  const auto finished = reader.fixed<std::uint8_t>();
  Erasure erasure;
  erasure.finished = finished == 1;
  erasure.id = reader.fixed<std::uint64_t>();
  erasure.wall.from = static_cast<std::int64_t>(reader.fixed<std::uint64_t>());
  erasure.wall.to = static_cast<std::int64_t>(reader.fixed<std::uint64_t>());
  auto camera = decode_camera(reader.text(reader.left()));
  if (reader.failed() || version != kErasureVersion || finished > 1 || !camera) return std::nullopt;
  erasure.camera = std::move(*camera);
  return erasure;
}

std::string encode_erasures(const Erasures& erasures) {
  std::string bytes;
  ByteWriter writer(bytes);
  writer.number(erasures.next);
  for (const auto& [id, erasure] : erasures.by_id) {
    const std::string each = encode_erasure(erasure);
    writer.number(each.size());
    writer.text(each);
  }
  return bytes.append(sum_text(sum_of(bytes)));
}

std::optional<Erasures> decode_erasures(std::string_view bytes) {
  if (bytes.size() < kTagBytes) return std::nullopt;
  const std::string_view content = bytes.substr(0, bytes.size() - kTagBytes);
  if (sum_text(sum_of(content)) != bytes.substr(content.size())) return std::nullopt;
  ByteReader reader(content);
  Erasures result;
  result.next = reader.number();
  while (reader.left() > 0) {
    auto erasure = decode_erasure(reader.text(reader.number()));
    if (!erasure) return std::nullopt;
    const std::uint64_t id = erasure->id;
    result.by_id.insert_or_assign(id, std::move(*erasure));
  }
  if (!reader.done()) return std::nullopt;
  return result;
}

std::optional<Erasures> read_erasures(const std::filesystem::path& file) {
  std::error_code error;
  if (!std::filesystem::exists(file, error)) {
    if (error) throw base::FileError(file, "cannot read", error.value());
    return Erasures();
  }
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  if (!stream) return std::nullopt;
  return decode_erasures(text.str());
}

void write_erasures(const std::filesystem::path& file, const Erasures& erasures) {
  base::NewFile next(file);
  next.write(encode_erasures(erasures));
  next.commit();
}

}  // namespace vigil::history
