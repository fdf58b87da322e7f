// A progress display on standard error: one line that is redrawn on a terminal, a line now and then
// in a log.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace perdix::terminal {

enum class ProgressStyle : std::uint8_t {
  none,      ///< nothing is shown
  log,       ///< a line every few seconds
  terminal,  ///< a bar that is redrawn ten times a second
};

/// `terminal` if standard error is one, else `otherwise`.
ProgressStyle progress_style(ProgressStyle otherwise);

/// Not thread-safe. Cheap enough to be called for every row.
class ProgressBar {
 public:
  /// `total` is what `done` will reach; 0 if that isn't known. `unit` names what is counted for the
  /// rate, "rows" say.
  ProgressBar(ProgressStyle style, std::string label, std::string unit, std::uint64_t total);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  /// `done` of the total is done, and `items` units (the same as `done` unless given).
  void update(std::uint64_t done, std::uint64_t items);
  void update(std::uint64_t done) { update(done, done); }

  /// Removes the bar from the terminal. Also done by the destructor.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;

  std::string line(std::uint64_t done, std::uint64_t items, Clock::time_point now) const;

  ProgressStyle style_;
  std::string label_;
  std::string unit_;
  std::uint64_t total_;
  std::uint32_t calls_ = 0;
  Clock::time_point begin_;
  Clock::time_point next_;
  bool drawn_ = false;
};

/// Writes to standard error. Where that can't be written nobody reads it, and nothing happens.
void tell(std::string_view text);

/// A line of text that replaces the one before, for work with more than one bar's worth of facts.
/// Empty text removes it.
void show_status(ProgressStyle style, const std::string& text);

}  // namespace perdix::terminal
