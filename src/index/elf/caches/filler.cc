#include "index/elf/caches/filler.h"

#include <exception>
#include <utility>

#include "util/signals.h"

namespace perdix::detail::index::elf {

void Filler::start(Work work) {
  stop();
  running_.store(true, std::memory_order_relaxed);
  try {
    thread_ = std::jthread([this, work = std::move(work)](const std::stop_token& stop) {
      util::block_signals();
      try {
        work(stop);
      } catch (const std::exception&) {  // as said
      }
      end();
    });
  } catch (const std::exception&) {  // as said
    end();
  }
}

void Filler::stop() { thread_ = {}; }

void Filler::end() {
  running_.store(false, std::memory_order_release);
  running_.notify_all();
}

}  // namespace perdix::detail::index::elf
