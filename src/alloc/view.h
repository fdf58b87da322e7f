// Addresses of the allocator's structures in PM.
#pragma once

#include <cstddef>
#include <cstdint>

#include "alloc/layout.h"

namespace perdix::detail::alloc {

/// The chunk and the span that cover an offset.
constexpr std::uint64_t chunk_of(Offset offset) noexcept { return offset / kChunkSize; }
constexpr unsigned span_index(Offset offset) noexcept {
  return static_cast<unsigned>(offset % kChunkSize / kSpanSize);
}
constexpr std::uint64_t position_in_span(Offset offset) noexcept { return offset % kSpanSize; }

constexpr Offset span_offset(std::uint64_t chunk, unsigned index) noexcept {
  return chunk * kChunkSize + index * kSpanSize;
}

class View {
 public:
  explicit View(std::byte* base) noexcept : base_(base) {}

  template <class T>
  T& at(Offset offset) const noexcept {
    return *reinterpret_cast<T*>(base_ + offset);
  }
  Offset offset_of(const void* p) const noexcept {
    return static_cast<Offset>(static_cast<const std::byte*>(p) - base_);
  }

  HeaderLayout& header() const noexcept { return at<HeaderLayout>(kHeaderOffset); }
  LaneLayout& lane(unsigned i) const noexcept {
    return at<LaneLayout>(kLanesOffset + i * sizeof(LaneLayout));
  }
  ChunkLayout& chunk(std::uint64_t i) const noexcept {
    return at<ChunkLayout>(chunk_header_offset(i));
  }
  SpanLayout& span(Offset offset) const noexcept { return at<SpanLayout>(offset); }

 private:
  std::byte* base_;
};

}  // namespace perdix::detail::alloc
