#include "services/video_option.h"

#include <charconv>
#include <filesystem>
#include <system_error>

#include "base/duration.h"
#include "config/values/masked_text.h"
#include "config/values/source.h"

namespace vigil::services {

CLI::Option* add_video(CLI::App& command, std::string& video, const std::string& help) {
  return command.add_option_function<std::string>(
      "VIDEO",
      [&video](const std::string& text) {
        if (const auto fault = config::source_fault(text)) throw CLI::ValidationError("VIDEO", *fault);
        video = text;
      },
      help);
}

CLI::Option* add_moment(CLI::App& command, const std::string& name, std::optional<double>& seconds,
                        const std::string& help) {
  return command
      .add_option_function<std::string>(
          name,
          [name, &seconds](const std::string& text) {
            seconds = base::parse_moment(text);
            if (!seconds) {
              throw CLI::ValidationError(
                  name, "expected a time such as 15, 7.5, 0:15, 1:02:03 or 1m30s, not '" + text + "'");
            }
          },
          help)
      ->type_name("TIME");
}

CLI::Validator file_of_video() {
  return {[](const std::string& text) -> std::string {
            if (const auto fault = config::source_fault(text)) return *fault;
            std::error_code unknown;
            if (std::filesystem::is_regular_file(text, unknown)) return "";
            return shown_video(text) + ": no such file";
          },
          "FILE"};
}

std::optional<media::Size> parse_size(const std::string& text) {
  constexpr int kLongest = 16384;
  media::Size size;
  const char* end = text.data() + text.size();
  const auto [x, bad_width] = std::from_chars(text.data(), end, size.width);
  if (bad_width != std::errc() || x == end || *x != 'x') return std::nullopt;
  const auto [last, bad_height] = std::from_chars(x + 1, end, size.height);
  if (bad_height != std::errc() || last != end) return std::nullopt;
  const bool sane = size.width >= 1 && size.height >= 1 && size.width <= kLongest && size.height <= kLongest;
  return sane ? std::optional(size) : std::nullopt;
}

std::string mask_words(std::string text, const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (word.find("://") == word.npos && word.find('@') == word.npos) continue;
    const std::string shown = config::has_scheme(word) ? config::mask_credentials(word) : "***";
    for (std::size_t at = text.find(word); at != text.npos; at = text.find(word, at + shown.size())) {
      text.replace(at, word.size(), shown);
    }
  }
  return text;
}

std::string shown_video(const std::string& video) {
  return base::mask_source(video);
}

}  // namespace vigil::services
