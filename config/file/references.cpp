#include "config/file/references.h"

#include <cerrno>
#include <fstream>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "config/file/substitute.h"
#include "config/schema/fields.h"
#include "config/values/source.h"

namespace vigil::config {
namespace {

constexpr std::size_t kLongestPassword = 4096;
constexpr std::string_view kNowhere = "unresolved://";

MaskedText put_in(const MaskedText& text, const char* key, const Environment& environment) {
  if (!has_variable(text.value)) return text;
  Substituted result = substitute(text.value, environment);
  if (!result.missing.empty())
    throw std::runtime_error(std::string(key) + ": the environment variable " + result.missing.front() +
                             " is not set");
  return std::move(result.text);
}

MaskedText credential(const MaskedText& text, const char* key, const Check& check,
                      const Environment& environment) {
  if (text.value.empty()) return text;
  const MaskedText found = put_in(text, key, environment);
  if (!check.legal(found.value))
    throw std::runtime_error(std::string(key) + ": expected " + std::string(check.expected));
  return {found.value, "***"};
}

std::string below(const std::filesystem::path& folder, const std::string& name) {
  const std::filesystem::path path(name);
  return path.is_absolute() ? name : (folder / path).lexically_normal().string();
}

MaskedText address(const MaskedText& url, const Environment& environment,
                   const std::filesystem::path& folder) {
  if (!has_variable(url.value)) return url;
  const MaskedText found = put_in(url, "url", environment);
  if (const auto fault = source_fault(found.value)) throw std::runtime_error("url: " + *fault);
  if (has_scheme(found.value)) return {found.value, mask_credentials(found.shown)};
  return {below(folder, found.value), below(folder, found.shown)};
}

}  // namespace

MaskedText password_in(const std::filesystem::path& file) {
  std::error_code error;
  const auto status = std::filesystem::status(file, error);
  const std::string name = file.string();
  if (status.type() == std::filesystem::file_type::not_found)
    throw std::runtime_error(name + ": no such file");
  if (!std::filesystem::is_regular_file(status)) throw std::runtime_error(name + ": not a regular file");
  std::ifstream stream(file, std::ios::binary);
  if (!stream) throw std::runtime_error(name + ": cannot be read: " + std::generic_category().message(errno));
  std::string text(kLongestPassword + 1, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(stream.gcount()));
  if (text.ends_with('\n')) text.pop_back();
  if (text.ends_with('\r')) text.pop_back();
  if (text.size() > kLongestPassword || !is_password(text))
    throw std::runtime_error(name + ": holds no password, which is a line of its own");
  return {std::move(text), "***"};
}

CameraSettings with_secrets(CameraSettings camera, const Environment& environment,
                            const std::filesystem::path& folder) {
  for (InputSettings& input : camera.inputs) input.url = address(input.url, environment, folder);
  camera.username = credential(camera.username, "username", kUsername, environment);
  camera.password = credential(camera.password, "password", kPassword, environment);
  if (!camera.password_file.empty()) {
    const std::string name = camera.password_file.string();
    const MaskedText file = put_in({name, name}, "password_file", environment);
    try {
      camera.password_read = password_in(below(folder, file.value));
    } catch (const std::runtime_error& fault) {
      throw std::runtime_error(std::string("password_file: ") + fault.what());
    }
  }
  return camera;
}

CameraSettings without_secrets(CameraSettings camera, const std::string& why) {
  for (InputSettings& input : camera.inputs) input.url = {std::string(kNowhere) + "camera", why};
  camera.username = camera.password = camera.password_read = {};
  return camera;
}

bool is_without_secrets(std::string_view url) {
  return url.starts_with(kNowhere);
}

}  // namespace vigil::config
