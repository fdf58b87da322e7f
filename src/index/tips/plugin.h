// What Tips requires of a plugged-in index, and provides to it: the types of
// <perdix/tips_plugin.h>, under the names that the framework and its own indexes use.
#pragma once

#include <perdix/tips_plugin.h>

namespace perdix::detail::index::tips {

using perdix::tips::allocate;
using perdix::tips::Bytes;
using perdix::tips::Doubting;
using perdix::tips::Durable;
using perdix::tips::free;
using perdix::tips::Inspector;
using perdix::tips::IntegerKeys;
using perdix::tips::Plugin;
using perdix::tips::PluginOf;
using perdix::tips::PutTakes;
using perdix::tips::ShowPair;
using perdix::tips::StringKeys;
using perdix::tips::TakenNodes;
using perdix::tips::Trusting;
using perdix::tips::undo_log_add;
using perdix::tips::Volatile;
using perdix::tips::Word;

}  // namespace perdix::detail::index::tips
