#include "index/elf/caches/explain.h"

#include <algorithm>

#include "index/elf/caches/row_count.h"
#include "index/elf/walk.h"

namespace perdix::detail::index::elf {
namespace {

/// Opens lists as a query would, and notes them.
class NotingSource {
 public:
  NotingSource(const Lists& lists, const Cache* cache, std::uint64_t rows, std::span<ElfStep> steps)
      : lists_(lists), cache_(cache), rows_(rows), steps_(steps) {}

  const FirstEntries& first(const Lists& lists) {
    note(0, rows_, full() || image() != nullptr);
    return image() != nullptr ? image()->first() : lists.first();
  }

  List open(Ref ref, unsigned dimension) {
    const bool copied = ref.kind() == Ref::Kind::cached;
    const bool outlined = ref.kind() == Ref::Kind::outlined;
    const List list = copied
                          ? image()->list(ref)
                          : lists_.list(outlined ? image()->outline(ref).position() : ref.value());
    List found;
    const bool dynamic = cache_ != nullptr && cache_->dynamic() != nullptr &&
                         cache_->dynamic()->find(list.position, found);
    const auto any = [](Position, unsigned, std::uint32_t, std::uint64_t) { return true; };
    RowCount counting(lists_, any);
    const std::uint64_t below = counting.count(Ref(Ref::Kind::list, list.position), dimension);
    note(dimension, below, copied || outlined || dynamic || full());
    return list;
  }

 private:
  bool full() const { return cache_ != nullptr && cache_->full() != nullptr; }
  const Image* image() const { return cache_ != nullptr ? cache_->image() : nullptr; }

  void note(unsigned dimension, std::uint64_t below, bool cached) {
    ElfStep& step = steps_[dimension];
    const double share = static_cast<double>(below) / static_cast<double>(std::max(rows_, below));
    step.highest_probability = std::max(step.highest_probability, share);
    step.lowest_probability = step.lists == 0 ? share : std::min(step.lowest_probability, share);
    ++step.lists;
    step.cached += cached ? 1 : 0;
  }

  const Lists& lists_;
  const Cache* cache_;
  const std::uint64_t rows_;
  const std::span<ElfStep> steps_;
};

}  // namespace

void explain(const Lists& lists, const Cache* cache, std::uint64_t rows, const Box& box,
             std::span<ElfStep> steps) {
  if (rows == 0) return;
  NotingSource source(lists, cache, rows, steps);
  auto all = [](const Row&) { return true; };
  Walk(lists, source, box, all).run();
}

}  // namespace perdix::detail::index::elf
