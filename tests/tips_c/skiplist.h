// A skip list in C whose keys are strings, plugged into Tips.
#pragma once

#include <perdix/tips_c.h>

#ifdef __cplusplus
extern "C" {
#endif

extern const perdix_tips_plugin skip_list;

#ifdef __cplusplus
}
#endif
