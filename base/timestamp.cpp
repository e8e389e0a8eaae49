#include "base/timestamp.h"

#include <array>
#include <cctype>
#include <chrono>
#include <cstdio>

namespace vigil::base {
namespace {

using std::chrono::milliseconds;

/// Takes texts apart from the front; after the first thing that is not there, `failed` stays set.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  int digits(std::size_t count) {
    int value = 0;
    for (std::size_t i = 0; i < count; ++i) value = 10 * value + digit();
    return value;
  }

  void expect(char wanted) {
    if (!accept(wanted)) failed_ = true;
  }

  bool accept(char wanted) {
    if (text_.empty() || std::toupper(static_cast<unsigned char>(text_.front())) != wanted) return false;
    text_.remove_prefix(1);
    return true;
  }

  /// Of a second, after its point; digits beyond the third are dropped.
  milliseconds fraction() {
    int value = 0;
    int count = 0;
    for (; count == 0 || (!text_.empty() && std::isdigit(static_cast<unsigned char>(text_.front())) != 0);
         ++count) {
      const int next = digit();
      if (failed_) break;
      if (count < 3) value = 10 * value + next;
    }
    for (; count < 3; ++count) value *= 10;
    return milliseconds(value);
  }

  bool complete() const { return !failed_ && text_.empty(); }

 private:
  int digit() {
    if (text_.empty() || std::isdigit(static_cast<unsigned char>(text_.front())) == 0) {
      failed_ = true;
      return 0;
    }
    const int value = text_.front() - '0';
    text_.remove_prefix(1);
    return value;
  }

  std::string_view text_;
  bool failed_ = false;
};

}  // namespace

std::string format_rfc3339(Clock::WallTime time) {
  const auto instant = std::chrono::floor<milliseconds>(time);
  const auto day = std::chrono::floor<std::chrono::days>(instant);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(instant - day);
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%04d-%02u-%02uT%02d:%02d:%02d.%03dZ",
                static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                static_cast<unsigned>(date.day()), static_cast<int>(clock.hours().count()),
                static_cast<int>(clock.minutes().count()), static_cast<int>(clock.seconds().count()),
                static_cast<int>(clock.subseconds().count()));
  return text.data();
}

std::optional<Clock::WallTime> parse_rfc3339(std::string_view text) {
  Scanner scan(text);
  const std::chrono::year year(scan.digits(4));
  scan.expect('-');
  const std::chrono::month month(static_cast<unsigned>(scan.digits(2)));
  scan.expect('-');
  const std::chrono::day day(static_cast<unsigned>(scan.digits(2)));
  scan.expect('T');
  const int hour = scan.digits(2);
  scan.expect(':');
  const int minute = scan.digits(2);
  scan.expect(':');
  const int second = scan.digits(2);
  milliseconds fraction{0};
  if (scan.accept('.')) fraction = scan.fraction();
  int offset_hours = 0;
  int offset_minutes = 0;
  if (!scan.accept('Z')) {
    const bool behind = scan.accept('-');
    if (!behind) scan.expect('+');
    offset_hours = scan.digits(2);
    scan.expect(':');
    offset_minutes = scan.digits(2);
    if (offset_hours > 23 || offset_minutes > 59) return std::nullopt;
    if (behind) {
      offset_hours = -offset_hours;
      offset_minutes = -offset_minutes;
    }
  }
  const std::chrono::year_month_day date(year, month, day);
  // The clock counts nanoseconds in 64 bits.
  const bool fits = year >= std::chrono::year(1970) && year <= std::chrono::year(2261);
  if (!scan.complete() || !fits || !date.ok() || hour > 23 || minute > 59 || second > 60) return std::nullopt;
  return Clock::WallTime(std::chrono::sys_days(date)) + std::chrono::hours(hour - offset_hours) +
         std::chrono::minutes(minute - offset_minutes) + std::chrono::seconds(second) + fraction;
}

}  // namespace vigil::base
