// For crash tests in the instrumented build: keeps, for a range of memory, what a crash could leave
// of it. Not thread-safe.
//
// Each line has the content that is durable and the versions that it had since; a crash leaves any
// of them, independently of other lines. A flush followed by a fence makes a version durable.
#pragma once

#include <sys/mman.h>

#include <array>
#include <cstring>
#include <functional>
#include <map>
#include <new>
#include <set>
#include <vector>

#include "pm/offset.h"
#include "pm/probe.h"
#include "util/random.h"

namespace perdix::detail::alloc {

/// How an image chooses among the versions of the lines that are not durable.
enum class Loss : unsigned {
  none,        ///< the newest of all: also what the cpu_cache domain leaves
  all,         ///< the durable ones
  random,      ///< any
  mostly_old,  ///< the durable ones, but for one line
  mostly_new,  ///< the newest, but for one line
};
inline constexpr unsigned kLosses = 5;

class CrashTracker {
 public:
  /// `on_event` is called after each event of the range.
  CrashTracker(std::byte* base, std::size_t size, std::function<void()> on_event)
      : base_(base), size_(size), on_event_(std::move(on_event)) {
    void* memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    seen_ = static_cast<std::byte*>(memory);
  }
  ~CrashTracker() { ::munmap(seen_, size_); }
  CrashTracker(const CrashTracker&) = delete;
  CrashTracker& operator=(const CrashTracker&) = delete;

  bool covers(const void* p) const { return p >= base_ && p < base_ + size_; }

  void write(const void* p, std::size_t n) {
    for_each_line(p, n, [&](std::size_t line) { note_versions(line); });
    on_event_();
  }

  void flush(const void* p, std::size_t n) {
    for_each_line(p, n, [&](std::size_t line) {
      const auto it = lines_.find(line);
      if (it != lines_.end()) it->second.flushed = it->second.versions.size();
    });
    on_event_();
  }

  void fence() {
    for (auto it = lines_.begin(); it != lines_.end();) {
      Line& line = it->second;
      if (line.flushed > 0) {
        line.durable = line.versions[line.flushed - 1];
        line.versions.erase(line.versions.begin(), line.versions.begin() + line.flushed);
        line.flushed = 0;
      }
      it = line.versions.empty() ? lines_.erase(it) : std::next(it);
    }
    on_event_();
  }

  /// Makes `image`, of the same size and with `written` pages of earlier use, what a crash leaves
  /// now. Returns how many lines were not durable.
  std::size_t make_image(std::byte* image, std::set<std::size_t>& written, Loss loss,
                         util::Random& random) const {
    for (const std::size_t page : written) {
      if (!pages_.contains(page)) std::memset(image + page * kPage, 0, kPage);
    }
    for (const std::size_t page : pages_) {
      std::memcpy(image + page * kPage, base_ + page * kPage, kPage);
    }
    written = pages_;
    const std::size_t odd_one = lines_.empty() ? 0 : random.below(lines_.size());
    std::size_t i = 0;
    for (const auto& [number, line] : lines_) {
      std::size_t version =
          loss == Loss::none || loss == Loss::mostly_new ? line.versions.size() : 0;
      if (loss == Loss::random || (i == odd_one && loss != Loss::none && loss != Loss::all)) {
        version = random.below(line.versions.size() + 1);
      }
      const Content& content = version == 0 ? line.durable : line.versions[version - 1];
      std::memcpy(image + number * pm::kLineSize, content.data(), content.size());
      ++i;
    }
    return lines_.size();
  }

  /// Everything in the range is as in memory, and durable; `pages` were ever written.
  void adopt(const std::set<std::size_t>& pages) {
    lines_.clear();
    for (const std::size_t page : pages_) {
      std::memcpy(seen_ + page * kPage, base_ + page * kPage, kPage);
    }
    for (const std::size_t page : pages) {
      std::memcpy(seen_ + page * kPage, base_ + page * kPage, kPage);
    }
    pages_ = pages;
  }

  const std::set<std::size_t>& pages() const { return pages_; }

 private:
  static constexpr std::size_t kPage = 4096;
  using Content = std::array<std::byte, pm::kLineSize>;

  struct Line {
    Content durable;
    std::vector<Content> versions;
    std::size_t flushed = 0;  // versions that the next fence makes durable
  };

  template <class F>
  void for_each_line(const void* p, std::size_t n, F f) {
    const auto begin = static_cast<std::size_t>(static_cast<const std::byte*>(p) - base_);
    for (std::size_t line = begin / pm::kLineSize; line * pm::kLineSize < begin + n; ++line)
      f(line);
  }

  /// A write of several words has a version for each of its prefixes.
  void note_versions(std::size_t number) {
    Content now;
    Content before;
    std::memcpy(now.data(), base_ + number * pm::kLineSize, now.size());
    std::memcpy(before.data(), seen_ + number * pm::kLineSize, before.size());
    pages_.insert(number * pm::kLineSize / kPage);
    if (now == before) return;
    Line& line = lines_.try_emplace(number, Line{before, {}, 0}).first->second;
    for (std::size_t word = 0; word < now.size(); word += 8) {
      if (std::memcmp(before.data() + word, now.data() + word, 8) == 0) continue;
      std::memcpy(before.data() + word, now.data() + word, 8);
      line.versions.push_back(before);
    }
    std::memcpy(seen_ + number * pm::kLineSize, now.data(), now.size());
  }

  std::byte* base_;
  std::size_t size_;
  std::byte* seen_;  // the newest version of every line
  std::function<void()> on_event_;
  std::map<std::size_t, Line> lines_;  // not durable ones
  std::set<std::size_t> pages_;
};

/// Sends each event to the tracker of its memory, and fences to the one that is at work.
class TrackingProbe final : public pm::Probe {
 public:
  TrackingProbe() : previous_(pm::install_probe(this)) {
    pm::watch_reads(false);  // what a crash leaves doesn't depend on them
  }
  ~TrackingProbe() override { pm::install_probe(previous_); }  // which watches reads again

  /// While it lives, fences belong to `tracker`.
  class Scope {
   public:
    Scope(TrackingProbe& probe, CrashTracker& tracker) : probe_(probe) {
      probe_.stack_.push_back(&tracker);
    }
    ~Scope() { probe_.stack_.pop_back(); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    TrackingProbe& probe_;
  };

  void on_read(const void*, std::size_t) override {}
  void on_write(const void* p, std::size_t n) override {
    if (CrashTracker* tracker = tracker_of(p)) tracker->write(p, n);
  }
  bool on_flush(const void* p, std::size_t n, const pm::Site&) override {
    if (CrashTracker* tracker = tracker_of(p)) tracker->flush(p, n);  // what the probe was told of
    return true;
  }
  bool on_fence(const pm::Site&) override {
    if (!stack_.empty()) stack_.back()->fence();  // what the probe was told of
    return true;
  }

 private:
  CrashTracker* tracker_of(const void* p) {
    for (CrashTracker* tracker : stack_) {
      if (tracker->covers(p)) return tracker;
    }
    return nullptr;
  }

  pm::Probe* previous_;
  std::vector<CrashTracker*> stack_;
};

}  // namespace perdix::detail::alloc
