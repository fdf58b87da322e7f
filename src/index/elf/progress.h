// The caller's progress function, called by engines, which know only their own exceptions.
#pragma once

#include <exception>

#include <perdix/elf.h>

namespace perdix::detail::index::elf {

/// Calls work(progress). An exception of the caller's progress function is rethrown unchanged when
/// the work has ended.
template <class Work>
bool with_progress(const Elf::Progress& progress, const Work& work) {
  if (!progress) return work(progress);
  std::exception_ptr thrown;
  const bool done = work([&](double share) {
    try {
      return progress(share);
    } catch (...) {
      thrown = std::current_exception();
      return false;
    }
  });
  if (thrown) std::rethrow_exception(thrown);
  return done;
}

}  // namespace perdix::detail::index::elf
