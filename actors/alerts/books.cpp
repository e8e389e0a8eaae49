#include "actors/alerts/books.h"

#include "actors/messages/data.h"

namespace vigil::actors {

// alert/TENANT/CAMERA/RULE/, topic/NAME/TENANT/CAMERA/RULE/, status/TENANT/CAMERA/, process/NAME/
std::optional<std::string> series_of(std::string_view topic) {
  if (!is_whole_topic(topic)) return std::nullopt;
  if (topic.starts_with("process/")) return std::string();
  std::size_t begin = 0;
  for (int names = topic.starts_with("topic/") ? 3 : 2; names > 0; --names)
    begin = topic.find('/', begin) + 1;
  return std::string(topic.substr(begin, topic.find('/', begin) - begin));
}

}  // namespace vigil::actors
