#include "fleet/dock/text_arrivals.h"

namespace vigil::fleet {

std::vector<TextArrivals::News> TextArrivals::begin(const std::string& node, TextForm form) {
  std::vector<News> news;
  if (const auto before = arriving_.find(node); before != arriving_.end()) {
    news.push_back({before->second.form.ticket, nullptr, "its pages did not come"});
    forget(node);
  }
  if (!is_sound(form)) {
    news.push_back({form.ticket, nullptr, "that is no text"});
  } else if (form.bytes() > most_ - bytes_) {
    news.push_back({form.ticket, nullptr, "too many texts are on their way"});
  } else {
    bytes_ += form.bytes();
    arriving_[node] = {std::move(form), {}, clock_.now()};
  }
  return news;
}

std::vector<TextArrivals::News> TextArrivals::take(const std::string& node, const PackedPages& packed) {
  const auto found = arriving_.find(node);
  // Of one that was refused.
  if (found == arriving_.end() || found->second.form.ticket != packed.ticket) return {};
  Arriving& arriving = found->second;
  const auto wanted = static_cast<std::size_t>(arriving.form.view.pages);
  bool fits = !packed.pages.empty() && packed.first >= 0 &&
              static_cast<std::size_t>(packed.first) == arriving.pages.size() &&
              packed.pages.size() <= wanted - arriving.pages.size();
  for (const cluster::Bytes& page : packed.pages) fits = fits && page.size() == arriving.form.page_bytes;
  std::vector<News> news;
  if (fits) {
    arriving.at = clock_.now();
    arriving.pages.insert(arriving.pages.end(), packed.pages.begin(), packed.pages.end());
    if (arriving.pages.size() < wanted) return news;
    news.push_back({packed.ticket, unpack(arriving.form, arriving.pages, clock_), ""});
  } else {
    news.push_back({packed.ticket, nullptr, "its pages do not fit"});
  }
  forget(node);
  return news;
}

std::vector<std::pair<std::string, TextArrivals::News>> TextArrivals::take_overdue() {
  std::vector<std::pair<std::string, News>> overdue;
  for (const auto& [node, arriving] : arriving_)
    if (clock_.now() >= arriving.at + kPatience)
      overdue.push_back({node, {arriving.form.ticket, nullptr, "its pages did not come in time"}});
  for (const auto& [node, news] : overdue) forget(node);
  return overdue;
}

void TextArrivals::forget(const std::string& node) {
  if (const auto gone = arriving_.extract(node)) bytes_ -= gone.mapped().form.bytes();
}

}  // namespace vigil::fleet
