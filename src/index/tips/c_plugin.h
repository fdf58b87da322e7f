// A plug-in that is written in C, as the framework calls any other. No exception passes through its
// code: what a call of the framework throws is kept until the plug-in has returned.
#pragma once

#include <string>

#include <perdix/tips_c.h>

#include "index/tips/plugin.h"

namespace perdix::detail::index::tips {

class CPlugin final : public Plugin {
 public:
  /// The table must live as long. Throws invalid_argument if something is missing in it.
  explicit CPlugin(const perdix_tips_plugin& table);
  CPlugin(const CPlugin&) = delete;
  CPlugin& operator=(const CPlugin&) = delete;

  void create(void* index) const override;
  void renew_locks(void* index) const override;
  bool put(void* index, Word key, Word value, Word* old) const override;
  bool erase(void* index, Word key, Word* old_key, Word* old_value) const override;
  bool find(const void* index, Word key, Word* value) const override;
  bool find_doubting(const void* index, const Doubting& doubt, Word key,
                     Word* value) const override;
  std::uint64_t size(const void* index) const override;
  void scan(const void* index, const Word* from, void* context, ShowPair show) const override;
  bool find_last(const void* index, Word bound, bool strictly, Word* key,
                 Word* value) const override;
  std::uint64_t walk(const void* index, std::uint64_t position, void* context,
                     ShowPair show) const override;
  bool inspect(const void* index, Inspector& inspector) const override;

 private:
  const std::string full_name_;
  const perdix_tips_plugin& table_;
};

}  // namespace perdix::detail::index::tips
