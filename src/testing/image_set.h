// The images that a crash at one moment may leave, numbered.
//
// All of them if there are at most `exhaustive`; else, in this order: every unit at its oldest
// version, every unit at its newest, each unit alone at its newest, each alone at its oldest, and
// `samples` drawn by the seed. An image's number means the same in every run, so it can be opened
// again.
//
// Of a model that suppresses a flush or fence, beside a sound one: an image is *due* to that if it
// has a unit that is older than it could be in the sound one.
#pragma once

#include <cstdint>
#include <vector>

#include "testing/crash_model.h"

namespace perdix::testing {

struct ImageLimits {
  std::uint64_t exhaustive = 1 << 12;
  std::uint64_t samples = 64;
};

struct Image {
  struct Part {
    const CrashModel::Unit* unit;
    std::size_t version;
  };
  std::vector<Part> parts;  ///< units that are not at their persisted version
  std::uint64_t hash = 0;   ///< relative to the start of the trace
  bool due = false;         ///< to the suppression
};

class ImageSet {
 public:
  /// Of the model's moment. With `only_new` just the images that the last store made possible: its
  /// unit is at its newest version. `sound` has seen the same events, or is nullptr. Valid until
  /// the models' next event.
  ImageSet(const CrashModel& model, const CrashModel* sound, bool only_new,
           const ImageLimits& limits, std::uint64_t seed);

  std::uint64_t size() const noexcept { return size_; }
  /// How many are due to the suppression; of samples, at most.
  std::uint64_t due() const noexcept { return due_; }
  bool exhaustive() const noexcept { return exhaustive_; }
  Image image(std::uint64_t number) const;

 private:
  void count(const ImageLimits& limits);
  std::size_t sampled_version(std::size_t unit, std::uint64_t number, std::uint64_t style,
                              std::uint64_t random) const;

  const CrashModel::Unit* fixed_ = nullptr;  // at its newest version in every image
  std::vector<const CrashModel::Unit*> free_;
  std::vector<std::uint64_t> late_;  // by unit: how many of its versions, the oldest, are due
  std::uint64_t start_hash_;
  std::uint64_t seed_;
  std::uint64_t size_ = 1;
  std::uint64_t due_ = 0;
  bool exhaustive_ = true;
};

}  // namespace perdix::testing
