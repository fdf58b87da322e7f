#include "testing/meter/meter.h"

#include <cassert>
#include <string_view>

namespace perdix::testing {

Traffic Meter::traffic(Kind kind) const {
  const std::lock_guard lock(mutex_);
  return kind < counts_.size() ? counts_[kind] : Traffic();
}

void Meter::reset() {
  const std::lock_guard lock(mutex_);
  counts_.clear();
}

void Meter::begin(Kind kind) {
  const std::lock_guard lock(mutex_);
  Context& current = context();
  assert(current.kind == kOutside && kind != kOutside);
  current.kind = kind;
  ++counts(kind).operations;
}

void Meter::end() {
  const std::lock_guard lock(mutex_);
  Context& current = context();
  if (options_.dram_lines_per_operation > 0) {
    const DeviceTraffic before = model_.traffic();
    model_.pollute(options_.dram_lines_per_operation);
    counts(current.kind).device += model_.traffic() - before;
  }
  current.kind = kOutside;
  current.read.clear();
  current.written.clear();
}

// References to the elements of an unordered_map stay valid.
Meter::Context& Meter::context() {
  const std::thread::id thread = std::this_thread::get_id();
  if (last_context_ == nullptr || thread != last_thread_) {
    last_context_ = &contexts_[thread];
    last_thread_ = thread;
  }
  return *last_context_;
}

Traffic& Meter::counts(Kind kind) {
  if (kind >= counts_.size()) counts_.resize(kind + 1);
  return counts_[kind];
}

template <class Act>
void Meter::each_line(const Context& context, const void* p, std::size_t n, const Act& act) {
  if (n == 0) return;
  const auto begin = reinterpret_cast<std::uintptr_t>(p);
  Traffic& traffic = counts(context.kind);
  const DeviceTraffic before = model_.traffic();
  for (std::uintptr_t address = begin & ~(kLineBytes - 1); address < begin + n;
       address += kLineBytes) {
    act(traffic, lines_.line_of(address));
  }
  traffic.device += model_.traffic() - before;
}

void Meter::on_read(const void* p, std::size_t n) {
  const std::lock_guard lock(mutex_);
  Context& current = context();
  each_line(current, p, n, [&](Traffic& traffic, std::uint64_t line) {
    traffic.lines_read += current.kind == kOutside || current.read.insert(line);
    model_.load(line);
  });
}

void Meter::on_write(const void* p, std::size_t n) {
  const std::lock_guard lock(mutex_);
  Context& current = context();
  each_line(current, p, n, [&](Traffic& traffic, std::uint64_t line) {
    traffic.lines_written += current.kind == kOutside || current.written.insert(line);
    model_.store(line);
  });
}

void Meter::on_stream(const void* p, std::size_t n) {
  const std::lock_guard lock(mutex_);
  Context& current = context();
  each_line(current, p, n, [&](Traffic& traffic, std::uint64_t line) {
    traffic.lines_written += current.kind == kOutside || current.written.insert(line);
    model_.stream(line);
  });
}

bool Meter::on_flush(const void* p, std::size_t n, const detail::pm::Site&) {
  const std::lock_guard lock(mutex_);
  each_line(context(), p, n, [&](Traffic& traffic, std::uint64_t line) {
    ++traffic.flushes;
    model_.flush(line);  // the model decides what it writes
  });
  return true;
}

bool Meter::on_fence(const detail::pm::Site&) {
  const std::lock_guard lock(mutex_);
  ++counts(context().kind).fences;
  return true;
}

std::uint64_t Meter::on_limit(const char* name, std::uint64_t limit) {
  const bool of_records = std::string_view(name) == "wal: records are written";
  return of_records && !options_.log_records ? 0 : limit;
}

}  // namespace perdix::testing
