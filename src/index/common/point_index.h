// How a call of PointIndex or OrderedIndex reaches its engine. For their sources.
#pragma once

#include <perdix/point_index.h>

#include "index/common/typed.h"
#include "index/common/word_index.h"
#include "pool/pool_core.h"
#include "pool/run_call.h"

namespace perdix {

template <Storable K, Storable V>
template <class Call>
auto PointIndex<K, V>::run(Call call) const {
  return detail::pool::run_call(*health_, *words_, call);
}

template <Storable K, Storable V>
template <class Call>
void PointIndex<K, V>::run_visits(Call call) const {
  run([](const detail::index::WordIndex<K>&) {});
  call(std::as_const(*words_));
  run([](const detail::index::WordIndex<K>&) {});
}

}  // namespace perdix
