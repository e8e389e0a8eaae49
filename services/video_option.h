// Videos as the command line names them, and moments of them.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "media/media.h"

namespace vigil::services {

/// Of what is no file, as of cameras: nobody waits for ever.
inline constexpr std::chrono::seconds kOpenTimeout{10};
inline constexpr std::chrono::seconds kReadTimeout{30};
inline constexpr std::chrono::minutes kFrameTimeout{3};

/// Adds "VIDEO" to a command: a text that can be a file, a URL or a device. What is said of another does not
/// show it.
CLI::Option* add_video(CLI::App& command, std::string& video, const std::string& help);

/// Adds an option whose value is a moment of a video: "15", "0:15", "90s".
CLI::Option* add_moment(CLI::App& command, const std::string& name, std::optional<double>& seconds,
                        const std::string& help);

/// A check of a video that has to be a file which is there.
CLI::Validator file_of_video();

/// "224x224"; nothing for what is no size of a picture, of at most 16384 pixels an edge.
std::optional<media::Size> parse_size(const std::string& text);

/// `text` with those of the words in it that may hold secrets replaced by what may be shown of them.
std::string mask_words(std::string text, const std::vector<std::string>& words);

/// What a video is called in messages and in what is printed: its text, secrets masked.
std::string shown_video(const std::string& video);

}  // namespace vigil::services
