#include "engine/kv/history/store_format.h"

#include "base/sealed_text.h"
#include "engine/kv/history/history_error.h"

namespace vigil::history {
namespace {

/// Of layout 1, numbers of pages were made of those of pages and forms in another way
/// (engine/memory/memory.h).
constexpr std::string_view kLayout = "vigil history 3\n";
/// Without notes in the index; all else is the same.
constexpr std::string_view kOlder = "vigil history 2\n";
constexpr std::string_view kLayouts = "vigil history ";
constexpr std::string_view kPlain = "encryption none\n";
constexpr std::string_view kEncrypted = "encryption aes-256-gcm ";
constexpr std::string_view kCheck = "vigil history master key";
constexpr std::string_view kDigits = "0123456789abcdef";

std::string in_digits(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) {
    text.push_back(kDigits[static_cast<unsigned char>(byte) >> 4U]);
    text.push_back(kDigits[static_cast<unsigned char>(byte) & 0xFU]);
  }
  return text;
}

std::string of_digits(std::string_view text) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    const std::size_t high = kDigits.find(text[i]);
    const std::size_t low = kDigits.find(text[i + 1]);
    if (high == kDigits.npos || low == kDigits.npos) return {};
    bytes.push_back(static_cast<char>(high << 4U | low));
  }
  return bytes;
}

}  // namespace

std::string new_format(const std::optional<SecretKey>& master) {
  std::string lines(kLayout);
  if (master) {
    lines += kEncrypted;
    lines += in_digits(wrap(SecretKey::random(), *master, kCheck));
    lines += '\n';
  } else {
    lines += kPlain;
  }
  return base::sealed(lines);
}

bool is_format(std::string_view text) {
  const auto lines = base::unsealed(text);
  return lines && lines->starts_with(kLayouts);
}

std::string of_newest_layout(const std::string& text) {
  const auto lines = base::unsealed(text);
  if (!lines || !lines->starts_with(kOlder)) return text;
  return base::sealed(std::string(kLayout).append(lines->substr(kOlder.size())));
}

void check_format(std::string_view text, const std::optional<SecretKey>& master, const std::string& name) {
  const std::string_view lines = base::unsealed(text).value_or(std::string_view());
  static_assert(kOlder.size() == kLayout.size());
  if (!lines.starts_with(kLayout) && !lines.starts_with(kOlder)) {
    throw HistoryError(name + ": has another layout than this program knows (" +
                       std::string(kLayout.substr(0, kLayout.size() - 1)) + ")");
  }
  std::string_view encryption = lines.substr(kLayout.size());
  if (encryption == kPlain) {
    if (master) {
      throw HistoryError(name + ": was begun without encryption; with a key, history begins in a new folder");
    }
    return;
  }
  if (!encryption.starts_with(kEncrypted)) throw HistoryError(name + ": is encrypted in an unknown way");
  if (!master) throw HistoryError(name + ": is encrypted, and no key file is named");
  encryption.remove_prefix(kEncrypted.size());
  if (encryption.ends_with('\n')) encryption.remove_suffix(1);
  if (!unwrap(of_digits(encryption), *master, kCheck))
    throw HistoryError(name + ": was encrypted by another master key than the one of the key file");
}

}  // namespace vigil::history
