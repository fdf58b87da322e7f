#include "testing/image_set.h"

#include <algorithm>

#include "util/random.h"

namespace perdix::testing {

ImageSet::ImageSet(const CrashModel& model, const CrashModel* sound, bool only_new,
                   const ImageLimits& limits, std::uint64_t seed)
    : start_hash_(model.hash()), seed_(seed) {
  for (const auto& [offset, unit] : model.dirty()) {
    if (only_new && unit == model.newest()) {
      fixed_ = unit;
      continue;
    }
    free_.push_back(unit);
    late_.push_back(sound == nullptr ? 0
                                     : sound->persisted_version(offset) - unit->persisted_version);
  }
  count(limits);
}

void ImageSet::count(const ImageLimits& limits) {
  std::uint64_t not_due = 1;
  for (std::size_t i = 0; i < free_.size(); ++i) {
    size_ *= free_[i]->versions();
    not_due *= free_[i]->versions() - late_[i];
    if (size_ > limits.exhaustive) {
      exhaustive_ = false;
      size_ = 2 + 2 * free_.size() + limits.samples;
      const bool any = std::any_of(late_.begin(), late_.end(), [](auto late) { return late > 0; });
      due_ = any ? size_ : 0;
      return;
    }
  }
  due_ = size_ - not_due;
}

Image ImageSet::image(std::uint64_t number) const {
  Image image;
  image.hash = start_hash_;
  const auto add = [&](const CrashModel::Unit* unit, std::size_t version) {
    if (version == 0) return;
    image.parts.push_back({unit, version});
    image.hash += unit->hash(version);
  };
  if (fixed_ != nullptr) add(fixed_, fixed_->stores.size());
  detail::util::Random random(seed_ ^ number * 0x9e3779b97f4a7c15);
  const std::uint64_t style = random.below(4);
  for (std::size_t i = 0; i < free_.size(); ++i) {
    const std::size_t version =
        exhaustive_ ? number % free_[i]->versions() : sampled_version(i, number, style, random());
    if (exhaustive_) number /= free_[i]->versions();
    add(free_[i], version);
    image.due |= version < late_[i];
  }
  return image;
}

std::size_t ImageSet::sampled_version(std::size_t unit, std::uint64_t number, std::uint64_t style,
                                      std::uint64_t random) const {
  const std::size_t units = free_.size(), newest = free_[unit]->stores.size();
  if (number == 0) return 0;
  if (number == 1) return newest;
  if (number < 2 + units) return unit == number - 2 ? newest : 0;
  if (number < 2 + 2 * units) return unit == number - 2 - units ? 0 : newest;
  const std::uint64_t low = random & 7;
  const std::size_t any = (random >> 8) % (newest + 1);
  switch (style) {
    case 0: return low == 0 ? any : 0;       // mostly old
    case 1: return low == 0 ? any : newest;  // mostly new
    case 2: return low & 1 ? newest : 0;     // whole units, old or new
    default: return any;
  }
}

}  // namespace perdix::testing
