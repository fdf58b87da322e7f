// The further indexes for Tips (<perdix/tips_indexes.h>) for programs in C. C11; the library is the
// same, perdix-tips-plugins. docs/tips.md has an example.
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

/// Adds the further indexes to the plug-ins of all pools that this program opens from now on by the
/// calls of <perdix/tips_c.h>. perdix_tips_open() then knows the engines "tips:bst", "tips:art",
/// "tips:clht", "tips:lfhash" and "tips:lfbst". To be called before the pools are opened; more
/// calls change nothing. Thread-safe. 1, or the negative of a perdix_code.
int perdix_tips_add_indexes(void);

#ifdef __cplusplus
}  // extern "C"
#endif
