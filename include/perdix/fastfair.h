// The old place of <perdix/papers/fastfair.h>, for one release.
#pragma once

#pragma message("<perdix/fastfair.h> is deprecated: include <perdix/papers/fastfair.h>")

#include <perdix/papers/fastfair.h>
