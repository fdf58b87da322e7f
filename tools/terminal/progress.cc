#include "terminal/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include <fmt/format.h>

#include "terminal/format.h"

namespace perdix::terminal {
namespace {

constexpr auto kRedraw = std::chrono::milliseconds(100);
constexpr auto kLogEvery = std::chrono::seconds(5);
constexpr std::uint32_t kCallsPerLook = 64;  // calls between two readings of the clock
constexpr int kBarWidth = 24;

std::string bar(double share) {
  const int full = static_cast<int>(share * kBarWidth);
  return fmt::format("[{:#<{}}{:.<{}}]", "", full, "", kBarWidth - full);
}

std::string duration(double seconds) {
  const auto whole = static_cast<std::uint64_t>(seconds + 0.5);
  return whole < 3600 ? fmt::format("{}:{:02}", whole / 60, whole % 60)
                      : fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

}  // namespace

ProgressStyle progress_style(ProgressStyle otherwise) {
  return ::isatty(STDERR_FILENO) == 1 ? ProgressStyle::terminal : otherwise;
}

ProgressBar::ProgressBar(ProgressStyle style, std::string label, std::string unit,
                         std::uint64_t total)
    : style_(style),
      label_(std::move(label)),
      unit_(std::move(unit)),
      total_(total),
      begin_(Clock::now()),
      next_(begin_ + (style == ProgressStyle::log ? Clock::duration(kLogEvery)
                                                  : Clock::duration(kRedraw))) {}

ProgressBar::~ProgressBar() { clear(); }

void ProgressBar::update(std::uint64_t done, std::uint64_t items) {
  if (style_ == ProgressStyle::none || ++calls_ % kCallsPerLook != 0) return;
  const Clock::time_point now = Clock::now();
  if (now < next_) return;
  if (style_ == ProgressStyle::terminal) {
    next_ = now + kRedraw;
    drawn_ = true;
    tell(fmt::format("\r{}\x1b[K", line(done, items, now)));
  } else {
    next_ = now + kLogEvery;
    tell(line(done, items, now) + "\n");
  }
}

void ProgressBar::clear() {
  if (drawn_) show_status(style_, "");
  drawn_ = false;
}

std::string ProgressBar::line(std::uint64_t done, std::uint64_t items,
                              Clock::time_point now) const {
  const double seconds = std::max(std::chrono::duration<double>(now - begin_).count(), 1e-3);
  const std::string rate = fmt::format("{} {}, {}/s", format_count(items), unit_,
                                       format_count(static_cast<std::uint64_t>(items / seconds)));
  if (total_ == 0) return fmt::format("{}  {}", label_, rate);
  const double share = std::min(1.0, static_cast<double>(done) / static_cast<double>(total_));
  const std::string left = share > 0 ? duration(seconds / share * (1 - share)) : "?";
  return fmt::format("{} {} {:3.0f} %  {}  {} left", label_, bar(share), share * 100, rate, left);
}

void show_status(ProgressStyle style, const std::string& text) {
  if (style == ProgressStyle::none) return;
  if (style == ProgressStyle::terminal) {
    tell(fmt::format("\r{}\x1b[K", text));
  } else if (!text.empty()) {
    tell(text + "\n");
  }
}

void tell(std::string_view text) {
  (void)!std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

}  // namespace perdix::terminal
