// The handler of SIGBUS: the device does not give a page of a pool.
#pragma once

namespace perdix {

/// From now on a page that the device does not give fails its pool and not the process.
///
/// The kernel sends SIGBUS when it cannot read a page of a mapped file (a broken disk, an
/// uncorrectable error of persistent memory, a file that another program has truncated), and when a
/// store needs space that a file system has not (PoolInfo::may_copy_on_write). By default that ends
/// the process. After this call such a pool fails as if a sync had failed: the call in progress
/// throws Errc::io_error, and so does each later one; nothing reaches the file any more, and
/// close() releases it without writing to it. Other pools are not concerned. What was acknowledged
/// before is in the file: open the pool again once the device works. The write that met the error
/// is there entirely or not at all.
///
/// This installs a handler of SIGBUS for the process. Errors at addresses that are no pool's go to
/// the handler that was there before, or end the process as they would have without it. A handler
/// that the program installs later replaces this one; call this again after that. A call in
/// progress works on zeros in place of the lost page until it throws. Indexes of Tips and
/// containers (TipsOf) are not safe from that: they follow pointers, and one that is zero may end
/// the process.
///
/// Repeated calls are harmless. Throws io_error if the kernel refuses the handler. Thread-safe.
void handle_bus_errors();

}  // namespace perdix
