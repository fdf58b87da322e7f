// A command that fails leaves nothing of an index that it had to create.
#pragma once

#include <string>

#include <perdix/pool.h>

namespace perdix::tool {

/// Stands before the index that a command opens or creates, and so ends after it. Drops the index
/// if there was none of that name at first, unless keep() was called.
class NewIndex {
 public:
  /// `pool` must outlive it.
  NewIndex(Pool& pool, const std::string& name);
  ~NewIndex();
  NewIndex(const NewIndex&) = delete;
  NewIndex& operator=(const NewIndex&) = delete;

  /// The command has stored something.
  void keep() noexcept { is_new_ = false; }

 private:
  Pool& pool_;
  const std::string name_;
  bool is_new_;
};

}  // namespace perdix::tool
