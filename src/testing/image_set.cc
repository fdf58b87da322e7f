#include "testing/image_set.h"

#include "util/random.h"

namespace perdix::testing {

ImageSet::ImageSet(const CrashModel& model, bool only_new, const ImageLimits& limits,
                   std::uint64_t seed)
    : start_hash_(model.hash()), seed_(seed) {
  for (const auto& [offset, unit] : model.dirty()) {
    if (only_new && unit == model.newest()) {
      fixed_ = unit;
    } else {
      free_.push_back(unit);
    }
  }
  for (const CrashModel::Unit* unit : free_) {
    size_ *= unit->versions();
    if (size_ > limits.exhaustive) {
      exhaustive_ = false;
      size_ = 2 + 2 * free_.size() + limits.samples;
      return;
    }
  }
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
  util::Random random(seed_ ^ number * 0x9e3779b97f4a7c15);
  const std::uint64_t style = random.below(4);
  for (std::size_t i = 0; i < free_.size(); ++i) {
    if (exhaustive_) {
      add(free_[i], number % free_[i]->versions());
      number /= free_[i]->versions();
    } else {
      add(free_[i], sampled_version(i, number, style, random()));
    }
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
